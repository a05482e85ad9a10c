"""An altered query keeps what is stored, exactly, with changes pending; and says what it kept, or why it didn't."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests.answers import only
from tests.database.declare.conftest import TOTALS, difference

PLACED = "SELECT id, customer_id, amount FROM orders WHERE amount > 10"
NAMED = "SELECT o.id, o.amount, c.id AS customer, c.name FROM orders o JOIN customers c ON c.id = o.customer_id"
PAIRS = "SELECT DISTINCT customer_id, amount FROM orders"
BY_HAND = "ALTER TABLE st DISABLE TRIGGER USER; ALTER TABLE st ALTER amount TYPE numeric(10,2) USING amount + 1"
KEPT = "query_altered: kept what is stored"
ANEW = "query_altered: computed anew, because"
PENDING = """
    UPDATE orders SET amount = amount + 1, placed = placed + 1 WHERE id IN (7, 8);
    DELETE FROM orders WHERE id = 9;
    INSERT INTO orders VALUES (100, 3, 99.5, '2026-06-01', 'new'), (101, 11, 5, NULL, NULL);
    UPDATE customers SET region = 'west' WHERE id = 4;
    UPDATE customers SET name = 'other' WHERE id = 5;
    UPDATE customers SET id = 11 WHERE id = 6;
