"""The clock on Spark: plans that join and aggregate there mean the same instant as PostgreSQL's own answer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.unit import refresh_unit
from tests.oracle.harness import at_instant
from tests.spark.algebra.test_in_spark import equal
from tests.ways import prefer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)
SHOP = """
CREATE TABLE customers (id int PRIMARY KEY, region varchar(10), paid_to date);
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id int, qty int, at timestamptz);
INSERT INTO customers SELECT i, 'r' || i % 3, date '2026-03-20' + i FROM generate_series(1, 60) i;
INSERT INTO orders SELECT i, i % 63, i % 4, timestamptz '2026-03-28 12:00+00' - i * interval '3 hours'
  FROM generate_series(-200, 400) i;
ANALYZE
"""
QUERIES = {
    "joined": "SELECT o.id, c.region FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE o.at > now() - interval '1 month' AND o.at <= now() AND c.paid_to >= current_date",
    "optional": "SELECT c.id, o.id AS o FROM customers c LEFT JOIN orders o ON o.customer_id = c.id AND o.at > now()",
}
COLUMNS = {"joined": "id, region", "optional": "id, o"}


@pytest.fixture
def shop(dsn: str, spark: SparkSession) -> Iterator[PgTrickle]:
    """The shop, refreshed with Spark doing all it can."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(SHOP)
    with PgTrickle(dsn, spark, read_partition_rows=200) as pt:
        pt.install()
        yield pt


def test_windows_move_on_spark(shop: PgTrickle, dsn: str) -> None:
    for name, query in QUERIES.items():
        shop.create_stream_table(name, query, initialize=False)
        with psycopg.connect(dsn, autocommit=True) as conn:
            prefer(conn, name, "lowered")
    at, ways = NOON, set()
    for number, hours in enumerate((0, 70, -24 * 8)):
        at += timedelta(hours=hours)
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("UPDATE orders SET at = at + interval '1 day' WHERE id %% 9 = %s", (number,))
        for name, query in QUERIES.items():
            (result,) = refresh_unit(
                shop.database,
                [QualifiedName("public", name)],
                executor=lambda: shop._usable_executor(),
                settings=shop.settings,
                force_full=True,
                instant=at,
            ).values()
            assert result.action == "FULL", name
            ways.add((name, result.way))
            equal(dsn, name, at_instant(query, at.isoformat()), COLUMNS[name])
    assert ("joined", "lowered") in ways
