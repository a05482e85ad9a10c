"""`python -m tests.benchmarks.wal`: what writers pay for capture by triggers and from the WAL, and what pumping takes.

Times are CPU times of the writer's or the pump's processes: on a shared machine the clock tells little.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.capture import mode, wal
from airflow_provider_pgtrickle.engine.capture.pump import pump
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests.benchmarks import place, report
from tests.benchmarks.measure import Goal, Measured

_TABLE = "CREATE TABLE t (id int PRIMARY KEY, g int, v int)"
_QUERY = "SELECT g, sum(v) AS s, count(*) AS n FROM t GROUP BY g"
_SINGLE = """
DO $$ BEGIN
    FOR i IN 1..{rows} LOOP
        INSERT INTO t VALUES (-i, i, i);
        UPDATE t SET v = v + 1 WHERE id = -i;
        DELETE FROM t WHERE id = -i;
    END LOOP;
END $$
"""
_REPEATS = 5


def run(dsn: str, rows: int) -> Iterator[Measured]:
    for way in ("untracked", "trigger", "wal"):
        with _site(dsn, way) as (conn, _):
            for name, seconds in _written(conn, rows).items():
                yield Measured(f"writers, {name}", way, seconds)
    with _site(dsn, "wal") as (conn, client):
        conn.execute("INSERT INTO t SELECT i, i %% 10, i FROM generate_series(1, %s) AS i", (rows,))
        yield _pumped(client, rows)
        # With a checkpoint the server writes down which transactions run, and the slot can begin there.
        conn.execute("CHECKPOINT")
        client.pump()
        yield Measured("pump", "nothing written", min(_seconds_of(client) for _ in range(20)))
        conn.execute("CREATE TABLE foreign_rows AS SELECT i, repeat('x', 80) AS x FROM generate_series(1, 200000) AS i")
        before = _position(conn)
        conn.execute("INSERT INTO foreign_rows SELECT * FROM foreign_rows")
        written = (_position(conn) - before) / 2**20
        taken, _ = _cpu_of(client)
        yield Measured(
            "pump", "foreign log", taken, {"megabytes": round(written, 1), "per_mb": round(taken / written, 5)}
        )


@contextmanager
def _site(dsn: str, way: str) -> Iterator[tuple[psycopg.Connection[Any], PgTrickle]]:
    with place.database(dsn) as url, psycopg.connect(url, autocommit=True) as conn:
        conn.execute(_TABLE)
        # The same identity everywhere: what it costs is not capture's.
        conn.execute("ALTER TABLE t REPLICA IDENTITY FULL")
        with PgTrickle(url, executor=lambda: PostgresExecutor(client.database)) as client:
            client.install()
            if way != "untracked":
                client.create_stream_table("st", _QUERY, cdc_mode=way)
            yield conn, client
            if way != "untracked":
                client.drop_stream_table("st")


def _written(conn: psycopg.Connection[Any], rows: int) -> dict[str, float]:
    bulk, single = [], []
    for _ in range(_REPEATS):
        conn.execute("TRUNCATE t")
        begun = _cpu(conn)
        conn.execute("INSERT INTO t SELECT i, i %% 10, i FROM generate_series(1, %s) AS i", (rows,))
        bulk.append(_cpu(conn) - begun)
        conn.execute("CHECKPOINT")
        begun = _cpu(conn)
        conn.execute(_SINGLE.format(rows=20_000).encode())
        single.append(_cpu(conn) - begun)
    return {"one statement of many rows": min(bulk), "60,000 statements of one row": min(single)}


def _pumped(client: PgTrickle, rows: int) -> Measured:
    taken, wall = _cpu_of(client)
    return Measured("pump", "rows", taken, {"rows": rows, "a_second": round(rows / taken), "wall": round(wall, 2)})


def _cpu_of(client: PgTrickle) -> tuple[float, float]:
    """CPU time of a pump, its own and its session's, and the time that went by."""
    with client.database.session() as conn:
        own, server, begun = time.process_time(), _cpu(conn), time.perf_counter()
        mode.drain(conn, client.settings)
        return time.process_time() - own + _cpu(conn) - server, time.perf_counter() - begun


def _seconds_of(client: PgTrickle) -> float:
    """The time that a refresh spends on the log before its snapshot."""
    with client.database.session() as conn:
        begun = time.perf_counter()
        with wal.turn(conn, 10):
            state = wal.state(conn)
            assert state is not None
            pump(conn, state)
        return time.perf_counter() - begun


def _position(conn: psycopg.Connection[Any]) -> int:
    row = conn.execute("SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint").fetchone()
    assert row is not None
    return int(row[0])


def _cpu(conn: psycopg.Connection[Any]) -> float:
    """Seconds of CPU time that the session's process on this machine has taken."""
    fields = Path(f"/proc/{conn.info.backend_pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def goals(rows: list[Measured]) -> Iterator[Goal]:
    found = {(row.suite, row.name): row for row in rows}
    for suite in sorted({suite for suite, _ in found if suite.startswith("writers")}):
        bare = found[suite, "untracked"].seconds
        yield Goal(f"{suite}: from the WAL, times untracked", 1.05, found[suite, "wal"].seconds / bare)
    yield Goal("pumped rows a second of CPU", 200_000, found["pump", "rows"].facts["a_second"], at_most=False)
    yield Goal("pump where nothing was written (ms)", 5, found["pump", "nothing written"].seconds * 1000)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.wal", description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--out", type=Path, default=Path("build/benchmarks-wal"))
    options = parser.parse_args()
    with place.server(None, wal_level="logical") as dsn:
        rows = list(run(dsn, options.rows))
    found = list(goals(rows))
    report.write(options.out, rows, found, {})
    print(report.table(row.as_row() for row in rows))
    print(report.table(goal.as_row() for goal in found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
