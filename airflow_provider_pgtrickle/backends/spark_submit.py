"""Refreshes units by spark-submit: local, standalone, on YARN or Kubernetes, as the connection says."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowException

from airflow_provider_pgtrickle.backends.request import RefreshRequest
from airflow_provider_pgtrickle.engine.errors import EnvironmentFault, PgTrickleError, TransientFault, UsageError
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.heap_settings import AT_START
from airflow_provider_pgtrickle.engine.spark.jars import jdbc_jar
from airflow_provider_pgtrickle.engine.spark.package import application, zip_package

_APPLICATION = "refresh.py"
_QUIET = "log4j2.properties"
_MISUSED = 2
_LOOK_ABOVE = "Its output stands above in this log."
#: By this a pod gets the DSN from a secret that the user makes, and not from an argument.
_SECRET_KEY_REF = "spark.kubernetes.driver.secretKeyRef.PGTRICKLE_DSN"  # nosec B105: a setting's name


class SparkSubmitBackend:
    """Runs one application for all units of a request. It gets the DSN, with credentials, in its environment."""

    def __init__(self, conn_id: str, spark_args: Mapping[str, Any]) -> None:
        self._conn_id = conn_id
        self._args = dict(spark_args)
        self._hook: SparkSubmitHook | None = None

    def refresh(self, request: RefreshRequest) -> None:
        hook = self._hook = self._prepared(request)
        try:
            # It leads a process group, because killing the JVM alone would leave its Python driver alive.
            hook.submit(str(application(_APPLICATION)), start_new_session=True)
        except AirflowException:
            raise self._failed(hook) from None
        except FileNotFoundError:
            raise EnvironmentFault(
                "spark-submit is not on the PATH", remedy="Install pyspark where the worker runs, or Spark itself."
            ) from None
        finally:
            self._hook = None

    def _failed(self, hook: SparkSubmitHook) -> PgTrickleError:
        """The error for the application's exit code. The hook's own message would repeat the whole command."""
        code = hook._submit_sp.returncode if hook._submit_sp is not None else None
        if code == _MISUSED:
            return UsageError("The Spark application refused its arguments", remedy=_LOOK_ABOVE)
        return TransientFault(f"The Spark application ended with exit code {code}", remedy=_LOOK_ABOVE)

    def _prepared(self, request: RefreshRequest) -> SparkSubmitHook:
        settings = Settings.load(**request.settings)
        args = dict(self._args)
        try:
            hook = SparkSubmitHook(
                conn_id=self._conn_id,
                name=args.pop("name", f"pgtrickle {' '.join(map(','.join, request.units))}"[:200]),
                application_args=_application_args(request),
                py_files=_joined(args.pop("py_files", None), str(compute_zip())),
                jars=_joined(args.pop("jars", None), str(jdbc_jar(settings))),
                conf=self._conf(args.pop("conf", None)),
                **args,
            )
        except TypeError as error:
            raise UsageError(f"spark_args: {error}", remedy="Give arguments of SparkSubmitHook.") from None
        self._refuse_cluster_without_secret(hook)
        # The hook's `env_vars` would not do: on YARN and Kubernetes it writes those into --conf.
        hook._env = {**(hook._env or {}), **_python(hook._connection["master"]), **_environment(request)}
        return hook

    def _conf(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        return {
            **AT_START,
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{application(_QUIET)}",
            **(given or {}),
        }

    def _refuse_cluster_without_secret(self, hook: SparkSubmitHook) -> None:
        if hook._connection["deploy_mode"] == "cluster" and _SECRET_KEY_REF not in hook._conf:
            raise UsageError(
                f"Connection {self._conn_id!r} deploys the driver into the cluster, where the database's address "
                "can't follow without being seen",
                remedy=f"Use deploy mode client, or on Kubernetes a secret: conf {_SECRET_KEY_REF}=<secret>:<key>.",
            )

    def kill(self) -> None:
        hook = self._hook
        process = hook._submit_sp if hook is not None else None
        if hook is None or process is None:
            return
        # The hook stops what runs in YARN or Kubernetes, the signal what runs here.
        with contextlib.suppress(Exception):
            hook.on_kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def close(self) -> None:
        self.kill()


def _application_args(request: RefreshRequest) -> list[str]:
    args = [arg for unit in request.units for arg in ("--tables", ",".join(unit))]
    args += ["--run-token", request.run_token, "--initiated-by", request.initiated_by]
    args += ["--along", ",".join(request.along)] if request.along else []
    return [*args, "--full"] if request.force_full else args


def _environment(request: RefreshRequest) -> dict[str, str]:
    settings = {f"PGTRICKLE_{name.upper()}": str(value) for name, value in request.settings.items()}
    return {"PGTRICKLE_DSN": request.dsn, **settings}


def _python(master: str) -> dict[str, str]:
    """The driver must run the interpreter that has our packages, and so must executors on this machine."""
    beside = str(Path(sys.executable).parent)
    # pip puts spark-submit beside the interpreter, whose folder may not be on the worker's PATH.
    found = {
        "PATH": f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{beside}",
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    if master.startswith("local"):
        found["PYSPARK_PYTHON"] = sys.executable
    return {**found, **{name: os.environ[name] for name in found if name in os.environ and name != "PATH"}}


def _joined(*parts: str | None) -> str:
    return ",".join(part for part in parts if part)


@cache
def compute_zip() -> Path:
    """The engine's zip for `--py-files`. Its name depends on its content, so tasks share it and none is stale."""
    folder = Path(tempfile.gettempdir()) / f"pgtrickle-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise EnvironmentFault(f"{folder} belongs to somebody else", remedy="Remove it, or set TMPDIR.")
    descriptor, name = tempfile.mkstemp(dir=folder, suffix=".zip")
    os.close(descriptor)
    draft = zip_package(Path(name))
    # The zip has the same bytes wherever it is built, so replacing it changes nothing for other tasks.
    target = folder / f"pgtrickle-{hashlib.sha256(draft.read_bytes()).hexdigest()[:16]}.zip"
    return draft.replace(target)
