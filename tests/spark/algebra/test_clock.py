"""The clock on Spark: plans that join and aggregate there mean the same instant as PostgreSQL's own answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.unit import refresh_unit
from tests.database.refresh.test_zones import NEW_YORK, TABLES, changes, differs, filled, instants
from tests.database.refresh.test_zones import QUERIES as ZONED
from tests.database.reported.conftest import Site
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


@pytest.mark.parametrize("kind", ["spark", "connect"])
@pytest.mark.parametrize("small", [False, True], ids=["to the driver", "to the stage"])
def test_spark_carries_what_postgresql_computes_in_a_zone(
    request: pytest.FixtureRequest, dsn: str, kind: str, small: bool
) -> None:
    """By JDBC, by COPY and in slices; nothing is lowered, though that would have been the cheapest."""
    chance, ways = random.Random(f"{kind} {small}"), set()
    limits: dict[str, Any] = {"collect_max_rows": 3, "read_partition_rows": 5} if small else {}
    with (
        psycopg.connect(dsn, autocommit=True) as conn,
        PgTrickle(dsn, request.getfixturevalue(kind), differential_max_change_ratio=0.0, **limits) as pt,
    ):
        pt.install()
        site = Site(conn, pt)
        site.run(*TABLES)
        filled(site, chance)
        times = "timestamptz '2026-03-06 20:00+00' + n * interval '1 min'"
        site.run(f"INSERT INTO e SELECT n, n % 3, n, {times} FROM generate_series(100, 3000) n", "ANALYZE")
        queries = {f"st_{number}": ZONED[what] for number, what in enumerate(("cast", "by instant", "days", "mixed"))}
        for name, query in queries.items():
            site.declare(name, query, timezone=NEW_YORK, initialize=False, refresh_mode="DIFFERENTIAL")
            prefer(conn, name, "sliced" if small else "lowered")
        for number, at in enumerate(instants(chance, 4)):
            site.run(*changes(chance, at))
            for name, query in queries.items():
                (result,) = refresh_unit(
                    pt.database,
                    [QualifiedName("public", name)],
                    executor=lambda: pt._usable_executor(),
                    settings=pt.settings,
                    force_full=number == 2,
                    instant=at,
                ).values()
                ways.add(result.way)
                assert result.action in ("FULL", "NO_DATA") or number not in (0, 2)
                assert differs(site, name, query, NEW_YORK, at) == [], (name, at)
        assert pt.verify().differences == 0
    assert "lowered" not in ways
    assert ("sliced" if small else "pushed") in ways
