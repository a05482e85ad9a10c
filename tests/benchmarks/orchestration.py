"""`python -m tests.benchmarks.orchestration`: what Airflow adds, live, with a warm Spark Connect server or without.

`--placement database` has PostgreSQL compute: the tasks open no Spark, and no server of it is started.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.servers import ConnectServer
from tests.airflow.live.running import RunningAirflow, wait_for
from tests.benchmarks import place, report
from tests.benchmarks.measure import Goal, Measured

DAGS = Path(__file__).parent / "dags"
REPEATS = 5
CHAINS = 50
CHANGED_CHAINS = 5

# A fresh process, as Airflow's DAG processor forks one for each file; Airflow's own imports are not the file's.
_PARSE = """
import sys, time, runpy
import airflow.sdk, psycopg
def refuse(*args, **kwargs): raise SystemExit("a database was asked at parse time")
psycopg.connect = refuse
begun, worked = time.perf_counter(), time.process_time()
runpy.run_path(sys.argv[1])
print(time.perf_counter() - begun, time.process_time() - worked)
"""

# What docs/how-to/spark-connect.md shows: a task is forked from a process that has the client already.
_PRELOAD = """
import airflow_provider_pgtrickle.client
import pyspark.sql.connect.session

__all__: list[str] = []
"""

# An idle scheduler sleeps a second between two looks, and a run has three of them: run, plan, refresh.
_AWAKE = {"AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2"}

_PRELOAD_CLIENT = """
import airflow_provider_pgtrickle.client

