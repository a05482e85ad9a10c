"""Whoever takes columns by `*` is told what that means, and it does mean that."""

from __future__ import annotations

import warnings
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import PgTrickleWarning
from tests.database.declare.conftest import difference


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT * FROM orders", "orders"),
        ("SELECT o.* FROM public.orders o JOIN customers c ON c.id = o.customer_id", "public.orders"),
        ("SELECT * FROM orders NATURAL JOIN (SELECT 1 AS customer_id) c", "orders"),
        ("SELECT s.id FROM (SELECT * FROM orders) s", "orders"),
    ],
)
def test_a_star_over_a_relation_is_told(pt: PgTrickle, query: str, names: str) -> None:
    with pytest.warns(PgTrickleWarning, match=rf"`\*` takes in each column that {names} will get"):
        pt.create_stream_table("st", query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS n FROM orders",
        "SELECT * FROM (SELECT id, amount FROM orders) o",
        "WITH o AS (SELECT id FROM orders) SELECT * FROM o",
        "SELECT id FROM customers c WHERE EXISTS (SELECT * FROM orders o WHERE o.customer_id = c.id)",
        "SELECT amount * 2 AS twice, '*' AS star FROM orders",
    ],
)
def test_another_star_is_not(pt: PgTrickle, query: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pt.create_stream_table("st", query)


def test_a_column_that_comes_is_taken_in_by_a_full_refresh_and_where_columns_are_named_by_none(
    pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    with pytest.warns(PgTrickleWarning):
        pt.create_stream_table("st", "SELECT * FROM orders")
    pt.create_stream_table("named", "SELECT id, amount FROM orders", refresh_mode="DIFFERENTIAL")
    conn.execute("ALTER TABLE orders ADD COLUMN more int DEFAULT 7")
    conn.execute("UPDATE orders SET amount = 1 WHERE id = 2")
    assert pt.refresh_stream_table("st").action == "REINITIALIZE"
    assert pt.refresh_stream_table("named").action == "DIFFERENTIAL"
    assert difference(conn, "st", "SELECT * FROM orders") == 0
    assert difference(conn, "named", "SELECT id, amount FROM orders") == 0
