"""`python -m tests.benchmarks.placement`: one changed row and the same unit in each placement, and from the shell."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from tests.benchmarks import place, report
from tests.benchmarks.measure import Goal, Measured, median, timed

QUERIES = {
    "scan": "SELECT id, g, v FROM t",
    "aggregate": "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g",
    "join": "SELECT t.id, t.v, u.name FROM t JOIN u ON u.g = t.g",
}
ROWS = 100_000
CHAIN = 10
REPEATS = 40
_WARM = 12
"""The driver prepares a statement that comes for the sixth time."""
_COMMAND = "import sys; from airflow_provider_pgtrickle.cli import main; sys.exit(main())"


def run(dsn: str, spark: object | None) -> Iterator[Measured]:
    for placement in ("database", "spark") if spark is not None else ("database",):
        yield from _one_row(dsn, placement, spark)
        yield from _chain(dsn, placement, spark)
    yield from _shell(dsn)


@contextmanager
def _site(dsn: str, placement: str, spark: object | None) -> Iterator[tuple[PgTrickle, psycopg.Connection]]:
    """A fresh database with its tables, which are analyzed."""
    with (
        place.database(dsn) as url,
        PgTrickle(url, spark=spark, placement=placement, differential_max_change_ratio=0.0) as pt,  # type: ignore[arg-type]
        psycopg.connect(url, autocommit=True) as conn,
    ):
        pt.install()
        conn.execute("CREATE TABLE t (id int PRIMARY KEY, g int NOT NULL, v int NOT NULL)")
        conn.execute("CREATE TABLE u (g int PRIMARY KEY, name text NOT NULL)")
        conn.execute("INSERT INTO t SELECT i, i %% 1000, i %% 97 FROM generate_series(1, %s) AS i", (ROWS,))
        conn.execute("INSERT INTO u SELECT i, 'n' || i FROM generate_series(0, 999) AS i")
        conn.execute("CREATE INDEX ON t (g)")
        conn.execute("VACUUM ANALYZE t, u")
        yield pt, conn


def _one_row(dsn: str, placement: str, spark: object | None) -> Iterator[Measured]:
    with _site(dsn, placement, spark) as (pt, conn):
        for name, query in QUERIES.items():
            pt.create_stream_table(f"st_{name}", query, schedule="1h")
        for name in QUERIES:
            for number in range(REPEATS):
                conn.execute("UPDATE t SET v = v + 1 WHERE id = %s", (number + 1,))
                processor = time.process_time()
                seconds, result = timed(partial(pt.refresh_stream_table, f"st_{name}"))
                processor = time.process_time() - processor
                if number >= _WARM:
                    facts = {"placement": placement, "action": result.action, "client_cpu": round(processor, 5)}
                    yield Measured("placement, one row", name, seconds, facts)


def _chain(dsn: str, placement: str, spark: object | None) -> Iterator[Measured]:
    with _site(dsn, placement, spark) as (pt, conn):
        names = [f"st{number}" for number in range(CHAIN)]
        for number, name in enumerate(names):
            source = f"st{number - 1}" if number else "t"
            pt.create_stream_table(name, f"SELECT id, g, v + 1 AS v FROM {source} WHERE v >= 0", schedule="1h")
        for number in range(_WARM + 8):
            conn.execute("UPDATE t SET v = v + 1 WHERE id = %s", (number + 1,))
            seconds, results = timed(lambda: pt.refresh(names))
            actions = ",".join(sorted({result.action for result in results.values()}))
            if number >= _WARM:
                facts = {"placement": placement, "action": actions}
                yield Measured("placement, unit", f"chain of {CHAIN}", seconds, facts)


def _shell(dsn: str) -> Iterator[Measured]:
    """A process for each refresh: what is imported, and all of it for the first time. Modules are compiled before."""
    with _site(dsn, "database", None) as (pt, conn), tempfile.TemporaryDirectory(prefix="pgtrickle-bench-") as compiled:
        pt.create_stream_table("st", QUERIES["aggregate"], schedule="1h")
        command = [sys.executable, "-c", _COMMAND, "refresh", "st"]
        environment = {**os.environ, "PGTRICKLE_DSN": pt.database.dsn, "PGTRICKLE_PLACEMENT": "database"}
        # An installation has its modules compiled; an environment may forbid it, as this suite's own does.
        environment |= {"PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        for number in range(11):
            conn.execute("UPDATE t SET v = v + 1 WHERE id = %s", (number + 1,))
            seconds, _ = timed(lambda: subprocess.run(command, env=environment, capture_output=True, check=True))
            if not number:
                continue  # This one has compiled them.
            yield Measured("placement, shell", "pgtrickle refresh", seconds, {"placement": "database"})
        bare = [timed(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))[0] for _ in range(10)]
        yield Measured("placement, shell", "python alone", median(bare), {})


def goals(rows: list[Measured]) -> Iterator[Goal]:
    def of(suite: str, name: str, placement: str = "database") -> list[float]:
        return [
            row.seconds
            for row in rows
            if (row.suite, row.name, row.facts.get("placement")) == (f"placement, {suite}", name, placement)
        ]

    for name in QUERIES:
        yield Goal(f"one changed row, {name}: milliseconds", 15, median(of("one row", name)) * 1000)
    chain = f"chain of {CHAIN}"
    yield Goal(f"{chain} as one unit: milliseconds", 100, median(of("unit", chain)) * 1000)
    yield Goal("pgtrickle refresh from the shell: seconds", 0.3, median(of("shell", "pgtrickle refresh")))
    for name in QUERIES:
        if on_spark := of("one row", name, "spark"):
            yield Goal(f"one changed row, {name}: times Spark's", 1, median(of("one row", name)) / median(on_spark))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.placement", description=__doc__)
    parser.add_argument("--spark", action="store_true", help="measure placement spark beside it")
    parser.add_argument("--out", type=Path, default=Path("build/benchmarks-placement"))
    options = parser.parse_args()
    with place.server(None) as dsn, place.warm_spark() if options.spark else nullcontext() as spark:
        rows = list(run(dsn, spark))
    found = list(goals(rows))
    report.write(options.out, rows, found, {})
    print(report.table(goal.as_row() for goal in found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
