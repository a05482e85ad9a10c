"""What docs/operations.md says of a dump that is restored elsewhere: the first refresh makes it whole."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.embedded import PostgresServer
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests import servers

RANKS = "SELECT customer, rank() OVER (ORDER BY count(*) DESC) AS place FROM orders GROUP BY customer"
TOTALS = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"


@pytest.fixture
def elsewhere(postgres15: PostgresServer) -> Iterator[str]:
    """A second empty database: oids of what is restored into it are others."""
    with servers.fresh_database(postgres15) as name:
        yield servers.ordinary_dsn(postgres15, name)


def _client(dsn: str) -> PgTrickle:
    database = Database(dsn)
    return PgTrickle(dsn, executor=lambda: PostgresExecutor(database))


def _copied(dsn: str, target: str) -> None:
    """pg_dump into psql, with the password where no process list shows it."""
    environment = {**os.environ, "PGPASSWORD": str(conninfo_to_dict(dsn)["password"])}
    bare = [
        make_conninfo(**{name: str(value) for name, value in conninfo_to_dict(url).items() if name != "password"})
        for url in (dsn, target)
    ]
    dump = subprocess.run(
        [servers.POSTGRES_15 / "pg_dump", "--no-owner", bare[0]], env=environment, capture_output=True, check=True
    )
    subprocess.run(
        [servers.POSTGRES_15 / "psql", "--quiet", "--set=ON_ERROR_STOP=1", bare[1]],
        env=environment,
        input=dump.stdout,
        capture_output=True,
        check=True,
    )


def test_a_restored_copy_can_be_uninstalled_at_once(dsn15: str, elsewhere: str) -> None:
    with psycopg.connect(dsn15, autocommit=True) as conn:
        conn.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    with _client(dsn15) as pt:
        pt.install()
        pt.create_stream_table("totals", TOTALS)
        pt.create_stream_table("ranks", RANKS)
    _copied(dsn15, elsewhere)
    with _client(elsewhere) as pt:
        assert set(pt.uninstall()) >= {"public.totals", "public.ranks"}
        assert pt.uninstall() == ()
    with psycopg.connect(elsewhere) as conn:
        left = conn.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pgtrickle%' UNION ALL SELECT tgname FROM pg_trigger"
            " UNION ALL SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        ).fetchall()
    assert left == [("orders",)]


def test_a_chain_restored_elsewhere_is_rebuilt_by_its_first_refresh_and_then_goes_on_by_differences(
    dsn15: str, elsewhere: str
) -> None:
    with psycopg.connect(dsn15, autocommit=True) as conn:
        conn.execute(
            "CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int);"
            "INSERT INTO orders SELECT i, i % 5, i FROM generate_series(1, 100) i"
        )
    with _client(dsn15) as pt:
        pt.install()
        pt.create_stream_table("totals", TOTALS, differential_max_change_ratio=0.0)
        pt.create_stream_table("big", "SELECT * FROM totals WHERE total > 900", differential_max_change_ratio=0.0)
        pt.create_stream_table("ranks", RANKS, schedule="5m", differential_max_change_ratio=0.0)
    with psycopg.connect(dsn15, autocommit=True) as conn:
        conn.execute("UPDATE orders SET amount = 5000 WHERE id = 7")  # pending when the dump is taken

    _copied(dsn15, elsewhere)

    with _client(elsewhere) as pt, psycopg.connect(elsewhere, autocommit=True) as conn:
        pt.refresh_stream_table("big")
        assert {pt.history(name)[0]["action"] for name in ("totals", "big")} == {"REINITIALIZE"}
        assert pt.refresh_stream_table("ranks").action == "REINITIALIZE"
        conn.execute("DELETE FROM orders WHERE id = 8; INSERT INTO orders VALUES (101, 9, 2000)")
        assert pt.refresh_stream_table("big").action == "DIFFERENTIAL"
        assert pt.refresh_stream_table("ranks").action == "DIFFERENTIAL"
        assert conn.execute("SELECT customer, place FROM ranks ORDER BY 1").fetchall() == (
            conn.execute(f"{RANKS} ORDER BY 1").fetchall()
        )
        wanted = conn.execute(f"SELECT * FROM ({TOTALS}) t WHERE total > 900 ORDER BY customer").fetchall()
        assert conn.execute("SELECT customer, total FROM big ORDER BY customer").fetchall() == wanted
        assert all(finding.ok for finding in pt.health() if finding.check in ("catalog", "capture", "stream tables"))
        assert pt.drop_stream_table("totals", cascade=True) == ("public.big", "public.totals")


def test_a_diamond_restored_elsewhere(dsn15: str, elsewhere: str) -> None:
    """Its members are one unit, in which a reader's query doesn't find a table that has another oid now."""
    both = "SELECT totals.customer, totals.total, ranks.place FROM totals JOIN ranks USING (customer)"
    with psycopg.connect(dsn15, autocommit=True) as conn, _client(dsn15) as pt:
        conn.execute("CREATE TABLE before (id int); CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
        conn.execute("INSERT INTO orders SELECT i, i % 5, i FROM generate_series(1, 100) i")
        pt.install()
        for name, query in (("totals", TOTALS), ("ranks", RANKS), ("both_", both)):
            pt.create_stream_table(name, query, differential_max_change_ratio=0.0)
        conn.execute("DROP TABLE before")
    _copied(dsn15, elsewhere)
    with _client(elsewhere) as pt, psycopg.connect(elsewhere, autocommit=True) as conn:
        pt.refresh_stream_table("both_")
        conn.execute("DELETE FROM orders WHERE id = 8")
        assert pt.refresh_stream_table("both_").action == "DIFFERENTIAL"
        rows = "SELECT customer, total, place FROM both_ ORDER BY 1"
        wanted = f"SELECT t.customer, t.total, r.place FROM ({TOTALS}) t JOIN ({RANKS}) r USING (customer) ORDER BY 1"
        assert conn.execute(rows).fetchall() == conn.execute(wanted).fetchall()


def test_a_restored_copy_still_keeps_frozen_rows(dsn15: str, elsewhere: str) -> None:
    with psycopg.connect(dsn15, autocommit=True) as conn, _client(dsn15) as pt:
        conn.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
        conn.execute("INSERT INTO orders SELECT i, i % 5, i FROM generate_series(1, 20) i")
        pt.install()
        pt.create_stream_table("totals", TOTALS, frozen_before="orders.id: 11", frozen_breach="ignore")
        conn.execute("UPDATE orders SET amount = 1000")
        pt.refresh_stream_table("totals")
    _copied(dsn15, elsewhere)
    kept = "SELECT customer, sum(CASE WHEN id < 11 THEN id ELSE amount END)::bigint FROM orders GROUP BY 1 ORDER BY 1"
    with psycopg.connect(elsewhere, autocommit=True) as conn, _client(elsewhere) as pt:
        for change in ("SELECT", "UPDATE orders SET amount = 7", "UPDATE orders SET amount = 8"):
            conn.execute(change.encode())
            pt.refresh_stream_table("totals")
            found = conn.execute("SELECT customer, total FROM totals ORDER BY 1").fetchall()
            assert found == conn.execute(kept.encode()).fetchall()
        assert pt.verify("totals").differences == 0
