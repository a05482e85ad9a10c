"""The demo, live: PostgreSQL, Airflow with its UI, and a writer, until `down`.

Airflow's four processes are those that `airflow standalone` starts, started one by one: standalone's log servers
would listen on every network interface. They aren't needed here, the logs lie on the same disk.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from airflow_provider_pgtrickle.demo import database
from airflow_provider_pgtrickle.demo.airflow_home import AirflowHome
from airflow_provider_pgtrickle.demo.once import say
from airflow_provider_pgtrickle.demo.processes import Processes
from airflow_provider_pgtrickle.errors import EnvironmentFault

_HOST = "127.0.0.1"
_PORT = 8080
_READY_SECONDS = 180


def up(folder: Path) -> None:
    """Start what isn't running, and say where to look."""
    folder.mkdir(parents=True, exist_ok=True)
    processes = Processes(folder / "processes.json")
    place = folder / "live.json"
    if place.exists() and "api-server" in processes.running():
        _announce(place)
        return
    down(folder)
    postgres = Path(tempfile.mkdtemp(prefix="pgtrickle-demo-"))
    state = {
        "postgres": str(postgres),
        "airflow": str(folder / "airflow-live"),
        "url": f"http://{_HOST}:{_free_port()}",
    }
    place.touch(mode=0o600)
    place.write_text(json.dumps(state))
    try:
        _start(state, processes)
    except BaseException:
        say("that failed; stopping what was started")
        down(folder)
        raise
    _announce(place)


def down(folder: Path) -> None:
    """Stop what `up` recorded, and nothing else."""
    Processes(folder / "processes.json").stop()
    place = folder / "live.json"
    if place.exists():
        state = json.loads(place.read_text())
        database.server_in(Path(state["postgres"])).remove()
        place.unlink()


def _start(state: dict[str, str], processes: Processes) -> None:
    say("starting an embedded PostgreSQL and loading the shop")
    server = database.server_in(Path(state["postgres"])).start()
    dsn = database.create_shop(server)
    home = AirflowHome(Path(state["airflow"]), dsn)
    say("preparing Airflow")
    home.prepare()
    dags = home.dag_ids()
    for dag in dags:
        home.airflow("dags", "unpause", "--yes", dag)
    environment = home.environment | {
        "AIRFLOW__API__BASE_URL": state["url"],
        "AIRFLOW__API__HOST": _HOST,
        "AIRFLOW__API__PORT": state["url"].rpartition(":")[2],
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(32),
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        # More would be forked at the start, each with Airflow's imports: half a minute on two cores.
        "AIRFLOW__CORE__PARALLELISM": "4",
    }
    commands = {
        "api-server": ["api-server"],
        "scheduler": ["scheduler", "--skip-serve-logs"],
        "dag-processor": ["dag-processor"],
        "triggerer": ["triggerer", "--skip-serve-logs"],
    }
    say("starting Airflow")
    for name, arguments in commands.items():
        command = [sys.executable, "-m", "airflow", *arguments]
        processes.start(name, command, log=home.folder / f"{name}.log", environment=environment)
    writer = [sys.executable, "-m", "airflow_provider_pgtrickle.demo.writer"]
    processes.start("writer", writer, log=home.folder / "writer.log", environment=os.environ | {"PGTRICKLE_DSN": dsn})
    _wait_until_healthy(state["url"], processes, [*commands, "writer"], home.folder)


def _wait_until_healthy(url: str, processes: Processes, names: list[str], logs: Path) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    said = "nothing"
    while time.monotonic() < deadline:
        ended = [name for name in names if name not in processes.running()]
        if ended:
            raise EnvironmentFault(f"Airflow's {ended[0]} ended at once", remedy=f"Its log is {logs}/{ended[0]}.log.")
        try:
            with urllib.request.urlopen(f"{url}/api/v2/monitor/health", timeout=5) as answer:
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
    raise EnvironmentFault(f"Airflow wasn't ready after {_READY_SECONDS} s ({said})", remedy=f"Its logs are in {logs}.")


def _announce(place: Path) -> None:
    state = json.loads(place.read_text())
    passwords = Path(state["airflow"]) / "simple_auth_manager_passwords.json.generated"
    [(user, password)] = json.loads(passwords.read_text()).items()
    print(f"\nAirflow:  {state['url']}\nlogin:    {user}\npassword: {password}\n\n`make down` stops it.", flush=True)


def _free_port() -> int:
    """Airflow's usual port where it is free."""
    for port in (_PORT, 0):
        with socket.socket() as probe:
            try:
                probe.bind((_HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise EnvironmentFault("No port is free on the loopback interface")
