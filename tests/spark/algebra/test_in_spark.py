"""FULLs whose joins and aggregates run in Spark itself, held against PostgreSQL after every cycle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from tests.ways import prefer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOP = """
CREATE TABLE customers (id int PRIMARY KEY, name text, region varchar(10));
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id int, amount numeric(10,2), qty int, placed date, note text);
CREATE TABLE log (customer_id int, what text, n smallint);
INSERT INTO customers SELECT i, 'c' || i % 7, CASE WHEN i % 5 > 0 THEN 'r' || i % 3 END FROM generate_series(1, 60) i;
INSERT INTO orders SELECT i, nullif(i % 63, 0), (i * 7 % 1000) / 10.0, i % 4, date '2024-01-01' + i % 90,
    CASE i % 3 WHEN 0 THEN '' WHEN 1 THEN E'a\\n"b", é' END FROM generate_series(1, 600) i;
INSERT INTO log SELECT i % 40, 'w' || i % 4, i % 9 FROM generate_series(1, 300) i;
"""
CYCLES = (
    "INSERT INTO orders SELECT i, i % 50, 3.5, 1, date '2024-05-01', NULL FROM generate_series(1001, 1040) i;"
    "UPDATE customers SET region = 'r9', name = 'z' WHERE id % 6 = 0; DELETE FROM log WHERE n = 3",
    "DELETE FROM orders WHERE id % 11 = 0; DELETE FROM customers WHERE id % 11 = 0;"
    "INSERT INTO log SELECT 5, 'w1', 4 FROM generate_series(1, 6)",
    "UPDATE orders SET customer_id = NULL WHERE id % 13 = 0; UPDATE orders SET amount = NULL, qty = qty + 1"
    " WHERE id % 7 = 0;"
    "INSERT INTO customers VALUES (500, NULL, NULL); UPDATE log SET what = NULL WHERE customer_id < 4",
)
QUERIES = {
    "join": "SELECT o.id, c.name, o.amount, o.placed, o.note FROM orders o JOIN customers c ON c.id = o.customer_id",
    "left_join": "SELECT c.id, c.name, o.id AS oid, o.amount FROM customers c LEFT JOIN orders o"
    " ON o.customer_id = c.id AND o.qty > 1",
    "full_join": "SELECT c.id, l.customer_id, l.what FROM customers c FULL JOIN log l ON l.customer_id = c.id",
    "sums": "SELECT c.region, count(*) AS n, count(o.note) AS notes, sum(o.amount) AS total, avg(o.amount) AS mean,"
    " sum(o.qty) AS qty, sum(o.id) AS ids, sum(o.amount * o.qty) FILTER (WHERE o.qty > 1) AS big"
    " FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.region",
    "extremes": "SELECT c.name, min(o.amount) AS lo, max(o.qty) AS hi FROM orders o JOIN customers c"
    " ON c.id = o.customer_id GROUP BY c.name",
    "distinct": "SELECT DISTINCT c.region, l.what FROM customers c JOIN log l ON l.customer_id = c.id",
    "except_all": "SELECT customer_id FROM log EXCEPT ALL SELECT customer_id FROM orders",
    "union": "SELECT c.name AS k, o.qty FROM customers c JOIN orders o ON o.customer_id = c.id"
    " UNION SELECT l.what, l.n::int FROM log l",
    "case": "SELECT c.region, sum(CASE WHEN o.qty > c.id THEN o.amount ELSE 0 END) AS s FROM orders o"
    " JOIN customers c ON c.id = o.customer_id GROUP BY c.region",
    "total": "SELECT count(*) AS n, sum(o.amount) AS s FROM orders o JOIN customers c ON c.id = o.customer_id",
    "three": "SELECT c.name, l.what, count(*) AS n FROM orders o JOIN customers c ON c.id = o.customer_id JOIN log l"
    " ON l.customer_id = c.id GROUP BY c.name, l.what",
    "having": "SELECT c.region, count(*) AS n FROM orders o JOIN customers c ON c.id = o.customer_id"
    " GROUP BY c.region HAVING count(*) > 100",
}


@pytest.fixture
def shop(dsn: str, spark: SparkSession) -> Iterator[PgTrickle]:
    """The shop, refreshed with Spark doing all it can."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(SHOP)
        conn.execute("ANALYZE")
    with PgTrickle(
        dsn,
        spark,
        read_partition_rows=200,
        # Over a part, HAVING would be a filter that PostgreSQL computes.
        keep_parts=False,
    ) as pt:
        pt.install()
        yield pt


def equal(dsn: str, table: str, query: str, columns: str) -> None:
    with psycopg.connect(dsn) as conn:
        for left, right in ((f"SELECT {columns} FROM {table}", query), (query, f"SELECT {columns} FROM {table}")):
            wrong = conn.execute(f"({left}) EXCEPT ALL ({right}) LIMIT 5").fetchall()
            assert not wrong, f"{table}: {wrong}"


def test_every_operator_on_spark_equals_postgresql(shop: PgTrickle, dsn: str) -> None:
    columns = {}
    for name, query in QUERIES.items():
        made = shop.create_stream_table(f"st_{name}", query, schedule="5m", initialize=False)
        columns[name] = ", ".join(f'"{c.name}"' for c in made.visible)
        with psycopg.connect(dsn, autocommit=True) as conn:
            prefer(conn, f"st_{name}", "lowered")
    for statements in ("", *CYCLES):
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(statements)
        for name, query in QUERIES.items():
            result = shop.refresh_stream_table(f"st_{name}", force_full=True)
            assert (result.action, result.way) == ("FULL", "lowered"), name
            assert "leaf" in shop.history(f"st_{name}", 1)[0]["plan"], name
            assert result.reads > 1, f"{name} was left to PostgreSQL"
            equal(dsn, f"st_{name}", query, columns[name])
