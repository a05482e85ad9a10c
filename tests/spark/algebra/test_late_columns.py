"""Columns that Spark leaves to PostgreSQL, which computes them on the stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from tests.ways import prefer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLES = """
    CREATE DOMAIN filled AS numeric CHECK (VALUE IS NOT NULL);
    CREATE TABLE g (g int PRIMARY KEY, name text);
    CREATE TABLE t (id int PRIMARY KEY, g int, v int);
    INSERT INTO g SELECT i, 'g' || i FROM generate_series(0, 6) i;
    INSERT INTO t SELECT i, i % 7, i FROM generate_series(1, 200) i;
    ANALYZE g, t;
"""


@pytest.mark.parametrize(("type_", "way"), [("numeric", "lowered"), ("filled", "pushed")])
def test_a_domain_never_meets_what_isnt_filled_yet(spark: SparkSession, dsn: str, type_: str, way: str) -> None:
    query = f"SELECT g.name, avg(t.v)::{type_} AS mean FROM t JOIN g USING (g) GROUP BY g.name"
    lowered: dict[str, Any] = {"read_partition_rows": 20}
    with psycopg.connect(dsn, autocommit=True) as conn, PgTrickle(dsn, spark, **lowered) as pt:
        pt.install()
        conn.execute(_TABLES)
        pt.create_stream_table("st", query)
        prefer(conn, "st", "lowered")
        for change in ("UPDATE t SET v = v + 1 WHERE id < 30", "DELETE FROM t WHERE g = 3"):
            conn.execute(change)
            result = pt.refresh_stream_table("st", force_full=True)
            assert (result.action, result.way) == ("FULL", way)
            for one, other in (("SELECT name, mean FROM st", query), (query, "SELECT name, mean FROM st")):
                assert conn.execute(f"({one}) EXCEPT ALL ({other})").fetchall() == []
