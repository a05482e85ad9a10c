"""Running windows over a large partition, carried forward or with the partition computed anew.

`python -m tests.benchmarks.running` prints the table: one changed row of a partition of 1,000,000, placement
`database`; seconds by the clock, and of the processor, client and server together.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from unittest.mock import patch

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.dvm import pipeline
from airflow_provider_pgtrickle.engine.dvm.sinks import SINKS
from airflow_provider_pgtrickle.engine.dvm.sinks.running import Running
from tests.benchmarks import place
from tests.benchmarks.declared import _spent

QUERY = (
    "SELECT id, account, at, sum(amount) OVER w AS balance, row_number() OVER w AS n FROM moves"
    " WINDOW w AS (PARTITION BY account ORDER BY at, id)"
)
#: Where the changed row is among the others, and how often it is measured.
AT = {"at the end": (1.0, 5), "in the middle": (0.5, 1), "at the beginning": (0.0, 1)}


def measure(dsn: str, rows: int, sinks: tuple[type, ...]) -> dict[str, tuple[float, float]]:
    found = {}
    every = rows * 11 // 10
    with (
        patch.object(pipeline, "SINKS", sinks),
        place.database(dsn) as url,
        psycopg.connect(url, autocommit=True) as conn,
        PgTrickle(url, placement="database") as pt,
    ):
        pt.install()
        conn.execute(
            "CREATE TABLE moves (id bigint PRIMARY KEY, account int NOT NULL, at timestamp NOT NULL,"
            " amount numeric(12,2))"
        )
        conn.execute(
            "INSERT INTO moves SELECT i, CASE WHEN i % 11 = 0 THEN i % 10 + 2 ELSE 1 END,"
            f" timestamp '2026-01-01' + i * interval '1 s', i % 900 FROM generate_series(1, {every}) AS i"
        )
        conn.execute("CREATE INDEX ON moves (account, at)")
        pt.create_stream_table("st", QUERY, refresh_mode="DIFFERENTIAL", differential_max_change_ratio=0.0)
        conn.execute("VACUUM ANALYZE moves")
        conn.execute("VACUUM ANALYZE st")
        for what, (share, repeats) in AT.items():
            took, spent = [], []
            for number in range(repeats):
                at = f"timestamp '2026-01-01' + ({share} * {every} + {number}) * interval '1 s'"
                conn.execute(f"INSERT INTO moves SELECT max(id) + 1, 1, {at}, 1.50 FROM moves")
                with pt.database.session() as session:
                    pid = session.info.backend_pid
                begun = time.perf_counter()
                spent.append(_spent([pid], lambda: pt.refresh_stream_table("st")) / 1000)
                took.append(time.perf_counter() - begun)
            found[what] = median(took), median(spent)
        differ = f"SELECT FROM ((SELECT id, account, at, balance, n FROM st) EXCEPT ALL ({QUERY})) AS d"
        assert conn.execute(differ).fetchone() is None
    return found


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    without = tuple(sink for sink in SINKS if sink is not Running)
    with place.server(None) as dsn:
        for name, sinks in (("carry forward", SINKS), ("replace by key", without)):
            for what, (seconds, processor) in measure(dsn, rows, sinks).items():
                print(f"{name}, {what}: {seconds:.3f} s, {processor:.3f} s of the processor", flush=True)


if __name__ == "__main__":
    main()
