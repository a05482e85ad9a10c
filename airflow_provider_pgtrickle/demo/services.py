"""Airflow's processes on loopback.

These are the processes that `airflow standalone` starts, started one by one, because standalone's log servers would
listen on every network interface. They aren't needed here, because the logs are on the same disk.
"""

from __future__ import annotations

import json
import secrets
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from airflow_provider_pgtrickle.demo.processes import Processes
from airflow_provider_pgtrickle.engine.errors import EnvironmentFault

HOST = "127.0.0.1"
_PORT = 8080
_READY_SECONDS = 180
_COMMANDS: dict[str, list[str]] = {
    "api-server": ["api-server"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
    "triggerer": ["triggerer", "--skip-serve-logs"],
}


class Services:
    """`environment` says which Airflow; it must have been prepared by `airflow db migrate`."""

    def __init__(self, processes: Processes, url: str, logs: Path, environment: Mapping[str, str]) -> None:
        self._processes, self.url, self._logs = processes, url, logs
        self.environment = {
            **environment,
            "AIRFLOW__API__BASE_URL": url,
            "AIRFLOW__API__HOST": HOST,
            "AIRFLOW__API__PORT": url.rpartition(":")[2],
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(32),
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            # More processes would be forked at the start, each with Airflow's imports: half a minute on two cores.
            "AIRFLOW__CORE__PARALLELISM": "4",
        }

    def start(self, names: Sequence[str] = tuple(_COMMANDS)) -> None:
        """Start these processes without waiting for them."""
        for name in names:
            command = [sys.executable, "-m", "airflow", *_COMMANDS[name]]
            self._processes.start(name, command, log=self._logs / f"{name}.log", environment=self.environment)

    def wait_until_healthy(self) -> None:
        """Wait until each process reports that it is healthy."""
        deadline = time.monotonic() + _READY_SECONDS
        said = "nothing"
        while time.monotonic() < deadline:
            running = self._processes.running()
            if ended := [name for name in _COMMANDS if name not in running]:
                remedy = f"Its log is {self._logs}/{ended[0]}.log."
                raise EnvironmentFault(f"Airflow's {ended[0]} ended at once", remedy=remedy)
            try:
                with urllib.request.urlopen(f"{self.url}/api/v2/monitor/health", timeout=5) as answer:  # nosec B310: our own loopback address
                    health = json.load(answer)
            except (urllib.error.URLError, OSError) as unreachable:
                said = str(unreachable)
            else:
                parts = ("metadatabase", "scheduler", "triggerer", "dag_processor")
                waiting = [part for part in parts if health[part]["status"] != "healthy"]
                if not waiting:
                    return
                said = f"{', '.join(waiting)} not healthy yet"
            time.sleep(0.5)
        raise EnvironmentFault(
            f"Airflow wasn't ready after {_READY_SECONDS} s ({said})", remedy=f"Its logs are in {self._logs}."
        )


def free_url(*, preferred: bool = True) -> str:
    """An address for the API server, on Airflow's usual port if that is free."""
    for port in (_PORT, 0) if preferred else (0,):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return f"http://{HOST}:{probe.getsockname()[1]}"
    raise EnvironmentFault("No port is free on the loopback interface")
