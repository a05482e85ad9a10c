"""Altering stream tables: options, status, and the query with its columns."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.declare.alter import alter
from airflow_provider_pgtrickle.engine.errors import (
    CycleDetected,
    NotDifferentiable,
    PgTrickleWarning,
    RefreshError,
    SyntaxFault,
    UsageError,
)
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests import servers
from tests.answers import only
from tests.database.declare.conftest import TOTALS, difference, traces

COUNTED = "SELECT customer_id, sum(amount) AS total, count(*) AS orders FROM orders GROUP BY customer_id"


@pytest.fixture
def totals(pt: PgTrickle) -> None:
    pt.create_stream_table("order_totals", TOTALS, schedule="5m")


def oid(conn: psycopg.Connection[Any], name: str = "order_totals") -> int:
    return int(only(conn.execute("SELECT %s::regclass::oid", (name,)))[0])


def columns(conn: psycopg.Connection[Any], name: str = "order_totals") -> list[str]:
    described = conn.execute(f"SELECT * FROM {name} LIMIT 0").description or []
    return [column.name for column in described if not column.name.startswith("__pgt_")]


@pytest.mark.usefixtures("totals")
def test_options_change_in_place(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    before = oid(conn)
    table = pt.alter_stream_table("order_totals", schedule="10m", refresh_mode="FULL", cdc_mode="trigger", tier="cold")
    assert (table.schedule, table.refresh_mode, table.requested_cdc_mode, table.tier) == (
        "10m",
        "FULL",
        "trigger",
        "cold",
    )
    assert (table.status, table.is_populated, oid(conn)) == ("ACTIVE", True, before)


@pytest.mark.usefixtures("totals")
def test_all_changes_are_made_or_none(pt: PgTrickle) -> None:
    with pytest.raises(UsageError):
        pt.alter_stream_table("order_totals", schedule="10m", tier="tepid")
    with pytest.raises(UsageError):
        pt.alter_stream_table("order_totals", schedule="10m", status="sleeping")
    assert pt.alter_stream_table("order_totals").schedule == "5m"


@pytest.mark.usefixtures("totals")
def test_resuming_forgets_the_errors_and_says_so(
    pt: PgTrickle, conn: psycopg.Connection[Any], database: Database
) -> None:
    assert pt.alter_stream_table("order_totals", status="suspended").status == "SUSPENDED"
    conn.execute("UPDATE pgtrickle.pgt_stream_tables SET consecutive_errors = 3, last_error = 'broken'")
    with database.connect(autocommit=True) as listener:
        listener.execute("LISTEN pg_trickle_alert")
        table = pt.alter_stream_table("order_totals", status="ACTIVE")
        heard = [json.loads(notice.payload) for notice in listener.notifies(timeout=10, stop_after=1)]
    assert (table.status, table.consecutive_errors, table.last_error) == ("ACTIVE", 0, None)
    assert [(alert["event"], alert["stream_table"]) for alert in heard] == [("resumed", "public.order_totals")]


@pytest.mark.usefixtures("totals")
def test_what_can_not_be_altered_says_what_to_do(pt: PgTrickle) -> None:
    with pytest.raises(UsageError, match="Drop the stream table and create it again"):
        pt.alter_stream_table("order_totals", partition_by="customer_id")
    with pytest.raises(UsageError, match="use refresh_mode AUTO"):
        pt.alter_stream_table("order_totals", refresh_mode="IMMEDIATE", schedule="1m")
    with pytest.raises(UsageError, match="There is no option named 'color'"):
        pt.alter_stream_table("order_totals", color="red")


def test_differential_is_refused_for_a_query_that_has_no_difference(pt: PgTrickle) -> None:
    with pytest.warns(PgTrickleWarning):
        pt.create_stream_table("odds", "SELECT id, random() AS r FROM orders")
    with pytest.raises(NotDifferentiable, match=r"public\.odds"):
        pt.alter_stream_table("odds", refresh_mode="DIFFERENTIAL")


@pytest.mark.usefixtures("totals")
def test_the_same_columns_keep_the_table(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    before, query = oid(conn), f"{TOTALS} HAVING sum(amount) > 100"
    pt.alter_stream_table("order_totals", query=query)
    assert oid(conn) == before
    assert difference(conn, "order_totals", query) == 0


@pytest.mark.usefixtures("totals")
def test_columns_come_and_go_and_the_table_stays(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    before = oid(conn)
    conn.execute("CREATE INDEX by_customer ON order_totals (customer_id)")
    conn.execute("GRANT SELECT ON order_totals TO PUBLIC")
    pt.alter_stream_table("order_totals", query=COUNTED, schedule="7m")
    assert difference(conn, "order_totals", COUNTED) == 0
    pt.alter_stream_table("order_totals", query="SELECT customer_id, count(*) AS orders FROM orders GROUP BY 1")
    assert columns(conn) == ["customer_id", "orders"]
    assert oid(conn) == before
    assert conn.execute("SELECT to_regclass('by_customer') IS NOT NULL").fetchone() == (True,)


@pytest.mark.usefixtures("totals")
def test_another_type_rebuilds_the_table_with_its_grants_and_a_warning(
    pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    before = oid(conn)
    conn.execute("GRANT SELECT, REFERENCES ON order_totals TO PUBLIC")
    query = "SELECT customer_id, sum(amount)::text AS total FROM orders GROUP BY customer_id"
    with pytest.warns(PgTrickleWarning, match="dropped and made again"):
        table = pt.alter_stream_table("order_totals", query=query)
    assert oid(conn) == table.relid != before
    assert difference(conn, "order_totals", query) == 0
    granted = conn.execute(
        "SELECT privilege_type FROM information_schema.role_table_grants"
        " WHERE table_name = 'order_totals' AND grantee = 'PUBLIC' ORDER BY 1"
    ).fetchall()
    assert granted == [("REFERENCES",), ("SELECT",)]
    with pytest.raises(psycopg.Error):
        conn.execute("DELETE FROM order_totals")


@pytest.mark.usefixtures("totals")
def test_the_warning_points_at_the_line_that_altered(pt: PgTrickle) -> None:
    with pytest.warns(PgTrickleWarning) as warned:
        pt.alter_stream_table("order_totals", query="SELECT customer_id::text AS total FROM orders")
    assert warned[0].filename == __file__


@pytest.mark.usefixtures("totals")
def test_rows_keep_following_the_new_query(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.alter_stream_table("order_totals", query=COUNTED)
    conn.execute("INSERT INTO orders VALUES (1000, 3, 9.25, '2026-04-01')")
    assert pt.refresh_stream_table("order_totals").source_changes == 1
    assert difference(conn, "order_totals", COUNTED) == 0


@pytest.mark.usefixtures("totals")
def test_capture_follows_the_query(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    query = "SELECT region, count(*) AS n FROM customers GROUP BY region"
    pt.alter_stream_table("order_totals", query=query)
    assert traces(conn)["tracking"] == ["customers"]
    assert traces(conn)["dependencies"] == ["customers"]
    assert difference(conn, "order_totals", query) == 0


@pytest.mark.usefixtures("totals")
def test_twins_become_distinct(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("regions", "SELECT region FROM customers")
    pt.alter_stream_table("regions", query="SELECT DISTINCT region FROM customers")
    assert difference(conn, "regions", "SELECT DISTINCT region FROM customers") == 0


@pytest.mark.usefixtures("totals")
@pytest.mark.parametrize("query", [COUNTED, TOTALS.replace(" FROM", ", max(placed) AS latest FROM")])
def test_readers_see_the_old_rows_until_the_new_ones_are_there(
    dsn: str, conn: psycopg.Connection[Any], database: Database, query: str
) -> None:
    """The first query's content follows from what is stored and what is pending, the second's is computed anew."""
    conn.execute("UPDATE orders SET amount = amount + 1 WHERE id = 1")
    seen: list[tuple[list[str], int]] = []

    class Watching(PostgresExecutor):
        def compute(self, *arguments: Any) -> Any:
            with servers.user_session(database.dsn) as reader:
                (rows,) = only(reader.execute("SELECT count(*) FROM order_totals"))
                seen.append((columns(reader), rows))
            return super().compute(*arguments)

    with PgTrickle(dsn, executor=lambda: Watching(database)) as client:
        client.alter_stream_table("order_totals", query=query)
    assert seen == [(["customer_id", "total"], 10)]
    assert columns(conn)[:2] == ["customer_id", "total"]
    assert difference(conn, "order_totals", query) == 0


@pytest.mark.usefixtures("totals")
@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SELECT nothing FROM orders", SyntaxFault),
        ("SELECT customer_id, 1 / (id - 7) AS total FROM orders", RefreshError),
        ("SELECT c.region, 1 / (c.id - 7) AS n FROM customers c", RefreshError),
        ("SELECT customer_id FROM order_totals", CycleDetected),
    ],
)
def test_a_query_that_fails_changes_nothing(
    pt: PgTrickle, conn: psycopg.Connection[Any], query: str, error: type[Exception]
) -> None:
    left = traces(conn)
    before = pt.alter_stream_table("order_totals")
    with pytest.raises(error):
        pt.alter_stream_table("order_totals", query=query, schedule="9m")
    after = pt.alter_stream_table("order_totals")
    assert (after.defining_query, after.schedule, after.needs_reinit, after.status, after.consecutive_errors) == (
        before.defining_query,
        "5m",
        False,
        "ACTIVE",
        0,
    )
    assert traces(conn) == left
    assert columns(conn) == ["customer_id", "total"]
    conn.execute("DELETE FROM orders WHERE id = 3")
    pt.refresh_stream_table("order_totals")
    assert difference(conn, "order_totals", TOTALS) == 0


@pytest.mark.usefixtures("totals")
def test_a_circle_is_refused_with_its_path(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("b", "SELECT customer_id, total FROM order_totals")
    conn.execute("CREATE VIEW detour AS SELECT customer_id, total FROM b")
    with pytest.raises(CycleDetected, match=r"public\.b → public\.order_totals → public\.b"):
        pt.alter_stream_table("order_totals", query="SELECT customer_id, total FROM detour")


@pytest.mark.usefixtures("totals")
def test_a_killed_alter_is_completed_by_the_next_refresh(
    dsn: str, pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    table = pt.alter_stream_table("order_totals")
    with pt.database.transaction() as session:
        alter(session, pt.settings, table.qualified, {"query": COUNTED})
    assert columns(conn) == ["customer_id", "total"]
    assert pt.refresh_stream_table("order_totals").action == "REINITIALIZE"
    assert difference(conn, "order_totals", COUNTED) == 0


@pytest.mark.usefixtures("totals")
def test_a_column_that_a_view_reads_can_not_go(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE VIEW report AS SELECT total FROM order_totals")
    with pytest.raises(UsageError, match="report"):
        pt.alter_stream_table("order_totals", query="SELECT customer_id, count(*) AS n FROM orders GROUP BY 1")
    assert columns(conn) == ["customer_id", "total"]
    assert difference(conn, "order_totals", TOTALS) == 0


@pytest.mark.usefixtures("totals")
def test_downstream_tables_follow_a_rebuild(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    reader = "SELECT customer_id FROM order_totals"
    pt.create_stream_table("reader", reader)
    with pytest.warns(PgTrickleWarning):
        pt.alter_stream_table(
            "order_totals", query="SELECT customer_id, max(note) AS total FROM orders WHERE id > 5 GROUP BY 1"
        )
    pt.refresh_stream_table("reader")
    conn.execute("DELETE FROM orders WHERE customer_id = 4")
    pt.refresh_stream_table("reader")
    assert difference(conn, "reader", reader) == 0