"""


def last(pt: PgTrickle, name: str = "st") -> dict[str, Any]:
    return pt.history(name, 1)[0]


def alter(pt: PgTrickle, conn: psycopg.Connection[Any], query: str, name: str = "st") -> dict[str, Any]:
    """Alter it, compare it with its query, and see that later differences go on from there."""
    told = pt.cost_of_query(name, query)
    pt.alter_stream_table(name, query=query)
    done = last(pt, name)
    assert (done["action"], done["fallback_reason"].startswith(KEPT)) == ("REINITIALIZE", told.kept is not None)
    assert difference(conn, name, query) == 0
    assert (
        only(conn.execute("SELECT kept_query FROM pgtrickle.pgt_stream_tables WHERE pgt_name = %s", (name,)))[0] is None
    )
    conn.execute(
        "UPDATE orders SET amount = amount + 3, customer_id = 2 WHERE id = 12; DELETE FROM orders WHERE id = 13"
    )
    conn.execute("UPDATE customers SET name = name || '!' WHERE id = 2")
    assert pt.refresh_stream_table(name).action == "DIFFERENTIAL"
    assert difference(conn, name, query) == 0
    assert pt.verify(name).differences == 0
    return done


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        # Of what is pending: two rows change, one goes, one comes.
        (PLACED, f"{PLACED} AND customer_id < 4", (1, 0, 31)),
        (PLACED, PLACED.replace(", amount FROM", " FROM"), (1, 0, 1)),
        # All 44 are set in place, and then what is pending is written.
        (PLACED, PLACED.replace("amount FROM", "amount, amount * 2 AS twice FROM"), (1, 46, 1)),
        # The row that is gone has no date any more, and so none is set.
        (PLACED, PLACED.replace("amount FROM", "amount, note, placed FROM"), (1, 45, 1)),
        (NAMED, f"{NAMED.replace('c.name', 'c.name, c.region, o.placed')} WHERE o.id > 20", None),
        (NAMED, f"{NAMED} WHERE c.region <> 'north'", None),
        (TOTALS, TOTALS.replace("AS total", "AS total, avg(amount) AS mean"), None),
        (TOTALS, f"{TOTALS} HAVING sum(amount) > 200 AND customer_id <> 4", None),
        (TOTALS.replace("FROM", ", count(*) AS n FROM"), TOTALS, None),
        (PAIRS, f"{PAIRS} WHERE amount > 30", None),
        ("SELECT amount, note FROM orders", "SELECT amount, note FROM orders WHERE amount > 30", None),
    ],
)  # fmt: skip
def test_what_is_stored_is_kept(
    pt: PgTrickle, conn: psycopg.Connection[Any], before: str, after: str, rows: tuple[int, int, int] | None
) -> None:
    pt.create_stream_table("st", before, refresh_mode="DIFFERENTIAL", differential_max_change_ratio=0.0)
    conn.execute(PENDING)
    done = alter(pt, conn, after)
    assert done["fallback_reason"].startswith(KEPT)
    if rows is not None:
        assert (done["rows_inserted"], done["rows_updated"], done["rows_deleted"]) == rows


def test_what_postgresql_prints_otherwise_each_time_is_foretold(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    """Its text of NOT IN with a NULL among varchars reads otherwise, printed once and twice."""
    conn.execute("ALTER TABLE orders ADD COLUMN state varchar(4)")
    listed = "array_agg(id ORDER BY id) FILTER (WHERE state NOT IN ('a', NULL)) AS ids"
    before = f"SELECT customer_id, {listed}, count(*) AS n FROM orders GROUP BY customer_id"
    pt.create_stream_table("st", before, refresh_mode="DIFFERENTIAL", differential_max_change_ratio=0.0)
    conn.execute(PENDING.replace("'new')", "'new', 'b')").replace("NULL, NULL)", "NULL, NULL, 'a')"))
    assert alter(pt, conn, before.replace(", count(*) AS n", ""))["fallback_reason"].startswith(KEPT)


@pytest.mark.parametrize("placement", ["spark", "database"])
def test_it_is_kept_wherever_it_is_computed(pt: PgTrickle, conn: psycopg.Connection[Any], placement: str) -> None:
    pt.create_stream_table("st", NAMED, placement=placement, differential_max_change_ratio=0.0)
    conn.execute(PENDING)
    done = alter(pt, conn, f"{NAMED.replace('c.name', 'c.name, c.region')} WHERE o.amount > 20")
    assert done["fallback_reason"] == f"{KEPT} (1 column added, filter narrowed)"
    assert done["way"] == ("database" if placement == "database" else "pushed")


def test_fewer_columns_read_nothing(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("st", PLACED)
    query = PLACED.replace(", amount FROM", " FROM")
    assert str(pt.cost_of_query("st", query)) == (
        "1 column removed: its content follows from what is stored, and no row is read"
    )
    pt.alter_stream_table("st", query=query)
    assert (last(pt)["fallback_reason"], last(pt)["rows_read"]) == (f"{KEPT} (1 column removed)", 0)
    assert difference(conn, "st", query) == 0


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (PLACED, PLACED.replace("10", "5"), "rows may come in"),
        (TOTALS, TOTALS.replace("FROM", ", max(placed) AS latest FROM"), "is not stored"),
        (PLACED, PLACED.replace("customer_id,", "customer_id::text,"), "its table is made anew"),
        (PLACED, "SELECT customer_id, amount FROM orders WHERE amount > 10", "told apart"),
    ],
)
def test_what_does_not_follow_is_computed_anew(
    pt: PgTrickle, conn: psycopg.Connection[Any], before: str, after: str, why: str
) -> None:
    pt.create_stream_table("st", before, differential_max_change_ratio=0.0)
    conn.execute(PENDING)
    told = pt.cost_of_query("st", after)
    assert told.kept is None
    assert why in str(told.why)
    assert why in alter(pt, conn, after)["fallback_reason"]


def test_a_narrower_filter_hands_on_the_rows_that_go(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("st", PLACED, differential_max_change_ratio=0.0)
    reads = "SELECT customer_id, sum(amount) AS total FROM st GROUP BY customer_id"
    pt.create_stream_table("reader", reads, differential_max_change_ratio=0.0)
    conn.execute(PENDING)
    pt.alter_stream_table("st", query=f"{PLACED} AND customer_id < 4")
    assert pt.refresh_stream_table("reader").action == "DIFFERENTIAL"
    assert difference(conn, "reader", reads) == 0
    # The buffer has the old columns, so a new one is made, and its readers run FULL.
    pt.alter_stream_table("st", query=f"{PLACED.replace('amount FROM', 'amount, note FROM')} AND customer_id < 4")
    assert last(pt)["fallback_reason"] == f"{KEPT} (1 column added)"
    result = pt.refresh_stream_table("reader")
    assert (result.action, result.fallback_reason) == ("FULL", "buffer_lost")
    assert difference(conn, "reader", reads) == 0


def test_a_unit_keeps_what_is_stored(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    """A reader that is refreshed together with it reads the rows that go before they are committed."""
    pt.create_stream_table("st", PLACED, differential_max_change_ratio=0.0)
    pt.create_stream_table("reader", "SELECT id, amount FROM st", differential_max_change_ratio=0.0)
    pt.create_or_replace_stream_table(
        "st", f"{PLACED} AND customer_id < 4", initialize=False, differential_max_change_ratio=0.0
    )
    conn.execute(PENDING)
    results = pt.refresh(["st", "reader"])
    assert results["st"].fallback_reason == f"{KEPT} (filter narrowed)"
    assert results["reader"].action == "DIFFERENTIAL"
    assert difference(conn, "reader", f"SELECT id, amount FROM ({PLACED} AND customer_id < 4) q") == 0


def test_a_table_that_is_refreshed_with_what_it_reads_is_computed_anew(
    pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    pt.create_stream_table("source", PLACED, differential_max_change_ratio=0.0)
    pt.create_stream_table("st", "SELECT id, amount FROM source", differential_max_change_ratio=0.0)
    narrowed = "SELECT id, amount FROM source WHERE amount > 20"
    pt.create_or_replace_stream_table("st", narrowed, initialize=False, differential_max_change_ratio=0.0)
    conn.execute(PENDING)
    results = pt.refresh(["source", "st"])
    assert results["st"].fallback_reason == f"{ANEW} it is refreshed together with what it reads"
    assert difference(conn, "st", narrowed) == 0


def test_queries_that_follow_each_other_keep_what_the_first_one_stored(
    pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    declare = pt.create_or_replace_stream_table
    options: dict[str, Any] = {"initialize": False, "differential_max_change_ratio": 0.0}
    pt.create_stream_table("st", PLACED, differential_max_change_ratio=0.0)
    declare("st", PLACED.replace("10", "5"), **options)
    conn.execute(PENDING)
    query = f"{PLACED.replace('amount FROM', 'amount, note FROM')} AND customer_id < 4"
    declare("st", query, **options)
    assert pt.refresh_stream_table("st").fallback_reason == f"{KEPT} (1 column added, filter narrowed)"
    assert difference(conn, "st", query) == 0
    # There and back again: nothing has changed but the sources.
    declare("st", f"{query} AND id > 20", **options)
    declare("st", query, **options)
    conn.execute("DELETE FROM orders WHERE id = 11")
    result = pt.refresh_stream_table("st")
    assert (result.fallback_reason, result.rows_deleted) == (f"{KEPT} (rewritten)", 1)
    assert difference(conn, "st", query) == 0


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        ("TRUNCATE orders", "TRUNCATE"),
        ("UPDATE orders SET amount = amount + 1", "too much has changed"),
        ("ALTER TABLE orders DISABLE TRIGGER USER; DELETE FROM orders WHERE id > 30", "may be missing"),
        ("ALTER TABLE orders ALTER amount TYPE numeric(12,3)", "has changed as well|made anew"),
        ("ALTER TABLE st DROP COLUMN amount", "has changed as well"),
        (BY_HAND, "has changed as well"),
    ],
)  # fmt: skip
def test_what_can_not_be_trusted_is_computed_anew(
    pt: PgTrickle, conn: psycopg.Connection[Any], happens: str, why: str
) -> None:
    pt.create_stream_table("st", PLACED)
    query = f"{PLACED} AND customer_id < 4"
    pt.create_or_replace_stream_table("st", query, initialize=False)
    conn.execute(happens)
    result = pt.refresh_stream_table("st")
    assert result.action == "REINITIALIZE"
    reason = str(result.fallback_reason)
    assert reason.startswith(ANEW)
    assert any(part in reason for part in why.split("|")), reason
    assert difference(conn, "st", query) == 0


def test_a_full_refresh_that_somebody_asks_for_keeps_nothing(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("st", PLACED)
    pt.create_or_replace_stream_table("st", f"{PLACED} AND customer_id < 4", initialize=False)
    assert pt.refresh_stream_table("st", force_full=True).fallback_reason == "query_altered"
    assert difference(conn, "st", f"{PLACED} AND customer_id < 4") == 0


def test_a_value_that_only_a_row_that_went_lacks_is_no_error(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    """The change of the old content holds a row for which the new column has no value."""
    pt.create_stream_table("st", PLACED, differential_max_change_ratio=0.0)
    query = PLACED.replace("amount FROM", "amount, 100 / (amount - 15) AS x FROM")
    conn.execute("UPDATE orders SET amount = 14 WHERE amount = 15")
    pt.alter_stream_table("st", query=query)
    assert "a value can't be computed from what is stored: division by zero" in last(pt)["fallback_reason"]
    assert difference(conn, "st", query) == 0


def test_a_filter_keeps_a_new_column_from_a_row_without_a_value(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("st", PLACED)
    query = f"{PLACED.replace('amount FROM', 'amount, 100 / (amount - 15) AS x FROM')} AND amount <> 15"
    pt.alter_stream_table("st", query=query)
    assert last(pt)["fallback_reason"] == f"{KEPT} (1 column added, filter narrowed)"
    assert difference(conn, "st", query) == 0


def test_parts_and_tables_that_writers_maintain_are_computed_anew(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    ranked = "SELECT customer_id, sum(amount) AS total, rank() OVER (ORDER BY sum(amount)) AS r FROM orders GROUP BY 1"
    pt.create_stream_table("st", ranked, refresh_mode="DIFFERENTIAL")
    query = f"SELECT customer_id, total, r, r + 1 AS n FROM ({ranked}) q"
    assert pt.cost_of_query("st", query).kept is None
    pt.alter_stream_table("st", query=query)
    assert last(pt)["fallback_reason"].startswith("query_altered")
    assert "kept what" not in last(pt)["fallback_reason"]
    assert difference(conn, "st", query) == 0
    pt.create_stream_table("live", PLACED, refresh_mode="IMMEDIATE")
    query = f"{PLACED} AND customer_id < 4"
    assert "writers maintain it" in str(pt.cost_of_query("live", query).why)
    pt.alter_stream_table("live", query=query)
    assert any("writers maintain it" in str(row["fallback_reason"]) for row in pt.history("live"))
    conn.execute("DELETE FROM orders WHERE id = 11")
    assert difference(conn, "live", query) == 0


def test_an_alteration_that_fails_leaves_the_old_query_and_its_content(
    dsn: str, pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    pt.create_stream_table("st", PLACED, differential_max_change_ratio=0.0)

    class Failing(PostgresExecutor):
        def compute(self, *work: Any) -> Any:
            raise RuntimeError("the executor is gone")

    broken = PgTrickle(dsn, executor=lambda: Failing(Database(dsn)), retry_attempts=1)
    with broken, pytest.raises(RuntimeError, match="gone"):
        broken.alter_stream_table("st", query=f"{PLACED} AND customer_id < 4")
    conn.execute(PENDING)
    assert pt.refresh_stream_table("st").action == "DIFFERENTIAL"
    assert difference(conn, "st", PLACED) == 0


def test_a_partitioned_table_keeps_what_is_stored(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("st", PLACED, partition_by="HASH (id)", differential_max_change_ratio=0.0)
    conn.execute(PENDING)
    done = alter(pt, conn, f"{PLACED.replace('amount FROM', 'amount, note FROM')} AND customer_id < 4")
    assert done["fallback_reason"] == f"{KEPT} (1 column added, filter narrowed)"
