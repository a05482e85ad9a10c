"""An Airflow of the demo's own: its folder, its environment and its command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from psycopg.conninfo import conninfo_to_dict

from airflow_provider_pgtrickle.engine.errors import EnvironmentFault, RefreshError

GRAPH = "shop"
_PACKAGE = Path(__file__).parent.parent
#: The examples as a clone has them, or as the wheel does.
_FOLDERS = (_PACKAGE.parent / "dags", _PACKAGE / "example_dags")
_DAGS = next((folder for folder in _FOLDERS if (folder / "shop.py").exists()), _FOLDERS[0])


@dataclass(frozen=True)
class AirflowHome:
    """`folder` holds everything that Airflow writes; `dsn` is the shop, `spark` the URL of a Spark Connect server."""

    folder: Path
    dsn: str
    spark: str

    @property
    def log(self) -> Path:
        return self.folder / "demo.log"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every process of this Airflow. It holds the connections, which are never in arguments."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        return inherited | {
            "AIRFLOW_HOME": str(self.folder),
            "AIRFLOW__CORE__DAGS_FOLDER": str(_DAGS),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.folder}/airflow.db",
            "AIRFLOW_CONN_SHOP_PG": self._connection,
            "AIRFLOW_CONN_SPARK_DEFAULT": self._spark_connection,
            # Programs of the same environment (spark-submit) come first.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        }

    @property
    def _connection(self) -> str:
        parts = conninfo_to_dict(self.dsn)
        return json.dumps(
            {
                "conn_type": "pgtrickle",
                "host": parts["host"],
                "port": int(parts["port"] or 5432),
                "schema": parts["dbname"],
                "login": parts["user"],
                "password": parts["password"],
                "extra": {"spark_credentials": "pgpass"},
            }
        )

    @property
    def _spark_connection(self) -> str:
        url = urlsplit(self.spark)
        return json.dumps({"conn_type": "spark_connect", "host": url.hostname, "port": url.port})

    def prepare(self) -> None:
        """The folder and the metadata database."""
        if not (_DAGS / "shop.py").exists():
            raise EnvironmentFault(
                "The demo's DAG file shop.py isn't here", remedy="Install the wheel, or use a clone of the repository."
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        self.airflow("db", "migrate")

    def dag_ids(self) -> list[str]:
        """The DAGs that the shop's graph became."""
        self.airflow("dags", "reserialize")
        printed = self.airflow("dags", "list", "--output", "json")
        # Airflow also logs to this stream; the list is a line of its own.
        listed: list[dict[str, str]] = next(
            (json.loads(line) for line in printed.splitlines() if line.startswith("[{")), []
        )
        ids = sorted(dag["dag_id"] for dag in listed)
        found = [dag for dag in ids if dag == GRAPH or dag.startswith(f"{GRAPH}__")]
        if not found:
            raise EnvironmentFault(
                "dags/shop.py made no DAG",
                remedy=f"Why stands in {self.log}.",
            )
        return found

    def run(self, dag_id: str) -> None:
        """One run of a DAG, all its tasks in one process."""
        self.airflow("dags", "test", dag_id)

    def airflow(self, *arguments: str) -> str:
        """What an `airflow` command printed. All output goes to the log, whose end explains a failure."""
        with self.log.open("a") as log:
            log.write(f"$ airflow {' '.join(arguments)}\n")
            log.flush()
            done = subprocess.run(
                [sys.executable, "-m", "airflow", *arguments],
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                check=False,
            )
            log.write(done.stdout)
        if done.returncode != 0:
            end = "\n".join(self.log.read_text().splitlines()[-30:])
            raise RefreshError(f"`airflow {' '.join(arguments)}` failed; the end of {self.log}:\n{end}")
        return done.stdout
