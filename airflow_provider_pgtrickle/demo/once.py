"""The demo: loads the shop, runs the DAGs, changes rows, runs them again, and compares; nothing is left running."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from airflow_provider_pgtrickle.demo import report, shop, spark
from airflow_provider_pgtrickle.demo.airflow_home import AirflowHome


def run(folder: Path) -> bool:
    """True when every stream table equalled its query after each run. `folder` keeps Airflow's log."""
    home_folder = folder / "airflow"
    shutil.rmtree(home_folder, ignore_errors=True)
    # It isn't below `folder`, because under root the server runs as another user, who may not enter the clone.
    with tempfile.TemporaryDirectory(prefix="pgtrickle-demo-", ignore_cleanup_errors=True) as scratch:
        server = shop.server_in(Path(scratch))
        try:
            say("starting an embedded PostgreSQL and loading the shop")
            server.start()
            dsn = shop.create_shop(server)
            say("starting a warm Spark Connect server")
            with spark.running(folder / "spark", dsn) as url:
                home = AirflowHome(home_folder, dsn, url)
                say("preparing Airflow")
                home.prepare()
                dags = home.dag_ids()
                first = _round(home, dags, "first run")
                say("changing rows: orders placed, shipped and taken back, prices and places changed")
                shop.change(dsn)
                second = _round(home, dags, "second run, after the changes")
                say(f"done; Airflow's log is {home.log}")
                return first and second
        finally:
            server.remove()


def say(what: str) -> None:
    print(f"==> {what}", flush=True)


def _round(home: AirflowHome, dags: list[str], title: str) -> bool:
    before = report.last_refresh(home.dsn)
    for dag in dags:
        say(f"airflow dags test {dag} ({title})")
        home.run(dag)
    lines = report.lines_since(home.dsn, before)
    print(f"\n{report.table(lines)}\n", flush=True)
    return bool(lines) and all(line.equal for line in lines)
