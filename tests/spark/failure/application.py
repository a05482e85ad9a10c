"""`spark_apps/refresh.py` as users start it: in a process of its own, by spark-submit or against a server."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.jars import jdbc_jar
from airflow_provider_pgtrickle.engine.spark.package import application, zip_package
from airflow_provider_pgtrickle.engine.spark.servers import LOOPBACK, spark_home
from tests.spark.failure.shop import DEADLINE


class Application:
    """One run of it."""

    def __init__(self, command: Sequence[str], dsn: str, log: Path, **environment: str) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        env |= {"PGTRICKLE_DSN": dsn, "PGTRICKLE_RETRY_ATTEMPTS": "1", "PYSPARK_PYTHON": sys.executable}
        env |= {"PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": LOOPBACK} | environment
        self._log = log
        with log.open("w") as said:
            self._process = subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,
                text=True,
            )

    def result(self, *_ignored: Any) -> list[dict[str, Any]]:
        """What it printed, once it has ended well."""
        out, _ = self._process.communicate(timeout=DEADLINE)
        # spark-submit sends what Python says on standard error there too.
        assert self._process.returncode == 0, f"{out}\n{self._log.read_text()[-2000:]}"
        return json.loads(out.splitlines()[-1])

    def done(self) -> bool:
        return self._process.poll() is not None

    def exception(self, *_: Any) -> Exception | None:
        """Why it failed, in its own words."""
        self._process.communicate(timeout=DEADLINE)
        return RuntimeError(self._log.read_text()[-3000:]) if self._process.returncode else None

    def kill(self) -> None:
        """The driver and its JVM at once, as the loss of their machine would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def submitted(
    master: str, dsn: str, folder: Path, token: str, *conf: str, full: bool = False, **settings: Any
) -> Application:
    """By spark-submit, with the package as a zip."""
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", master, "--jars", str(jdbc_jar(Settings.load()))]
    command += ["--py-files", str(zip_package(folder / "pgtrickle.zip"))]
    for setting in ("spark.ui.enabled=false", f"spark.driver.host={LOOPBACK}", *conf):
        command += ["--conf", setting]
    command += [str(application()), "--tables", "st", "--run-token", token, *(["--full"] if full else [])]
    environment = {f"PGTRICKLE_{name.upper()}": str(value) for name, value in settings.items()}
    return Application(command, dsn, folder / f"{token}.log", SPARK_HOME=str(spark_home()), **environment)


def by_python(remote: str, dsn: str, folder: Path, token: str) -> Application:
    """By the interpreter, against a Connect server."""
    command = [sys.executable, str(application()), "--tables", "st", "--run-token", token]
    return Application(command, dsn, folder / f"{token}.log", SPARK_REMOTE=remote)
