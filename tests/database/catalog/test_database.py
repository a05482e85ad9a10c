"""Sessions are pinned, transactions whole, and errors in our words without a credential."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from airflow_provider_pgtrickle.engine.catalog.database import PINNED, Database, server_default_schema, translating
from airflow_provider_pgtrickle.engine.errors import (
    ConnectionFault,
    PermissionFault,
    RefreshError,
    RoomFault,
    TransientFault,
    UsageError,
)
from airflow_provider_pgtrickle.engine.settings import Settings
from tests import servers


def test_every_session_is_pinned(any_dsn):
    with Database(any_dsn, Settings.load(lock_timeout_seconds=7)).connect(application_name="me") as conn:
        for name, value in {**PINNED, "lock_timeout": "7s", "application_name": "me"}.items():
            assert conn.execute("SELECT current_setting(%s)", [name]).fetchone() == (value,)
        assert conn.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS


def test_a_transaction_is_committed_or_rolled_back_whole(dsn):
    database = Database(dsn)
    with database.transaction() as conn:
        conn.execute("CREATE TABLE public.kept (a int)")
    with pytest.raises(RefreshError, match="zero"), database.transaction() as conn:
        conn.execute("CREATE TABLE public.lost AS SELECT 1 AS a; SELECT 1 / 0")
    with database.connect() as conn:
        found = conn.execute("SELECT to_regclass('public.kept') IS NULL, to_regclass('public.lost') IS NULL")
        assert found.fetchone() == (False, True)


def test_a_session_killed_in_its_transaction_is_a_transient_fault(dsn):
    database = Database(dsn)
    with pytest.raises(TransientFault), database.transaction() as conn:
        conn.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def test_capabilities_are_asked_by_name(dsn, dsn15):
    new, old = Database(dsn).capabilities, Database(dsn15).capabilities
    assert (new.merge_returning, new.virtual_columns, new.nulls_not_distinct) == (True, True, True)
    assert (old.merge_returning, old.virtual_columns) == (servers.SECOND >= 17, servers.SECOND >= 18)
    assert old.nulls_not_distinct


def test_the_jdbc_url_holds_no_credentials(dsn):
    parameters = psycopg.conninfo.conninfo_to_dict(dsn)
    target = Database(dsn).jdbc
    assert target.url == f"jdbc:postgresql://127.0.0.1:{parameters['port']}/{parameters['dbname']}"
    assert target.properties["user"] == parameters["user"]
    assert target.properties.get("password") == parameters.get("password")
    assert "password" not in repr(target)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"port": 1}, "can't be reached at 127.0.0.1:1/"),
        ({"user": "nobody_at_all", "password": "hunter2"}, "refused the user name or password"),
        ({"dbname": "no_such_db"}, "no such database"),
        ({"host": "no-such-host.invalid"}, "can't be reached"),
    ],
)
def test_a_refused_connection_says_why_without_the_password(dsn, change, words):
    with pytest.raises(ConnectionFault, match=words) as refused:
        Database(make_conninfo(dsn, **change)).connect()
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_an_unreadable_dsn_is_not_repeated():
    with pytest.raises(UsageError) as refused:
        Database("postgresql://me:hunter2@[::1/db")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("42501", PermissionFault),
        ("40001", TransientFault),
        ("40P01", TransientFault),
        ("55P03", TransientFault),
        ("57P01", TransientFault),
        ("08006", TransientFault),
        ("53100", RoomFault),
        ("53200", RoomFault),
        ("53400", RoomFault),
        ("53300", TransientFault),
        ("23505", RefreshError),
    ],
)
def test_errors_of_the_server_become_ours(dsn, state, kind):
    with (
        Database(dsn).connect() as conn,
        pytest.raises(kind, match=r"public\.t: .*[Tt]rouble") as raised,
        translating("public.t"),
    ):
        conn.execute(f"DO $$BEGIN RAISE EXCEPTION 'trouble' USING ERRCODE = '{state}'; END$$")
    assert type(raised.value) is kind
    assert ("disk is full" in str(raised.value)) == (state == "53100")


def test_the_default_schema_is_the_servers(dsn):
    with Database(dsn).connect() as conn:
        assert server_default_schema(conn) == "public"
    for path, schema in (("nowhere,information_schema", "information_schema"), ("nowhere", None)):
        with Database(make_conninfo(dsn, options=f"-c search_path={path}")).connect() as conn:
            if schema:
                assert server_default_schema(conn) == schema
                continue
            with pytest.raises(UsageError, match="search_path"):
                server_default_schema(conn)
