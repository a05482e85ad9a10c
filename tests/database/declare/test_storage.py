"""A source changes its shape: the next refresh reads the query anew and reshapes the table."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.declare.columns import Column
from airflow_provider_pgtrickle.engine.declare.table import Change, compare
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from tests.database.declare.conftest import TOTALS, difference, traces


def test_a_star_takes_new_columns_along(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("everyone", "SELECT * FROM customers")
    before = conn.execute("SELECT 'everyone'::regclass::oid").fetchone()
    conn.execute("ALTER TABLE customers ADD COLUMN since date DEFAULT date '2020-01-01'")
    result = pt.refresh_stream_table("everyone")
    assert (result.action, result.fallback_reason) == ("REINITIALIZE", "schema_changed")
    assert difference(conn, "everyone", "SELECT * FROM customers") == 0
    assert conn.execute("SELECT 'everyone'::regclass::oid").fetchone() == before
    conn.execute("UPDATE customers SET since = date '2021-01-01' WHERE id = 1")
    pt.refresh_stream_table("everyone")
    assert difference(conn, "everyone", "SELECT * FROM customers") == 0


def test_named_columns_don_t_care_for_new_ones(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("order_totals", TOTALS)
    conn.execute("ALTER TABLE orders ADD COLUMN extra text")
    assert pt.refresh_stream_table("order_totals").action == "NO_DATA"


def test_another_type_of_a_source_s_column_rebuilds_the_table(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("amounts", "SELECT id, amount FROM orders")
    conn.execute("ALTER TABLE orders ALTER COLUMN amount TYPE numeric(12,4)")
    assert pt.refresh_stream_table("amounts").action == "REINITIALIZE"
    kind = conn.execute(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'amounts'::regclass AND attname = 'amount'"
    ).fetchone()
    assert kind == ("numeric(12,4)",)
    assert difference(conn, "amounts", "SELECT id, amount FROM orders") == 0


def test_another_body_of_a_view_is_another_query(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE VIEW big AS SELECT id, amount FROM orders WHERE amount > 10")
    pt.create_stream_table("bigs", "SELECT id, amount FROM big")
    conn.execute(
        "CREATE OR REPLACE VIEW big AS SELECT o.id, o.amount FROM orders o JOIN customers c ON c.id = o.customer_id"
        " WHERE c.region = 'north'"
    )
    assert pt.refresh_stream_table("bigs").action == "REINITIALIZE"
    assert difference(conn, "bigs", "SELECT id, amount FROM big") == 0
    assert traces(conn)["tracking"] == ["customers", "orders"]
    conn.execute("UPDATE customers SET region = 'north' WHERE id = 1")
    pt.refresh_stream_table("bigs")
    assert difference(conn, "bigs", "SELECT id, amount FROM big") == 0


def test_a_table_made_anew_under_the_same_name_is_read(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("names", "SELECT name FROM customers")
    conn.execute("DROP TABLE customers")
    conn.execute("CREATE TABLE customers (id int PRIMARY KEY, name varchar(40))")
    conn.execute("INSERT INTO customers VALUES (1, 'new')")
    assert pt.refresh_stream_table("names").action == "REINITIALIZE"
    conn.execute("INSERT INTO customers VALUES (2, 'newer')")
    pt.refresh_stream_table("names")
    assert difference(conn, "names", "SELECT name FROM customers") == 0


def test_a_column_that_is_gone_fails_by_name_and_keeps_the_rows(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("order_totals", TOTALS)
    conn.execute("ALTER TABLE orders DROP COLUMN amount")
    with pytest.raises(PgTrickleError, match=r"public\.order_totals.*amount"):
        pt.refresh_stream_table("order_totals")
    assert conn.execute("SELECT count(*) FROM order_totals").fetchone() == (10,)
    conn.execute("ALTER TABLE orders ADD COLUMN amount numeric(10,2) DEFAULT 1")
    pt.alter_stream_table("order_totals", status="ACTIVE")
    assert pt.refresh_stream_table("order_totals").action == "REINITIALIZE"
    assert difference(conn, "order_totals", TOTALS) == 0


@pytest.mark.parametrize(
    "statements",
    [
        "ALTER TABLE orders DROP COLUMN amount; ALTER TABLE orders ADD COLUMN amount numeric(10,2) DEFAULT 1",
        "ALTER TABLE orders ALTER COLUMN amount TYPE numeric(10,2) USING amount * 2",
    ],
)
def test_values_that_no_trigger_saw_are_read_anew(
    pt: PgTrickle, conn: psycopg.Connection[Any], statements: str
) -> None:
    pt.create_stream_table("order_totals", TOTALS)
    conn.execute(statements)
    assert pt.refresh_stream_table("order_totals").action == "REINITIALIZE"
    assert difference(conn, "order_totals", TOTALS) == 0


def test_a_table_that_somebody_dropped_is_made_again(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("order_totals", TOTALS)
    conn.execute("DROP TABLE order_totals")
    pt.alter_stream_table("order_totals", query=TOTALS)
    assert difference(conn, "order_totals", TOTALS) == 0


@pytest.mark.parametrize(
    ("stored", "wanted", "change"),
    [
        ({"a": "integer"}, {"a": "integer"}, Change.SAME),
        ({"a": "integer", "b": "text"}, {"b": "text", "a": "integer"}, Change.SAME),
        ({"a": "integer"}, {"a": "integer", "b": "text"}, Change.COMPATIBLE),
        ({"a": "integer", "b": "text"}, {"b": "text"}, Change.COMPATIBLE),
        ({"a": "integer"}, {"a": "bigint"}, Change.REBUILD),
        ({"a": "numeric(10,2)"}, {"a": "numeric(10,3)"}, Change.REBUILD),
        ({"a": "integer"}, {"b": "integer"}, Change.REBUILD),
    ],
)
def test_the_smallest_change_is_found(stored: dict[str, str], wanted: dict[str, str], change: Change) -> None:
    found = compare(
        [Column("__pgt_row_id", "bigint"), *(Column(*column) for column in stored.items())],
        [Column(*column) for column in wanted.items()],
    )
    assert found is change