__all__: list[str] = []
"""


def run(dsn: str, placement: str = "spark") -> Iterator[Measured]:
    os.environ["PGTRICKLE_PLACEMENT"] = placement  # Airflow's processes inherit it
    yield from _parse()
    with (
        tempfile.TemporaryDirectory(prefix="pgtrickle-bench-") as folder,
        place.database(dsn) as url,
        psycopg.connect(url, autocommit=True) as conn,
        nullcontext() if placement == "database" else ConnectServer(Path(folder) / "connect", Settings.load()) as spark,
    ):
        _create(conn)
        connections = _connections(url, spark.url if spark else "sc://127.0.0.1:1")
        with _airflow(Path(folder) / "airflow", connections) as airflow:
            yield from _unit(airflow, conn)
            yield from _watched(airflow, conn)
            yield from _graph(airflow, conn)
        preload = _PRELOAD_CLIENT if placement == "database" else _PRELOAD
        with _airflow(Path(folder) / "preloaded", connections, preload) as airflow:
            yield from _unit(airflow, conn, ", preloaded")
            yield from _watched(airflow, conn, ", preloaded")
        with _airflow(Path(folder) / "awake", connections, preload, _AWAKE) as airflow:
            yield from _watched(airflow, conn, ", preloaded, the scheduler looking five times a second")


@contextmanager
def _airflow(
    home: Path,
    connections: dict[str, dict[str, Any]],
    local_settings: str | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[RunningAirflow]:
    (home / "config").mkdir(parents=True)
    if local_settings is not None:
        (home / "config" / "airflow_local_settings.py").write_text(local_settings)
    airflow = RunningAirflow(home, DAGS, connections, settings)
    try:
        airflow.start()
        airflow.wait_until_healthy()
        wait_for(lambda: {"graph_of_500", "one_unit", "watched"} <= airflow.dag_ids(), "the DAGs", 120)
        yield airflow
    finally:
        airflow.stop()


def goals(rows: list[Measured], placement: str = "spark") -> Iterator[Goal]:
    def found(name: str) -> float:
        return statistics.median(row.seconds for row in rows if row.name == name)

    unit, heard, graph = (1.2, 3, 8) if placement == "database" else (5, 5, 60)
    yield Goal("a file of 501 tables is parsed, s", 2, found("parse 501 tables"))
    yield Goal("a queued unit is committed, s", unit, found("unit: queued to committed"))
    yield Goal("of which ours: the refresh, s", 1, found("unit: refresh"))
    yield Goal("NOTIFY to refreshed, s", heard, found("NOTIFY to refreshed"))
    yield Goal("a queued unit, client preloaded, s", unit, found("unit, preloaded: queued to committed"))
    yield Goal("NOTIFY to refreshed, client preloaded, s", heard, found("NOTIFY to refreshed, preloaded"))
    awake = "NOTIFY to refreshed, preloaded, the scheduler looking five times a second"
    yield Goal(f"{awake}, s", heard, found(awake))
    yield Goal("501 tables, 10% changed, all committed, s", graph, found("graph: triggered to committed"))
    yield Goal("501 tables, 10% changed, run ended, s", 60, found("graph: triggered to run's end"))


def _parse() -> Iterator[Measured]:
    for _ in range(REPEATS):
        done = subprocess.run(
            [sys.executable, "-c", _PARSE, str(DAGS / "measured.py")], check=True, capture_output=True, text=True
        )
        seconds, worked = map(float, done.stdout.split()[-2:])
        yield Measured("airflow", "parse 501 tables", seconds, {"of the processor": round(worked, 2)})


def _create(conn: psycopg.Connection) -> None:
    names = [*(f"rows_{chain:02}" for chain in range(CHAINS)), "unit_rows", "watched_rows"]
    for name in names:
        conn.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, g int, v int)")
        conn.execute(f"INSERT INTO {name} SELECT n, n % 100, n FROM generate_series(1, 10000) n")
    conn.execute("ANALYZE")


def _unit(airflow: RunningAirflow, conn: psycopg.Connection, how: str = "") -> Iterator[Measured]:
    """From the moment the scheduler queues the unit's task."""
    _filled(airflow, "one_unit")
    for number in range(REPEATS):
        conn.execute("UPDATE unit_rows SET v = v + 1 WHERE id = %s", (number + 1,))
        run_id = airflow.trigger("one_unit")
        assert airflow.finished("one_unit", run_id) == "success"
        task = airflow.task("one_unit", run_id, "unit_totals")
        begun, ended = _refreshed(conn, "unit_totals")
        queued, started = _time(task["queued_when"]), _time(task["start_date"])
        yield Measured("airflow", f"unit{how}: queued to committed", _seconds(queued, ended))
        yield Measured("airflow", f"unit{how}: queued to process started", _seconds(queued, started))
        yield Measured("airflow", f"unit{how}: started to refresh begun", _seconds(started, begun))
        yield Measured("airflow", f"unit{how}: refresh", _seconds(begun, ended))
        (phases,) = _scalars(
            conn,
            "SELECT phases FROM pgtrickle.pgt_refresh_history JOIN pgtrickle.pgt_stream_tables USING (pgt_id)"
            " WHERE pgt_name = 'unit_totals' ORDER BY refresh_id DESC LIMIT 1",
        )
        yield Measured("airflow", f"unit{how}: of it Spark and its client", phases["compute"] / 1000)


def _watched(airflow: RunningAirflow, conn: psycopg.Connection, how: str = "") -> Iterator[Measured]:
    _filled(airflow, "watched")
    for number in range(REPEATS):
        conn.execute("UPDATE watched_rows SET v = v + 1 WHERE id = %s", (number + 1,))
        (before,) = _scalars(conn, "SELECT clock_timestamp()")
        conn.execute("NOTIFY pg_trickle_alert")
        wait_for(partial(_refreshed_since, conn, "watched_totals", before), "a refresh that nobody asked for")
        yield Measured("airflow", f"NOTIFY to refreshed{how}", _seconds(before, _refreshed(conn, "watched_totals")[1]))
        for run in airflow.runs("watched"):
            airflow.finished("watched", run["dag_run_id"])


