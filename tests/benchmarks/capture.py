"""What capture costs the writer, in time of its own backend's processor: other work beside it doesn't count.

`python -m tests.benchmarks.capture` prints the table. It also measures refreshes of many changes of few rows, and of
changes that the reader doesn't see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from tests.benchmarks import place

ROWS, SINGLES, REPEATS = 200_000, 2_000, 5
_BULK = "INSERT INTO t SELECT i, i %% 1000, 1 FROM generate_series(%s::int, %s::int) AS i"
#: How the table is captured, by the option `unlogged_buffers`; None: not at all.
CAPTURED = {"untracked": None, "tracked": False, "UNLOGGED": True}


def _processor_ms(conn: psycopg.Connection) -> float:
    """What this session's backend has spent so far, by Linux's scheduler, which counts in nanoseconds."""
    return int(Path(f"/proc/{conn.info.backend_pid}/schedstat").read_text().split()[0]) / 1e6


def _spent(conn: psycopg.Connection, work: Callable[[], object]) -> float:
    before = _processor_ms(conn)
    work()
    return _processor_ms(conn) - before


def _singles(conn: psycopg.Connection, statement: str, first: int) -> None:
    for number in range(first, first + SINGLES):
        conn.execute(statement, (number,))


def writing(dsn: str, middle: Callable[[list[float]], float] = median) -> Iterator[tuple[str, dict[str, float]]]:
    """By kind of statement, milliseconds for each way to capture; the ways take turns.

    `middle`: what is said of several runs. On a machine that others use, the least says more than the median.
    """
    kinds: dict[str, dict[str, list[float]]] = {}
    with place.database(dsn) as url, PgTrickle(url, placement="database") as client:
        client.install()
        for repeat in range(REPEATS):
            for captured, unlogged in CAPTURED.items():
                with psycopg.connect(url, autocommit=True) as conn:
                    # Waiting for the disk takes no processor's time, but many minutes.
                    conn.execute("SET synchronous_commit = off")
                    conn.execute("CREATE TABLE t (id int PRIMARY KEY, g int NOT NULL, v int NOT NULL)")
                    conn.execute(_BULK, (1, 1000))
                    if unlogged is not None:
                        client.create_stream_table("st", "SELECT id, g, v FROM t", unlogged_buffers=unlogged)
                    work: dict[str, Callable[[], object]] = {
                        "bulk insert": partial(conn.execute, _BULK, (1_000_001, 1_000_000 + ROWS)),
                        "bulk update": partial(conn.execute, "UPDATE t SET v = v + 1 WHERE id > 1000000"),
                        "single-row inserts": partial(_singles, conn, "INSERT INTO t VALUES (%s, 1, 1)", 2_000_000),
                        "single-row updates": partial(_singles, conn, "UPDATE t SET v = 2 WHERE id = %s", 2_000_000),
                        "single-row deletes": partial(_singles, conn, "DELETE FROM t WHERE id = %s", 2_000_000),
                    }
                    for kind, run in work.items():
                        spent = _spent(conn, run)
                        if repeat:  # the first is for the caches
                            kinds.setdefault(kind, {}).setdefault(captured, []).append(spent)
                    if unlogged is not None:
                        client.drop_stream_table("st")
                    conn.execute("DROP TABLE t")
    for kind, found in kinds.items():
        yield kind, {captured: middle(spent) for captured, spent in found.items()}


def reading(dsn: str) -> Iterator[tuple[str, str]]:
    """What refreshes of changes that mostly cancel out do."""
    with place.database(dsn) as url, PgTrickle(url, placement="database", differential_max_change_ratio=0.0) as client:
        client.install()
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute("CREATE TABLE t (id int PRIMARY KEY, g int NOT NULL, v int NOT NULL, w int)")
            conn.execute("INSERT INTO t SELECT i, i % 1000, 1 FROM generate_series(1, 1000000) AS i; ANALYZE t")
            client.create_stream_table("st", "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g")
            client.create_stream_table("other", "SELECT id, w FROM t")
            for _ in range(1000):
                conn.execute("UPDATE t SET v = v + 1 WHERE id <= 1000")
            yield "1,000,000 changes of 1,000 rows", _refreshed(client, "st")
            conn.execute("UPDATE t SET w = 1 WHERE id <= 500000")
            yield "500,000 changes of a column that is not read", _refreshed(client, "st")
            conn.execute("UPDATE t SET v = v + 1 WHERE id <= 500000")
            yield "500,000 changes of as many rows", _refreshed(client, "st")


def _refreshed(client: PgTrickle, name: str) -> str:
    result = client.refresh_stream_table(name)
    return f"{result.action}, {result.source_changes} changes, {result.duration_ms / 1000:.2f} s"


def main() -> None:
    with place.server(None) as dsn:
        for kind, found in writing(dsn):
            base = found["untracked"]
            figures = ", ".join(f"{captured} {ms:.0f} ms ({ms / base:.2f})" for captured, ms in found.items())
            print(f"{kind}: {figures}", flush=True)
        for what, took in reading(dsn):
            print(f"{what}: {took}", flush=True)


if __name__ == "__main__":
    main()
