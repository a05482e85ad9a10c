"""The catalog is installed by an ordinary database owner, once, whole or not at all, on old and new servers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.catalog.migrate import Migration, install, migrations, version
from airflow_provider_pgtrickle.engine.errors import PermissionFault, RefreshError

pytestmark = pytest.mark.empty


@pytest.fixture
def database(any_dsn: str) -> Database:
    return Database(any_dsn)


def test_installing_applies_every_migration_in_order(database):
    with database.connect() as conn:
        applied = install(conn)
        assert applied == [*(f"{step.number:04}_{step.name}" for step in migrations()), "views and functions"]
        assert version(conn) == migrations()[-1].number


def test_installing_twice_changes_nothing(database):
    with database.connect() as conn:
        install(conn)
        assert install(conn) == []


def test_what_is_installed_is_committed(database):
    with database.connect() as conn:
        install(conn)
    with database.connect() as conn:
        assert version(conn) == migrations()[-1].number


def test_version_is_zero_before_installing(database):
    with database.connect() as conn:
        assert version(conn) == 0


def test_the_installer_is_no_superuser(database):
    with database.connect() as conn:
        row = conn.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
        assert row == (False,)


def test_migrations_may_run_again_over_existing_objects(database):
    with database.connect() as conn:
        install(conn)
        conn.execute("DELETE FROM pgtrickle.pgt_migrations")
        conn.commit()
        assert len(install(conn)) == len(migrations()) + 1


def test_a_migration_that_fails_leaves_nothing_of_itself(database):
    good = Migration(9001, "good", "CREATE TABLE pgtrickle.good (a int)")
    bad = Migration(9002, "bad", "CREATE TABLE pgtrickle.half (a int); SELECT 1 / 0")
    with database.connect() as conn:
        install(conn)
        with pytest.raises(RefreshError, match="Division by zero"):
            install(conn, [good, bad])
        kept = conn.execute("SELECT to_regclass('pgtrickle.good') IS NOT NULL, to_regclass('pgtrickle.half') IS NULL")
        assert kept.fetchone() == (True, True)
        assert version(conn) == 9001


def test_two_installers_at_once_both_succeed(database):
    def run(_: int) -> list[str]:
        with database.connect() as conn:
            return install(conn)

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(run, range(2)))
    assert sorted(name for applied in results for name in applied) == [
        *(f"{step.number:04}_{step.name}" for step in migrations()),
        "views and functions",
    ]


def test_a_role_that_may_not_create_schemas_is_told_so(dsn, admin_dsn):
    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS pgt_reader")
        admin.execute("CREATE ROLE pgt_reader LOGIN PASSWORD 'reader'")
    with Database(admin_dsn).connect(autocommit=True) as conn:
        conn.execute("SET SESSION AUTHORIZATION pgt_reader")
        with pytest.raises(PermissionFault, match="Permission denied for database"):
            install(conn)
        conn.execute("RESET SESSION AUTHORIZATION")
        conn.execute("DROP ROLE pgt_reader")