def _graph(airflow: RunningAirflow, conn: psycopg.Connection) -> Iterator[Measured]:
    first = _filled(airflow, "graph_of_500")
    yield Measured("airflow", "graph: declared at first", _length(airflow, "graph_of_500", first, "plan"))
    yield Measured("airflow", "graph: first fill", _length(airflow, "graph_of_500", first, "refresh"))
    for chain in range(CHANGED_CHAINS):
        conn.execute(f"UPDATE rows_{chain:02} SET v = v + 1 WHERE id <= 10")
    (asked,) = _scalars(conn, "SELECT clock_timestamp()")
    run_id = airflow.trigger("graph_of_500")
    wait_for(lambda: airflow.task("graph_of_500", run_id, "refresh")["state"] == "success", "the refresh", 600)
    committed = _refreshed(conn, "all_chains")[1]
    yield Measured("airflow", "graph: triggered to committed", _seconds(asked, committed))
    yield Measured("airflow", "graph: plan task", _length(airflow, "graph_of_500", run_id, "plan"))
    yield Measured("airflow", "graph: refresh task", _length(airflow, "graph_of_500", run_id, "refresh"))
    _ended(airflow, "graph_of_500", run_id)
    (done,) = [run for run in airflow.runs("graph_of_500") if run["dag_run_id"] == run_id]
    yield Measured("airflow", "graph: triggered to run's end", _seconds(asked, _time(done["end_date"])))


def _filled(airflow: RunningAirflow, dag_id: str) -> str:
    run_id = airflow.trigger(dag_id)
    _ended(airflow, dag_id, run_id)
    return run_id


def _ended(airflow: RunningAirflow, dag_id: str, run_id: str) -> None:
    ended = {"success", "failed"}
    wait_for(lambda: airflow.call("GET", f"dags/{dag_id}/dagRuns/{run_id}")["state"] in ended, run_id, 1800)


def _length(airflow: RunningAirflow, dag_id: str, run_id: str, task_id: str) -> float:
    return float(airflow.task(dag_id, run_id, task_id)["duration"])


def _refreshed_since(conn: psycopg.Connection, name: str, instant: Any) -> bool:
    return bool(_refreshed(conn, name)[0] > instant)


def _refreshed(conn: psycopg.Connection, name: str) -> tuple[Any, Any]:
    """Begin and end of the last refresh that did something."""
    return _scalars(
        conn,
        "SELECT max(start_time), max(end_time) FROM pgtrickle.pgt_refresh_history"
        " JOIN pgtrickle.pgt_stream_tables st USING (pgt_id)"
        f" WHERE pgt_name = '{name}' AND pgt_refresh_history.status = 'COMPLETED' AND action <> 'NO_DATA'",
    )


def _scalars(conn: psycopg.Connection, query: str) -> Any:
    return conn.execute(query.encode()).fetchone()


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _seconds(begun: datetime, ended: datetime) -> float:
    return (ended - begun).total_seconds()


def _connections(dsn: str, connect_url: str) -> dict[str, dict[str, Any]]:
    parts = conninfo_to_dict(dsn)
    postgres = {"conn_type": "pgtrickle", "host": parts["host"], "port": int(str(parts["port"]))}
    login = {"login": parts["user"], "password": parts.get("password"), "schema": parts["dbname"]}
    connect = {"conn_type": "spark_connect", "host": "127.0.0.1", "port": int(connect_url.rpartition(":")[2])}
    return {"bench_pg": {**postgres, **login}, "bench_connect": connect}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.orchestration", description=__doc__)
    parser.add_argument("out", nargs="?", type=Path, default=Path("build/benchmarks/airflow"))
    parser.add_argument("--placement", choices=("spark", "auto", "database"), default="spark")
    options = parser.parse_args()
    out, rows = options.out, []
    with place.server(None) as dsn:
        for row in run(dsn, options.placement):
            rows.append(row)
            print(report.table([row.as_row()]).splitlines()[-1], flush=True)
    judged = list(goals(rows, options.placement))
    report.write(out, rows, judged, {})
    print(report.table(goal.as_row() for goal in judged))
    return 0


if __name__ == "__main__":
    sys.exit(main())
