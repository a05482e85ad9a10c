"""`python -m tests.benchmarks.clock`: what a window that moves on costs, by differences and in full."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import perf_counter

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.engine.refresh.unit import refresh_unit
from tests.benchmarks import place

ROWS, DAYS, REPEATS = 2_000_000, 200, 5
NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)
QUERY = "SELECT g, count(*) AS n, sum(v) AS s FROM e WHERE at > now() - interval '30 days' GROUP BY g"
STEPS = {"nothing": timedelta(seconds=1), "a minute": timedelta(minutes=1), "an hour": timedelta(hours=1),
         "a day": timedelta(days=1)}  # fmt: skip


def main() -> None:
    with place.server(None) as server, place.database(server) as url, psycopg.connect(url, autocommit=True) as conn:
        conn.execute("CREATE TABLE e (id int PRIMARY KEY, g int NOT NULL, v int NOT NULL, at timestamptz NOT NULL)")
        conn.execute(
            "INSERT INTO e SELECT n, n %% 1000, n %% 97, %s::timestamptz - n * %s::interval"
            " FROM generate_series(1, %s) AS n",
            (NOON, timedelta(days=DAYS) / ROWS, ROWS),
        )
        conn.execute("CREATE INDEX ON e (at)")
        conn.execute("VACUUM ANALYZE e")
        with PgTrickle(url, executor=lambda: PostgresExecutor(pt.database), placement="database") as pt:
            pt.install()
            for mode in ("DIFFERENTIAL", "FULL"):
                pt.create_stream_table(mode.lower(), QUERY, refresh_mode=mode, initialize=False)
                _measure(pt, mode)


def _measure(pt: PgTrickle, mode: str) -> None:
    at = NOON
    _refresh(pt, mode, at)
    for name, step in STEPS.items():
        found = []
        for _ in range(REPEATS):
            at += step
            found.append(_refresh(pt, mode, at))
        seconds, moved, action = sorted(found)[REPEATS // 2]
        print(f"| {mode} | {name} | {moved} | {action} | {seconds * 1000:.0f} ms |", flush=True)


def _refresh(pt: PgTrickle, mode: str, at: datetime) -> tuple[float, int, str]:
    begun = perf_counter()
    (result,) = refresh_unit(
        pt.database,
        [QualifiedName("public", mode.lower())],
        executor=lambda: PostgresExecutor(pt.database),
        settings=pt.settings,
        instant=at,
    ).values()
    return perf_counter() - begun, result.source_changes, result.action


if __name__ == "__main__":
    main()
