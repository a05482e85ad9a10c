"""The servers that all database tests stand on."""

from __future__ import annotations

import psycopg
import pytest

from tests import servers


@pytest.mark.parametrize(
    ("fixture", "major", "collation"), [("dsn", 18, "code points"), ("dsn15", servers.SECOND, "linguistic")]
)
def test_a_test_gets_an_empty_database_of_its_own_on(
    fixture: str, major: int, collation: str, request: pytest.FixtureRequest
) -> None:
    with psycopg.connect(request.getfixturevalue(fixture)) as conn:
        assert conn.info.server_version // 10000 == major
        row = conn.execute(
            "SELECT rolsuper, pg_get_userbyid(datdba) = current_user, has_database_privilege(datname, 'CREATE'),"
            " (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace),"
            " CASE WHEN 'a' < 'B' THEN 'linguistic' ELSE 'code points' END"
            " FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()"
        ).fetchone()
    assert row == (False, False, True, 0, collation)


def test_a_wrong_password_is_refused(dsn: str) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(dsn, password="wrong")


def test_the_administrator_sees_the_same_database(dsn: str, admin_dsn: str) -> None:
    with psycopg.connect(dsn) as conn, psycopg.connect(admin_dsn) as admin:
        conn.execute("CREATE TABLE t ()")
        conn.commit()
        assert admin.execute("SELECT to_regclass('public.t') IS NOT NULL").fetchone() == (True,)


def test_a_killed_server_comes_back_at_its_address_with_what_was_committed() -> None:
    with servers.running(18) as server:
        dsn = server.dsn()
        with psycopg.connect(dsn) as conn:
            conn.execute("CREATE TABLE t AS SELECT 1 AS one")
        server.kill()
        assert server.pid is None
        server.start()
        with psycopg.connect(dsn) as conn:
            assert conn.execute("SELECT one FROM t").fetchone() == (1,)
