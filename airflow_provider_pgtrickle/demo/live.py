"""The live demo: PostgreSQL, Spark Connect, Airflow with its UI and a writer, which run until `down`."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from airflow_provider_pgtrickle.demo import shop, spark
from airflow_provider_pgtrickle.demo.airflow_home import AirflowHome
from airflow_provider_pgtrickle.demo.once import say
from airflow_provider_pgtrickle.demo.processes import Processes
from airflow_provider_pgtrickle.demo.services import Services, free_url
from airflow_provider_pgtrickle.engine.errors import EnvironmentFault

#: A DAG that follows the shop's report, to show the report's asset at work.
_CONSUMER = "shop_consumer"


def up(folder: Path) -> None:
    """Start what isn't running, and say where to look."""
    folder.mkdir(parents=True, exist_ok=True)
    processes = Processes(folder / "processes.json")
    state_file = folder / "live.json"
    if state_file.exists() and "api-server" in processes.running():
        _announce(state_file)
        return
    down(folder)
    postgres = Path(tempfile.mkdtemp(prefix="pgtrickle-demo-"))
    state = {
        "postgres": str(postgres),
        "airflow": str(folder / "airflow-live"),
        "spark": str(folder / "spark-live"),
        "url": free_url(),
    }
    state_file.touch(mode=0o600)
    state_file.write_text(json.dumps(state))
    try:
        _start(state, processes)
        state_file.write_text(json.dumps(state))
    except BaseException:
        say("that failed; stopping what was started")
        down(folder)
        raise
    _announce(state_file)


def down(folder: Path) -> None:
    """Stop what `up` recorded, and nothing else."""
    Processes(folder / "processes.json").stop()
    state_file = folder / "live.json"
    if state_file.exists():
        state = json.loads(state_file.read_text())
        shop.server_in(Path(state["postgres"])).remove()
        state_file.unlink()


def _start(state: dict[str, str], processes: Processes) -> None:
    say("starting an embedded PostgreSQL and loading the shop")
    server = shop.server_in(Path(state["postgres"])).start()
    state["dsn"] = dsn = shop.create_shop(server)
    say("starting a warm Spark Connect server")
    spark.start(processes, Path(state["spark"]), dsn)
    home = AirflowHome(Path(state["airflow"]), dsn, spark.wait(processes, Path(state["spark"])))
    say("preparing Airflow")
    home.prepare()
    for dag in [*home.dag_ids(), _CONSUMER]:
        home.airflow("dags", "unpause", "--yes", dag)
    services = Services(processes, state["url"], home.folder, home.environment)
    say("starting Airflow")
    services.start()
    writer = [sys.executable, "-m", "airflow_provider_pgtrickle.demo.writer"]
    processes.start("writer", writer, log=home.folder / "writer.log", environment=os.environ | {"PGTRICKLE_DSN": dsn})
    services.wait_until_healthy()
    if "writer" not in processes.running():
        raise EnvironmentFault("The demo's writer ended at once", remedy=f"Its log is {home.folder}/writer.log.")


def _announce(state_file: Path) -> None:
    state = json.loads(state_file.read_text())
    passwords = Path(state["airflow"]) / "simple_auth_manager_passwords.json.generated"
    [(user, password)] = json.loads(passwords.read_text()).items()
    print(
        f"\nAirflow:  {state['url']}\nlogin:    {user}\npassword: {password}\n"
        f"page:     Browse, Stream tables, with the connection shop_pg\n"
        f"database: {state['dsn']}\n\n"
        "PGTRICKLE_DSN with this address lets `pgtrickle status` and psql look at it. `make down` stops it.",
        flush=True,
    )
