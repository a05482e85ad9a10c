"""An API server as `airflow api-server` starts it, and no other process of Airflow: the page needs none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow_provider_pgtrickle.demo.processes import Processes
from airflow_provider_pgtrickle.demo.services import Services, free_url
from tests.airflow.live.running import wait_for


class Serving:
    def __init__(self, home: Path, dags: Path, connections: Mapping[str, str]) -> None:
        self.home = home
        self._processes = Processes(home / "processes.json")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        environment = {
            **inherited,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
            "PYTHONPATH": os.pathsep.join(sys.path),
            **{f"AIRFLOW_CONN_{name.upper()}": url for name, url in connections.items()},
        }
        self._services = Services(self._processes, free_url(preferred=False), home, environment)
        # Below a path, as behind many a proxy: what works there works without one.
        self.url = self._services.environment["AIRFLOW__API__BASE_URL"] = f"{self._services.url}/air"

    def start(self) -> None:
        self._airflow("db", "migrate")
        # The server begins while the DAG file is parsed.
        self._services.start(["api-server"])
        self._airflow("dags", "reserialize")
        wait_for(self._is_healthy, f"the API server; its log is {self.home}/api-server.log", 120)

    def stop(self) -> None:
        self._processes.stop()

    def call(self, path: str, body: Any = None) -> Any:
        """What Airflow's own API answers; a body is posted."""
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(f"{self.url}/api/v2/{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.load(answer)

    def _airflow(self, *arguments: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "airflow", *arguments],
            check=True,
            capture_output=True,
            env=self._services.environment,
        )

    def _is_healthy(self) -> bool:
        try:
            return bool(self.call("monitor/health")["metadatabase"]["status"] == "healthy")
        except (urllib.error.URLError, OSError):
            return False
