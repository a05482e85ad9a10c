"""Create or replace: the same declaration again does nothing, another one is carried out."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import UsageError
from tests.database.declare.conftest import TOTALS, difference


def refreshes(conn: psycopg.Connection[Any]) -> int:
    row = conn.execute("SELECT count(*) FROM pgtrickle.pgt_refresh_history").fetchone()
    assert row is not None
    return row[0]


def changed_at(conn: psycopg.Connection[Any]) -> Any:
    return conn.execute("SELECT max(updated_at) FROM pgtrickle.pgt_stream_tables").fetchone()


def test_it_creates_what_is_not_there(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    assert pt.create_or_replace_stream_table("order_totals", TOTALS, schedule="5m").is_populated
    assert difference(conn, "order_totals", TOTALS) == 0


def test_the_same_declaration_again_does_nothing(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_or_replace_stream_table("order_totals", TOTALS, schedule="5m")
    before = (refreshes(conn), changed_at(conn))
    pt.create_or_replace_stream_table(
        "order_totals",
        "select orders.customer_id,  SUM(amount) total from public.orders /* all of them */ group by 1",
        schedule="5m",
    )
    assert (refreshes(conn), changed_at(conn)) == before


def test_another_option_changes_no_row(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_or_replace_stream_table("order_totals", TOTALS, schedule="5m", tier="warm")
    before = refreshes(conn)
    table = pt.create_or_replace_stream_table("order_totals", TOTALS, refresh_mode="FULL")
    assert (table.schedule, table.refresh_mode, table.tier) == (None, "FULL", "hot")
    assert refreshes(conn) == before


def test_another_query_is_carried_out(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    first = pt.create_or_replace_stream_table("order_totals", TOTALS)
    query = "SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id"
    second = pt.create_or_replace_stream_table("order_totals", query)
    assert (second.id, second.relid) == (first.id, first.relid)
    assert difference(conn, "order_totals", query) == 0


def test_a_star_that_means_more_columns_by_now_is_another_query(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_or_replace_stream_table("everyone", "SELECT * FROM customers")
    conn.execute("ALTER TABLE customers ADD COLUMN since date DEFAULT date '2020-01-01'")
    pt.create_or_replace_stream_table("everyone", "SELECT * FROM customers")
    assert difference(conn, "everyone", "SELECT * FROM customers") == 0


def test_what_was_created_empty_is_filled(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_or_replace_stream_table("order_totals", TOTALS, initialize=False)
    assert pt.create_or_replace_stream_table("order_totals", TOTALS).is_populated
    assert difference(conn, "order_totals", TOTALS) == 0


def test_another_partition_key_is_refused(pt: PgTrickle) -> None:
    pt.create_or_replace_stream_table("order_totals", TOTALS)
    with pytest.raises(UsageError, match="partition_by can't be altered"):
        pt.create_or_replace_stream_table("order_totals", TOTALS, partition_by="customer_id")
