"""One live Airflow and one warm Spark Connect server for all live tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from airflow_provider_pgtrickle.embedded import PostgresServer
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.servers import ConnectServer
from tests import servers
from tests.airflow.live.running import RunningAirflow, wait_for
from tests.airflow.live.shop import Case

DAGS = Path(__file__).parent / "dags"
CASES = (
    "chain", "worker", "driver", "scheduler", "cleared", "suspended", "twice", "late",
    "remote", "standalone", "no_postgres", "wrong_password", "no_spark", "spark_down", "watched", "whole",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(DAGS.parent):
            item.add_marker("live")
            item.add_marker("spark")


@pytest.fixture(scope="session")
def live_dsn(postgres18: PostgresServer) -> Iterator[str]:
    with servers.fresh_database(postgres18) as name:
        dsn = servers.ordinary_dsn(postgres18, name)
        for case in CASES:
            Case(dsn, case).create()
        yield dsn


@pytest.fixture(scope="session")
def connect_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the Spark Connect server writes."""
    return tmp_path_factory.mktemp("connect")


@pytest.fixture(scope="session")
def airflow(
    live_dsn: str, spark_alone: None, connect_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningAirflow]:
    """Up, its DAGs parsed and unpaused."""
    with ConnectServer(connect_folder, Settings.load()) as connect:
        running = RunningAirflow(tmp_path_factory.mktemp("airflow"), DAGS, _connections(live_dsn, connect.url))
        try:
            running.start()
            running.wait_until_healthy()
            wait_for(lambda: set(CASES) <= running.dag_ids(), "the DAGs of every case")
            yield running
        finally:
            running.stop()


def _connections(dsn: str, connect_url: str) -> dict[str, dict[str, Any]]:
    parts = conninfo_to_dict(dsn)
    postgres = {
        "conn_type": "pgtrickle",
        "host": parts["host"],
        "port": int(str(parts["port"])),
        "schema": parts["dbname"],
        "login": parts["user"],
        "password": parts["password"],
    }
    connect = {"conn_type": "spark_connect", "host": "127.0.0.1"}
    return {
        "live_pg": postgres,
        "live_wrong": {**postgres, "password": "not the password"},
        "live_connect": {**connect, "port": int(connect_url.rpartition(":")[2])},
        # Nothing listens there.
        "live_down": {**connect, "port": 1},
        "live_submit": {"conn_type": "spark", "host": "local[2]"},
    }


@pytest.fixture
def case(live_dsn: str) -> Callable[[str], Case]:
    return lambda name: Case(live_dsn, name)


@pytest.fixture
def filled(live_dsn: str) -> Callable[[str], Case]:
    """A case whose stream table is there and filled: what follows is its DAG's second run."""

    def fill(name: str) -> Case:
        case = Case(live_dsn, name)
        case.fill()
        assert case.differences == []
        return case

    return fill
