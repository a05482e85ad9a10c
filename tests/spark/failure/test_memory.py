"""Memory is too short for one of Spark's ways: another one computes it, and is taken at once from that size on."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests.servers import ORDINARY_ROLE
from tests.ways import prefer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Spark gets each text, and they fill its heap; PostgreSQL keeps one. They are long, so that there is room for little
#: things when one of them doesn't fit.
WIDEST = (
    "SELECT w.p, n.name, count(*) AS n FROM wide w JOIN names n ON n.g = w.g GROUP BY w.p, n.name HAVING count(*) > 1"
)
_WIDE = """
    CREATE TABLE wide (id int PRIMARY KEY, g int, p text);
    CREATE TABLE names (g int PRIMARY KEY, name text);
    INSERT INTO names VALUES (0, 'all');
    INSERT INTO wide SELECT n, 0, n || repeat('x', 8000000) FROM generate_series(1, 100) n;
    ANALYZE wide, names;
"""
_PROGRAM = """
import os, sys
from airflow_provider_pgtrickle.client import PgTrickle

with PgTrickle(os.environ["PGTRICKLE_DSN"], spark_master="local[1]", spark_driver_memory="512m",
               retry_base_seconds=0.01) as pt:
    for _ in range(2):
        done = pt.refresh_stream_table("st", force_full=True)
        print(done.action, done.way)
"""


def test_postgresql_has_no_room_for_the_pushed_statement(
    any_spark: SparkSession, kind: str, dsn: str, admin_dsn: str
) -> None:
    query = "SELECT p, count(*) AS n FROM t GROUP BY p HAVING count(*) > 1"
    with psycopg.connect(dsn, autocommit=True) as conn, psycopg.connect(admin_dsn, autocommit=True) as admin:
        for setting in ("work_mem = '256kB'", "temp_file_limit = '1MB'"):
            admin.execute(f"ALTER ROLE {ORDINARY_ROLE} IN DATABASE {conn.info.dbname} SET {setting}")
        conn.execute("CREATE TABLE t (id int PRIMARY KEY, p text)")
        text = "md5((i % 19990)::text) || repeat('x', 100)"
        conn.execute(f"INSERT INTO t SELECT i, {text} FROM generate_series(1, 20000) i")
        conn.execute("ANALYZE t")
        credentials = "pgpass" if kind == "standing" else ""
        given: dict[str, Any] = {"spark_credentials": credentials, "read_partition_rows": 1000, "retry_attempts": 1}
        with PgTrickle(dsn, any_spark, **given) as pt:
            pt.install()
            pt.create_stream_table("st", query, refresh_mode="FULL")
            (first,) = pt.history("st", 1)
            conn.execute("UPDATE t SET p = 'same' WHERE id < 9")
            again = pt.refresh_stream_table("st")
            (second,) = pt.history("st", 1)
        assert (first["way"], list(first["lacked"])) == ("lowered", ["FULL pushed"])
        assert (again.action, again.way, second["lacked"]) == ("FULL", "lowered", None)
        _exact(conn, "p, n", query)


def test_the_heap_of_a_local_spark_is_too_small_for_the_lowered_plan(spark_alone: None, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        _declared(conn, dsn)
        prefer(conn, "st", "lowered")
        ran = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env=os.environ | {"PGTRICKLE_DSN": dsn, "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert ran.stdout.splitlines() == ["FULL pushed"] * 2, ran.stderr[-3000:]
        told = conn.execute(
            "SELECT status, way, lacked FROM pgtrickle.pgt_refresh_history WHERE run_token <> 'preferred'"
            " ORDER BY refresh_id OFFSET 1"
        ).fetchall()
        # If the driver has ended of it, this was one try, and the next one began with another driver.
        assert [list(lacked) for *_, lacked in told if lacked] == [["FULL lowered"]]
        assert told[-1] == ("COMPLETED", "pushed", None)
        assert len(told) <= 3
        _exact(conn, "p, name, n", WIDEST)


def _declared(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute(_WIDE.encode())
    with PgTrickle(dsn, executor=lambda: PostgresExecutor(Database(dsn))) as pt:
        pt.install()
        pt.create_stream_table("st", WIDEST)


def _exact(conn: psycopg.Connection, columns: str, query: str) -> None:
    stored = f"SELECT {columns} FROM st"
    for one, other in ((stored, query), (query, stored)):
        assert conn.execute(f"SELECT count(*) FROM (({one}) EXCEPT ALL ({other})) d".encode()).fetchone() == (0,)
