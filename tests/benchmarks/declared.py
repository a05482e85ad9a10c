"""What it costs to declare units, append-only sources, tier auto and a limit: time of the processor, of both sides.

`python -m tests.benchmarks.declared` prints the table. Each way takes its turn in each round, and the first is for the
caches.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from tests.benchmarks import place

REPEATS = 40
_TICKS = os.sysconf("SC_CLK_TCK")


def _spent(pids: list[int], work: Callable[[], object]) -> float:
    """Milliseconds of this process and of these backends."""

    def now() -> float:
        fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
        return time.process_time() * 1000 + sum((int(f[11]) + int(f[12])) * 1000 / _TICKS for f in fields)

    before = now()
    work()
    return now() - before


def refreshes(dsn: str) -> dict[str, float]:
    """A refresh of one changed row of 100,000, by what was declared of the table."""
    found: dict[str, list[float]] = {}
    with place.database(dsn) as url, psycopg.connect(url, autocommit=True) as conn:
        conn.execute("SET synchronous_commit = off")
        conn.execute("CREATE TABLE t (id int PRIMARY KEY, g int NOT NULL, v int NOT NULL)")
        conn.execute("INSERT INTO t SELECT i, i % 1000, 1 FROM generate_series(1, 100000) i; ANALYZE t")
        with PgTrickle(url, placement="database") as client:
            client.install()
            query = "SELECT id, g, v FROM t WHERE v > 0"
            declared: dict[str, dict[str, Any]] = {
                "plain": {},
                "tier auto": {"tier": "auto"},
                "a unit of two, both named": {"unit": "one"},
                "second": {"unit": "one"},
            }
            for name, options in declared.items():
                client.create_stream_table(f'"{name}"', query, refresh_mode="DIFFERENTIAL", **options)
        limited = PgTrickle(url, placement="database", max_concurrent_refreshes=4)
        free = PgTrickle(url, placement="database")
        ways: dict[str, tuple[PgTrickle, list[str]]] = {
            "plain": (free, ["plain"]),
            "within a limit": (limited, ["plain"]),
            "tier auto": (free, ["tier auto"]),
            "a unit of two, both named": (free, ["a unit of two, both named", "second"]),
            "a unit of two, one named": (free, ["second"]),
        }
        with free, limited:
            for number in range(REPEATS):
                for way, (client, names) in ways.items():
                    conn.execute("UPDATE t SET v = v + 1 WHERE id = %s", (number + 1,))
                    with client.database.session() as session:
                        pid = session.info.backend_pid
                    quoted = [f'"{name}"' for name in names]
                    spent = _spent([pid], lambda client=client, quoted=quoted: client.refresh(quoted))  # type: ignore[misc]
                    if number:
                        found.setdefault(way, []).append(spent)
    # The backend's time is told in steps of a hundredth of a second, so many are added up.
    return {way: sum(spent) / len(spent) for way, spent in found.items()}


def writers(dsn: str) -> dict[str, float]:
    """2,000 statements that touch no row, and a bulk INSERT, on a source that refuses and on one that doesn't."""
    found: dict[str, list[float]] = {}
    with place.database(dsn) as url, PgTrickle(url, placement="database") as client:
        client.install()
        for repeat in range(6):
            for refuses in (False, True):
                with psycopg.connect(url, autocommit=True) as conn:
                    conn.execute("SET synchronous_commit = off")
                    conn.execute("CREATE TABLE t (id int PRIMARY KEY, g int NOT NULL, v int NOT NULL)")
                    breach = "refuse" if refuses else "end"
                    client.create_stream_table("st", "SELECT id FROM t", append_only=True, append_only_breach=breach)

                    def harmless(conn: psycopg.Connection = conn) -> None:
                        for _ in range(2000):
                            conn.execute("DELETE FROM t WHERE id = -1")

                    def bulk(conn: psycopg.Connection = conn) -> None:
                        conn.execute("INSERT INTO t SELECT i, i, i FROM generate_series(1, 200000) i")

                    for what, work in (("2,000 DELETEs of no row", harmless), ("200,000 rows inserted", bulk)):
                        spent = _spent([conn.info.backend_pid], work)
                        if repeat:
                            found.setdefault(f"{what}, {'refused' if refuses else 'followed'}", []).append(spent)
                    client.drop_stream_table("st")
                    conn.execute("DROP TABLE t")
    return {what: median(spent) for what, spent in found.items()}


def main() -> None:
    with place.server(None) as dsn:
        for measure in (refreshes, writers):
            for what, ms in measure(dsn).items():
                print(f"{what}: {ms:.1f} ms", flush=True)


if __name__ == "__main__":
    main()
