"""`python -m tests.benchmarks.connect`: what the first read of a new Spark Connect session costs, and the next ones.

By COPY, where the password is sent, and through JDBC, where it stands on the server; both in turn on one server.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh import snapshot
from airflow_provider_pgtrickle.engine.refresh.executor import Computation
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.execute import SparkExecutor
from airflow_provider_pgtrickle.engine.spark.servers import ConnectServer
from tests import servers
from tests.spark.conftest import client, password_file

QUERY = "SELECT 1 AS __pgt_w, n::text AS __pgt_key, n::text AS n FROM generate_series(1, 10) n"
WAYS = {"COPY": "", "JDBC": "pgpass"}
#: The first session of each way also warms the server.
SESSIONS = 8
READS = 4


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as scratch,
        servers.running(18) as postgres,
        servers.fresh_database(postgres) as name,
    ):
        _measure(Path(scratch), servers.ordinary_dsn(postgres, name))


def _measure(folder: Path, dsn: str) -> None:
    found: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    with ConnectServer(folder / "server", Settings.load(), environment=password_file(folder)) as server:
        for _ in range(SESSIONS):
            for way, credentials in WAYS.items():
                found[way].append(_session(server, Database(dsn, Settings.load(spark_credentials=credentials))))
    print(f"load {os.getloadavg()[0]:.1f}; seconds, median of {SESSIONS - 1} sessions (least to most)")
    for way, sessions in found.items():
        first, later = [s[0] for s in sessions[1:]], [t for s in sessions[1:] for t in s[1:]]
        told = f"{statistics.median(first):.2f} ({min(first):.2f} to {max(first):.2f})"
        print(f"{way}: first read {told}, later ones {statistics.median(later):.2f}")


def _session(server: ConnectServer, database: Database) -> list[float]:
    """What each read of a new session took. What the client looks up about the database is known before."""
    _ = database.jdbc
    taken = []
    with client(server) as session, database.connect(autocommit=True) as coordinator:
        snapshot.take(coordinator)
        exported, executor = snapshot.export(coordinator), SparkExecutor(session, database)
        for _ in range(READS):
            begun = time.perf_counter()
            executor.compute(exported, Computation(QUERY, ("n",), 10), None)
            taken.append(time.perf_counter() - begun)
    return taken


if __name__ == "__main__":
    main()
