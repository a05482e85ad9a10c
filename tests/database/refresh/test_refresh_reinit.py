"""Sources that change their schema, captures that break: with real declarations and the real algebra."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, TableAltered, TransientFault
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor, Staged

SHOP = """
    CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric);
    INSERT INTO orders SELECT i, i % 10, i FROM generate_series(1, 100) i;
    CREATE VIEW paid AS SELECT * FROM orders WHERE amount > 50;
"""


@pytest.fixture
def conn(any_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        conn.execute(SHOP)
        yield conn


@pytest.fixture
def pt(any_dsn: str, conn: psycopg.Connection[Any]) -> Iterator[PgTrickle]:
    database = Database(any_dsn)
    settings: dict[str, Any] = {"differential_max_change_ratio": 0.0, "retry_attempts": 1}
    with PgTrickle(any_dsn, executor=lambda: PostgresExecutor(database), **settings) as client:
        client.install()
        yield client


def differs(conn: psycopg.Connection[Any], name: str, columns: str, query: str) -> list[tuple[Any, ...]]:
    stored = f"SELECT {columns} FROM {name}"
    return conn.execute(f"(({stored}) EXCEPT ALL ({query})) UNION ALL (({query}) EXCEPT ALL ({stored}))").fetchall()


def test_a_changed_view_body_starts_anew_and_hands_on_the_difference(
    pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    pt.create_stream_table("st", "SELECT id, amount FROM paid")
    pt.create_stream_table("reader", "SELECT id FROM st WHERE amount > 60")
    conn.execute("CREATE OR REPLACE VIEW paid AS SELECT * FROM orders WHERE amount > 49")
    result = pt.refresh_stream_table("st")
    assert (result.action, result.fallback_reason) == ("REINITIALIZE", "schema_changed")
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (1, 0, 0)
    assert pt.refresh_stream_table("reader").action == "DIFFERENTIAL"
    assert pt.refresh_stream_table("st").action == "NO_DATA"


def test_a_view_that_changes_again_during_the_refresh_is_not_recorded_as_read(
    any_dsn: str, pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    pt.create_stream_table("st", "SELECT id, amount FROM paid")
    conn.execute("CREATE OR REPLACE VIEW paid AS SELECT * FROM orders WHERE amount > 49")

    class Overtaken(PostgresExecutor):
        def compute(self, *work: Any) -> Staged:
            staged = super().compute(*work)
            # The same columns, other rows.
            conn.execute("CREATE OR REPLACE VIEW paid AS SELECT * FROM orders WHERE amount > 10")
            return staged

    overtaken = PgTrickle(any_dsn, executor=lambda: Overtaken(Database(any_dsn)), retry_attempts=1)
    with overtaken, pytest.raises(TransientFault, match=r"changed once more|replaced while it was read"):
        overtaken.refresh_stream_table("st")
    assert pt.refresh_stream_table("st").action == "REINITIALIZE"
    assert differs(conn, "st", "id, amount", "SELECT id, amount FROM paid") == []


def test_a_changed_column_type_rebuilds_the_table_under_its_readers(
    pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    pt.create_stream_table("st", "SELECT id, amount FROM orders")
    conn.execute("DROP VIEW paid; ALTER TABLE orders ALTER amount TYPE text USING amount::text || ' EUR'")
    result = pt.refresh_stream_table("st")
    assert (result.action, result.fallback_reason) == ("REINITIALIZE", "schema_changed")
    assert differs(conn, "st", "id, amount", "SELECT id, amount FROM orders") == []
    conn.execute("UPDATE orders SET amount = '0' WHERE id = 1")
    assert pt.refresh_stream_table("st").action == "DIFFERENTIAL"
    assert differs(conn, "st", "id, amount", "SELECT id, amount FROM orders") == []


def test_a_reshaped_member_of_a_unit_goes_first(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("st", "SELECT id, amount FROM orders")
    pt.create_stream_table("reader", "SELECT id, amount FROM st")
    conn.execute("DROP VIEW paid; ALTER TABLE orders ALTER amount TYPE text USING amount::text || ' EUR'")
    results = pt.refresh(["st", "reader"])
    assert [results[name].action for name in ("st", "reader")] == ["REINITIALIZE", "REINITIALIZE"]
    assert {row["status"] for name in ("st", "reader") for row in pt.history(name)} == {"COMPLETED"}
    assert differs(conn, "reader", "id, amount", "SELECT id, amount FROM orders") == []


def test_a_dropped_column_is_a_permanent_error_that_names_it(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("st", "SELECT id, amount FROM orders")
    conn.execute("DROP VIEW paid; ALTER TABLE orders DROP amount")
    with pytest.raises(PgTrickleError, match="amount"):
        pt.refresh_stream_table("st")
    (state,) = [row for row in pt.status() if row["pgt_name"] == "st"]
    assert state["status"] == "ERROR"
    assert conn.execute("SELECT count(*) FROM st").fetchone() == (100,)


def test_a_table_damaged_by_its_owner_is_made_whole(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("st", "SELECT id, amount FROM orders")
    conn.execute("ALTER TABLE st DROP COLUMN amount")
    result = pt.refresh_stream_table("st")
    assert (result.action, result.fallback_reason) == ("REINITIALIZE", "schema_changed")
    assert differs(conn, "st", "id, amount", "SELECT id, amount FROM orders") == []
    conn.execute("DELETE FROM orders WHERE id = 1")
    assert pt.refresh_stream_table("st").action == "DIFFERENTIAL"


def test_a_table_that_somebody_dropped_stays_dropped_until_it_is_asked_for(
    pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    pt.create_stream_table("st", "SELECT id, amount FROM orders")
    conn.execute("DROP TABLE st")
    with pytest.raises(TableAltered, match="was dropped"):
        pt.refresh_stream_table("st")
    assert conn.execute("SELECT to_regclass('st')").fetchone() == (None,)
    assert pt.refresh_stream_table("st", force_full=True).action == "REINITIALIZE"
    assert differs(conn, "st", "id, amount", "SELECT id, amount FROM orders") == []


@pytest.mark.parametrize("damage", ["triggers disabled", "buffer dropped"])
def test_broken_capture_is_noticed_and_mended(pt: PgTrickle, conn: psycopg.Connection[Any], damage: str) -> None:
    pt.create_stream_table("st", "SELECT id, amount FROM orders WHERE amount > 50")
    if damage == "triggers disabled":
        conn.execute("ALTER TABLE orders DISABLE TRIGGER USER; DELETE FROM orders WHERE id = 99")
    else:
        conn.execute(f"DROP TABLE pgtrickle_changes.changes_{_oid(conn)}")
    result = pt.refresh_stream_table("st")
    assert (result.action, result.fallback_reason) == ("FULL", "buffer_lost")
    assert differs(conn, "st", "id, amount", "SELECT id, amount FROM orders WHERE amount > 50") == []
    conn.execute("DELETE FROM orders WHERE id = 97")
    result = pt.refresh_stream_table("st")
    assert (result.action, result.rows_deleted) == ("DIFFERENTIAL", 1)


def test_a_small_refresh_of_a_real_query(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("totals", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
    for change in ("UPDATE orders SET amount = 70 WHERE id = 7", "DELETE FROM orders WHERE customer = 3"):
        conn.execute(change)
        assert pt.refresh_stream_table("totals").action == "DIFFERENTIAL"
    query = "SELECT customer, sum(amount) FROM orders GROUP BY customer"
    assert differs(conn, "totals", "customer, total", query) == []


def _oid(conn: psycopg.Connection[Any]) -> int:
    row = conn.execute("SELECT 'orders'::regclass::oid::bigint").fetchone()
    assert row is not None
    return int(row[0])
