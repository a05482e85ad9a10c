"""TPC-H as the product runs it: 22 stream tables, refreshed on Spark, and equal in every cycle."""

from __future__ import annotations

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from tests.benchmarks import tpch
from tests.benchmarks.tpch.queries import NUMBERS
from tests.spark.algebra.test_in_spark import equal
from tests.ways import prefer

SCALE = 0.01
CYCLES = 5
#: As differences that PostgreSQL computes, and as contents that Spark does as far as it can.
WAYS = {"pushed": "DIFFERENTIAL", "lowered": "FULL"}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["pushed", pytest.param("lowered", marks=pytest.mark.slow)])
def test_every_query_is_equal_in_every_cycle(dsn: str, spark: object, way: str) -> None:
    with (
        PgTrickle(dsn, spark, differential_max_change_ratio=0.0) as pt,  # type: ignore[arg-type]
        psycopg.connect(dsn, autocommit=True) as conn,
    ):
        pt.install()
        tpch.load(conn, SCALE)
        queries = {f"q{number:02}": tpch.query(number, SCALE) for number in NUMBERS}
        shown = {}
        for name, query in queries.items():
            made = pt.create_stream_table(name, query, schedule="1h")
            shown[name] = ", ".join(f'"{column.name}"' for column in made.visible)
            if way == "lowered":
                prefer(conn, name, way)
        for cycle in range(CYCLES):
            assert tpch.change(conn, cycle, fraction=0.005) > 100
            for name, query in queries.items():
                result = pt.refresh_stream_table(name, force_full=way == "lowered")
                assert (result.action, result.spark_jobs > 0) == (WAYS[way], True), (name, cycle, result)
                equal(dsn, name, query, shown[name])
