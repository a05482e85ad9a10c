"""The demo's warm Spark Connect server. It finds the shop's password in a file, so that none is sent to it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from airflow_provider_pgtrickle.demo.processes import Processes
from airflow_provider_pgtrickle.engine.errors import EnvironmentFault
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.servers import ConnectServer

_NAME = "spark-connect"
_START_SECONDS = 120


@contextmanager
def running(folder: Path, dsn: str) -> Iterator[str]:
    """The URL of a server that ends with the block."""
    with _server(folder, dsn) as server:
        yield server.url


def start(processes: Processes, folder: Path, dsn: str) -> None:
    """Start a server that outlives this process; `wait` for it before it is used."""
    server, log = _server(folder, dsn), _log(folder)
    log.unlink(missing_ok=True)
    processes.start(_NAME, server.command(), log=log, environment=server.environment())


def wait(processes: Processes, folder: Path) -> str:
    """The URL of the server that was started, once it answers."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and _NAME in processes.running():
        if url := ConnectServer.said(_log(folder).read_text(errors="replace")):
            return url
        time.sleep(0.2)
    raise EnvironmentFault("The demo's Spark Connect server did not start", remedy=f"Its log is {_log(folder)}.")


def _log(folder: Path) -> Path:
    return folder / f"{_NAME}.log"


def _server(folder: Path, dsn: str) -> ConnectServer:
    folder.mkdir(parents=True, exist_ok=True)
    parts = conninfo_to_dict(dsn)
    file = folder / "pgpass"
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    file.write_text(f"{parts['host']}:{parts['port']}:{parts['dbname']}:{parts['user']}:{parts['password']}\n")
    return ConnectServer(folder, Settings.load(), environment={"PGPASSFILE": str(file)})
