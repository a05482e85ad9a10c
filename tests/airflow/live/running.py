"""An Airflow that runs: its processes, and its API as a user's client sees it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import psutil

from airflow_provider_pgtrickle.demo.processes import Processes
from airflow_provider_pgtrickle.demo.services import Services, free_url

_Found = TypeVar("_Found")


def wait_for(condition: Callable[[], _Found | None], what: str, seconds: float = 180) -> _Found:
    """The first true answer."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while time.monotonic() < deadline:
        if answer := condition():
            return answer
        pause.wait(0.1)
    raise AssertionError(f"Not within {seconds:.0f} s: {what}")


class RunningAirflow:
    """Scheduler, API server, triggerer and DAG processor of a home of their own."""

    def __init__(
        self,
        home: Path,
        dags: Path,
        connections: Mapping[str, Mapping[str, Any]],
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.home = home
        self._processes = Processes(home / "processes.json")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        environment = {
            **inherited,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            # A watcher of a DAG that is paused when it is first parsed has no trigger.
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
            # How soon the tasks of a scheduler that died are taken over.
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "5",
            "PGTRICKLE_MIN_SCHEDULE_SECONDS": "1",
            "PGTRICKLE_RETRY_ATTEMPTS": "2",
            "PYTHONPATH": os.pathsep.join(sys.path),
            **{f"AIRFLOW_CONN_{name.upper()}": json.dumps(fields) for name, fields in connections.items()},
            **settings,
        }
        self._services = Services(self._processes, free_url(preferred=False), home, environment)

    def start(self) -> None:
        subprocess.run(
            [sys.executable, "-m", "airflow", "db", "migrate"],
            check=True,
            capture_output=True,
            env=self._services.environment,
        )
        self._services.start()

    def wait_until_healthy(self) -> None:
        self._services.wait_until_healthy()

    def stop(self) -> None:
        self._processes.stop()

    @contextmanager
    def scheduler_killed(self) -> Iterator[None]:
        """The scheduler dies on entry, its workers live on; another one is started at once."""
        scheduler = self._processes.running()["scheduler"]
        orphans = scheduler.children(recursive=True)
        scheduler.send_signal(signal.SIGKILL)
        os.waitpid(scheduler.pid, 0)
        self._services.start(["scheduler"])
        try:
            yield
        finally:
            for orphan in orphans:
                if orphan.is_running():
                    orphan.kill()

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """One request to the REST API, put again where Airflow's SQLite was locked, which is a 500.

        So it must be one that may be put twice.
        """
        return wait_for(lambda: self._answer(method, f"api/v2/{path}", body), f"{method} {path}", 60)

    def page(self, conn_id: str, route: str, **query: str) -> Any:
        """What the page of stream tables is told."""
        path = f"pgtrickle/api/connections/{conn_id}/{route}?{urllib.parse.urlencode(query)}"
        return wait_for(lambda: self._answer("GET", path, None), path, 60)

    def _answer(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        """None where Airflow itself failed; `exists` where what was to be made is there already."""
        request = urllib.request.Request(
            f"{self._services.url}/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            if refused.code >= 500:
                return None
            if refused.code == 409:
                return {"exists": True}
            raise AssertionError(f"{method} {path}: {refused.code} {refused.read().decode()}") from None

    def dag_ids(self) -> set[str]:
        """Those that were parsed; a file that can't be is told at once."""
        assert not self.import_errors()
        return {dag["dag_id"] for dag in self.call("GET", "dags?limit=100")["dags"]}

    def import_errors(self) -> list[str]:
        return [error["stack_trace"] for error in self.call("GET", "importErrors")["import_errors"]]

    def trigger(self, dag_id: str) -> str:
        """Start a run by hand; its id."""
        run_id = f"by_hand_{uuid.uuid4().hex}"
        self.call("POST", f"dags/{dag_id}/dagRuns", {"logical_date": None, "dag_run_id": run_id})
        return run_id

    def pause(self, dag_id: str) -> None:
        self.call("PATCH", f"dags/{dag_id}", {"is_paused": True})

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """Oldest first."""
        return list(self.call("GET", f"dags/{dag_id}/dagRuns?order_by=id&limit=100")["dag_runs"])

    def finished(self, dag_id: str, run_id: str) -> str:
        """The state in which a run ended."""

        def state() -> str | None:
            now = self.call("GET", f"dags/{dag_id}/dagRuns/{run_id}")["state"]
            return now if now in ("success", "failed") else None

        return wait_for(state, f"the end of {dag_id} {run_id}")

    def task(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """A task instance: state, try_number, pid."""
        return dict(self.call("GET", f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"))

    def clear(self, dag_id: str, run_id: str, *task_ids: str) -> None:
        self.call(
            "POST",
            f"dags/{dag_id}/clearTaskInstances",
            {"dry_run": False, "dag_run_id": run_id, "task_ids": list(task_ids), "only_failed": False},
        )

    def log(self, dag_id: str, run_id: str, task_id: str) -> str:
        """What a task's tries logged."""
        folder = self.home / "logs" / f"dag_id={dag_id}" / f"run_id={run_id}" / f"task_id={task_id}"
        return "\n".join(file.read_text() for file in sorted(folder.glob("*.log")))


def descendants(pid: int, name: str) -> list[psutil.Process]:
    """The processes below `pid` whose program is called so."""
    return [child for child in psutil.Process(pid).children(recursive=True) if child.name() == name]
