"""Private Spark servers on loopback, from PySpark's distribution, for trials, tests and benchmarks.

Each process leads a process group, is known by its pid, and ends with the object that started it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from airflow_provider_pgtrickle.engine.errors import EnvironmentFault
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.heap_settings import AT_START, ON_SESSION
from airflow_provider_pgtrickle.engine.spark.jars import jdbc_jar

LOOPBACK = "127.0.0.1"
#: A server that lacks memory then ends, so that nobody waits for its answer for ever.
_END_WHEN_EXHAUSTED = "-XX:+ExitOnOutOfMemoryError"
_START_SECONDS = 120
_STOP_SECONDS = 10
_DAEMON = "256m"
_MASTER_READY = re.compile(r"Starting Spark master at (?P<url>spark://\S+)")
_WORKER_READY = re.compile(r"Successfully registered with master")
_CONNECT_READY = re.compile(r"Spark Connect server started at: .*?:(?P<port>\d+)")


class SparkProcess:
    """One JVM; `start` returns as soon as its log says that it is ready."""

    def __init__(self, command: Sequence[str], ready: re.Pattern[str], log: Path, env: Mapping[str, str]) -> None:
        self._command, self._ready, self.log, self._env = list(command), ready, log, dict(env)
        self._process: subprocess.Popen[str] | None = None
        self._said = threading.Event()
        self.match: re.Match[str] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            self._command,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        threading.Thread(target=self._follow, daemon=True).start()
        if not self._said.wait(_START_SECONDS) or self.match is None:
            self.kill()
            raise EnvironmentFault("A Spark server did not start", remedy=f"Its log is {self.log}.")
        return self

    def stop(self) -> None:
        self._signal(signal.SIGTERM)
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End the whole group at once: a worker and the executors it launched."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def _signal(self, number: int) -> None:
        if self._process is not None:
            # Nothing to signal: all of the group is gone.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _follow(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with self.log.open("w") as log:
            for line in self._process.stdout:
                log.write(line)
                log.flush()
                if self.match is None and (found := self._ready.search(line)):
                    self.match = found
                    self._said.set()
        # Its end also wakes whoever waits for it to be ready.
        self._said.set()


class _Servers:
    """Starts on entry, ends on exit whatever happened in between."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._own = dict(environment or {})
        self._started: list[SparkProcess] = []

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        for process in reversed(self._started):
            process.stop()
        self._started.clear()

    def _start(self) -> None:
        raise NotImplementedError

    def _run(self, name: str, command: Sequence[str], ready: re.Pattern[str], memory: str) -> SparkProcess:
        process = SparkProcess(command, ready, self.folder / f"{name}.log", self._environment(memory))
        self._started.append(process)
        return process.start()

    def _environment(self, memory: str) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "_PYSPARK"))}
        ours = {
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": LOOPBACK,
            # This counts for a Connect server too, because spark-submit treats it as a daemon.
            "SPARK_DAEMON_MEMORY": memory,
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "PYSPARK_PYTHON": sys.executable,
        }
        return inherited | ours | self._own


class StandaloneCluster(_Servers):
    """A master and workers of one core each; `url` is what `--master` wants."""

    def __init__(self, folder: Path, *, workers: int = 2, executor_memory: str = "768m") -> None:
        super().__init__(folder)
        self._count, self._memory = workers, executor_memory
        self.url = ""
        self.workers: list[SparkProcess] = []

    def _start(self) -> None:
        master = self._run("master", self._command("master.Master"), _MASTER_READY, _DAEMON)
        assert master.match is not None
        self.url = master.match["url"]
        for _ in range(self._count):
            self.add_worker()

    def add_worker(self) -> None:
        """One more, as when a lost machine is replaced. Applications that run get an executor on it."""
        number = len(self._started) - 1
        size = ["--cores", "1", "--memory", self._memory, "--work-dir", str(self.folder / f"work-{number}")]
        command = [*self._command("worker.Worker"), *size, self.url]
        self.workers.append(self._run(f"worker-{number}", command, _WORKER_READY, _DAEMON))

    @staticmethod
    def _command(kind: str) -> list[str]:
        program = str(spark_home() / "bin" / "spark-class")
        return [program, f"org.apache.spark.deploy.{kind}", "--host", LOOPBACK, "--port", "0", "--webui-port", "0"]


class ConnectServer(_Servers):
    """A warm Spark Connect server; `url` is what `SPARK_REMOTE` wants."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        *,
        master: str = "local[2]",
        conf: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(folder, environment)
        self._settings, self._master, self._conf = settings, master, dict(conf or {})
        self.url = ""

    @property
    def pid(self) -> int:
        return self._started[0].pid

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._started[0].kill()

    def command(self) -> list[str]:
        conf = {
            "spark.connect.grpc.binding.address": LOOPBACK,
            "spark.connect.grpc.binding.port": "0",
            "spark.driver.bindAddress": LOOPBACK,
            "spark.driver.extraJavaOptions": _END_WHEN_EXHAUSTED,
            "spark.driver.host": LOOPBACK,
            "spark.ui.enabled": "false",
        }
        conf |= ON_SESSION | AT_START | self._conf
        command = [str(spark_home() / "bin" / "spark-submit"), "--master", self._master]
        for key, value in conf.items():
            command += ["--conf", f"{key}={value}"]
        command += ["--jars", str(jdbc_jar(self._settings)), "--name", "pgtrickle-connect"]
        return [*command, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]

    def environment(self) -> dict[str, str]:
        return self._environment(self._settings.spark_driver_memory)

    @staticmethod
    def said(log: str) -> str | None:
        """The URL of a server with this log; None as long as it isn't ready."""
        found = _CONNECT_READY.search(log)
        return f"sc://{LOOPBACK}:{found['port']}" if found else None

    def _start(self) -> None:
        server = self._run("connect", self.command(), _CONNECT_READY, self._settings.spark_driver_memory)
        assert server.match is not None
        self.url = self.said(server.match[0]) or ""


def spark_home() -> Path:
    """The distribution inside PySpark, which has the client's version, whatever `SPARK_HOME` says."""
    import pyspark

    return Path(pyspark.__file__).parent
