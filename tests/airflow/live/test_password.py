"""The database's password, after refreshes by a remote Spark Connect server and by a standalone cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from airflow_provider_pgtrickle.engine.spark.servers import StandaloneCluster
from tests.airflow.live.running import RunningAirflow
from tests.airflow.live.shop import Case


@pytest.mark.slow
def test_no_log_and_no_table_holds_the_password(
    airflow: RunningAirflow, live_dsn: str, connect_folder: Path, case: Callable[[str], Case], tmp_path: Path
) -> None:
    password = str(conninfo_to_dict(live_dsn)["password"])
    (airflow.home / "events").mkdir()
    with StandaloneCluster(tmp_path, workers=1, executor_memory="1g") as cluster:
        host, _, port = cluster.url.rpartition(":")
        airflow.call(
            "POST",
            "connections",
            {"connection_id": "live_standalone", "conn_type": "spark", "host": host, "port": int(port)},
        )
        for name in ("remote", "standalone"):
            kept = case(name)
            for _ in range(2):
                assert airflow.finished(name, airflow.trigger(name)) == "success", name
                kept.change()
            assert kept.committed == ["FULL", "DIFFERENTIAL"]
        assert not [line for line in _commands() if password in line]
    assert list((airflow.home / "events").iterdir())
    assert list(tmp_path.glob("work-0/*/*/stderr"))
    for folder in (airflow.home, connect_folder, tmp_path):
        assert [str(path) for path in _files(folder) if password.encode() in path.read_bytes()] == []
    assert _tables_with(live_dsn, password) == []


def _commands() -> Iterator[str]:
    """The command line of every process that runs here."""
    for process in psutil.process_iter():
        try:
            yield " ".join(process.cmdline())
        except psutil.Error:
            continue


def _files(folder: Path) -> list[Path]:
    """Logs, event logs, and Airflow's own database."""
    return [path for path in folder.rglob("*") if path.is_file()]


def _tables_with(dsn: str, text: str) -> list[str]:
    with psycopg.connect(dsn) as conn:
        tables = conn.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        return [
            ".".join(table)
            for table in tables
            if conn.execute(
                sql.SQL("SELECT FROM {} AS x WHERE strpos(x::text, {}) > 0 LIMIT 1").format(
                    sql.Identifier(*table), sql.Literal(text)
                )
            ).fetchone()
        ]
