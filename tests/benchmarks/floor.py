"""The floor: what a refresh costs when there is next to nothing to do, and what capture costs the writer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg

from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.jars import jdbc_jar
from tests.benchmarks.measure import Goal, Measured, facts, median, refreshed, timed
from tests.benchmarks.place import installed

REPEATS = 7
CHAIN = 10
_APP = Path(__file__).parent.parent.parent / "spark_apps" / "refresh.py"


def run(dsn: str, spark: object) -> Iterator[Measured]:
    yield from _nothing_and_one_row(dsn, spark)
    yield from _chain(dsn, spark)
    yield from _diamond(dsn, spark)
    yield from _bulk(dsn, spark)
    yield from _capture(dsn, spark)


def _table(conn: psycopg.Connection, rows: int = 100_000) -> None:
    conn.execute("CREATE TABLE t (id int PRIMARY KEY, g int NOT NULL, v int NOT NULL)")
    conn.execute("INSERT INTO t SELECT i, i %% 1000, i %% 97 FROM generate_series(1, %s) AS i", (rows,))
    conn.execute("CREATE INDEX ON t (g)")
    conn.execute("VACUUM ANALYZE t")


def _nothing_and_one_row(dsn: str, spark: object) -> Iterator[Measured]:
    with installed(dsn, spark) as (pt, conn):
        _table(conn)
        pt.create_stream_table("st", "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g", schedule="1h")
        for _ in range(REPEATS):
            seconds, result = refreshed(pt, "st")
            yield Measured("floor", "no data", seconds, facts(result))
        for number in range(REPEATS):
            conn.execute("UPDATE t SET v = v + 1 WHERE id = %s", (number + 1,))
            seconds, result = refreshed(pt, "st")
            yield Measured("floor", "one row, warm", seconds, facts(result))
        conn.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        submit = shutil.which("spark-submit", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
        if submit and _APP.exists():
            # The URL travels in the environment: arguments can be read by everybody on the machine.
            url = psycopg.conninfo.make_conninfo(conn.info.dsn, password=conn.info.password)
            environment = {**os.environ, "PGTRICKLE_DSN": url, "PYSPARK_PYTHON": sys.executable}
            jar = str(jdbc_jar(Settings.load()))
            command = [submit, "--master", "local[2]", "--jars", jar, str(_APP), "--tables", "st"]
            seconds, _ = timed(lambda: subprocess.run(command, env=environment, capture_output=True, check=True))
            yield Measured("floor", "one row, cold spark-submit", seconds)


def _chain(dsn: str, spark: object) -> Iterator[Measured]:
    with installed(dsn, spark) as (pt, conn):
        _table(conn)
        names = [f"st{number}" for number in range(CHAIN)]
        for number, name in enumerate(names):
            source = f"st{number - 1}" if number else "t"
            pt.create_stream_table(name, f"SELECT id, g, v + 1 AS v FROM {source} WHERE v >= 0", schedule="1h")
        for _ in range(3):
            conn.execute("UPDATE t SET v = v + 1 WHERE id % 1000 = 7")
            seconds, results = timed(lambda: pt.refresh(names))
            actions = ",".join(sorted({result.action for result in results.values()}))
            yield Measured("floor", f"chain of {CHAIN} as one unit", seconds, {"action": actions})


def _diamond(dsn: str, spark: object) -> Iterator[Measured]:
    with installed(dsn, spark) as (pt, conn):
        _table(conn)
        pt.create_stream_table("low", "SELECT g, sum(v) AS s FROM t GROUP BY g", schedule="1h")
        pt.create_stream_table("high", "SELECT g, max(v) AS m FROM t GROUP BY g", schedule="1h")
        pt.create_stream_table("both", "SELECT g, s, m FROM low JOIN high USING (g)", schedule="1h")
        for number in range(3):
            conn.execute("UPDATE t SET v = v + 1 WHERE id BETWEEN %s AND %s", (number * 100 + 1, number * 100 + 100))
            seconds, results = timed(lambda: pt.refresh(["low", "high", "both"]))
            actions = ",".join(sorted({result.action for result in results.values()}))
            yield Measured("floor", "diamond", seconds, {"action": actions})


def _bulk(dsn: str, spark: object) -> Iterator[Measured]:
    rows = 1_000_000
    with installed(dsn, spark) as (pt, conn):
        _table(conn, rows)
        pt.create_stream_table("st", "SELECT id, g, v FROM t", schedule="1h", initialize=False)
        seconds, result = refreshed(pt, "st")
        yield Measured("floor", "bulk refresh", seconds, {**facts(result), "rows_per_second": round(rows / seconds)})
        seconds = pt.history("st", 1)[0]["phases"]["apply"] / 1000
        yield Measured("floor", "bulk apply", seconds, {"rows_per_second": round(rows / seconds)})


def _capture(dsn: str, spark: object) -> Iterator[Measured]:
    """The same writes without and with a stream table behind them."""
    with installed(dsn, spark) as (pt, conn):
        for tracked in (False, True):
            conn.execute("DROP TABLE IF EXISTS t CASCADE")
            _table(conn)
            if tracked:
                pt.create_stream_table("st", "SELECT id, g, v FROM t", schedule="1h")
            for repeat in range(3):
                first = 1_000_000 * (repeat + 1)
                many = "INSERT INTO t SELECT i, i %% 1000, 1 FROM generate_series(%s::int, %s::int) AS i"
                seconds, _ = timed(partial(conn.execute, many, (first, first + 199_999)))
                yield Measured("floor", "bulk insert", seconds, {"tracked": tracked, "rows": 200_000})
                seconds, _ = timed(partial(_singles, conn, first + 500_000))
                yield Measured("floor", "single-row inserts", seconds, {"tracked": tracked, "rows": 1_000})


def _singles(conn: psycopg.Connection, first: int) -> None:
    for number in range(1_000):
        conn.execute("INSERT INTO t VALUES (%s, %s, 1)", (first + number, number))


def goals(rows: list[Measured]) -> Iterator[Goal]:
    def of(name: str, **wanted: object) -> list[float]:
        return [
            row.seconds
            for row in rows
            if row.name == name and all(row.facts.get(key) == value for key, value in wanted.items())
        ]

    for words, name, wanted in (
        ("NO_DATA, milliseconds", "no data", 10),
        ("one changed row, warm, milliseconds", "one row, warm", 300),
        (f"chain of {CHAIN} as one unit, milliseconds", f"chain of {CHAIN} as one unit", 2_000),
    ):
        if of(name):
            yield Goal(words, wanted, median(of(name)) * 1000)
    for row in rows:
        if row.name == "bulk apply":
            yield Goal("bulk apply, rows a second", 800_000, row.facts["rows_per_second"], at_most=False)
    for name, most in (("bulk insert", 1.5), ("single-row inserts", 1.2)):
        if of(name, tracked=True):
            ratio = median(of(name, tracked=True)) / median(of(name, tracked=False))
            yield Goal(f"capture: {name} against untracked", most, ratio)
