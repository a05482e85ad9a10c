"""The Spark session of a refresh: the caller's, the process's own, or a new one."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_pgtrickle.engine.errors import ConnectionFault, EnvironmentFault
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark import jvm
from airflow_provider_pgtrickle.engine.spark.heap_settings import AT_START, ON_SESSION
from airflow_provider_pgtrickle.engine.spark.jars import jdbc_jar
from airflow_provider_pgtrickle.engine.spark.package import application
from airflow_provider_pgtrickle.engine.spark.versions import check_versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONNECT_PORT = 15002
_REACH_SECONDS = 10
_CONNECT_RETRIES = 4


def obtain(spark: SparkSession | None, settings: Settings) -> SparkSession:
    """`spark` itself if given, else the session of `SPARK_REMOTE`, of spark-submit, or a new local one."""
    if spark is not None:
        return spark
    check_versions()
    if (running := active()) is not None:
        return running
    if remote := os.environ.get("SPARK_REMOTE"):
        _require_reachable(remote)
        session = _started(sql_conf(settings), f"Spark Connect at {_address(remote)}")
        limit_patience(session)
        return session
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # Under spark-submit the JVM runs already, with the submitter's master, jars and memory.
        return _ending(_started(sql_conf(settings), "the Spark application"))
    _require_java()
    # Python workers must run the interpreter that has our packages, not the `python3` on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if settings.spark_master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with jvm.launching():
        session = _started(local_conf(settings), f"Spark on {settings.spark_master}")
    return _ending(session)


def active() -> SparkSession | None:
    """This process' own session, where it has one whose JVM still runs."""
    from pyspark.sql import SparkSession

    if jvm.has_ended():
        jvm.let_go()
    return SparkSession.getActiveSession()


def stop(session: SparkSession) -> None:
    """Stop a session that `obtain` started, even if its JVM has ended already."""
    if has_ended(session):
        jvm.let_go()
    else:
        session.stop()


def kill(session: SparkSession) -> None:
    """End a session that `obtain` started at once, with everything it computes."""
    if is_connect(session):
        with suppress(Exception):
            session.interruptAll()
            session.stop()
    elif "PYSPARK_GATEWAY_PORT" in os.environ:
        session.stop()
    else:
        jvm.end()
        jvm.let_go()


def has_ended(session: SparkSession) -> bool:
    """Whether a session that `obtain` started has ended. A Connect session never counts so: its server may be back."""
    return not is_connect(session) and jvm.has_ended()


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is a Spark Connect client, which has no JVM beside it."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def limit_patience(session: SparkSession) -> None:
    """Let a Connect client give up a server that is gone after five seconds, and not after ten minutes.

    Whoever started the refresh tries again, maybe elsewhere.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    # The waits are 0.05, 0.2, 0.8 and 3.2 seconds.
    session.client.set_retry_policies([DefaultPolicy(max_retries=_CONNECT_RETRIES)])


def sql_conf(settings: Settings) -> dict[str, str]:
    """Settings for small deltas and PostgreSQL's semantics, which can be set on a running session."""
    return ON_SESSION | {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(settings.spark_shuffle_partitions),
    }


def local_conf(settings: Settings) -> dict[str, str]:
    """Settings of a session started here: it listens on loopback only, has no UI, and finds the driver's jar."""
    conf = sql_conf(settings) | AT_START
    conf |= {
        "spark.app.name": "pgtrickle",
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.jars": str(jdbc_jar(settings)),
        "spark.master": settings.spark_master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={application('log4j2.properties').as_uri()}",
    }
    if settings.spark_master.startswith("local"):
        conf |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    return conf


def _started(conf: dict[str, str], what: str) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, OSError) as exc:
        raise ConnectionFault(f"{what} could not be started or reached", remedy="See Spark's log above.") from exc


def _ending(session: SparkSession) -> SparkSession:
    jvm.end_when_exhausted(session)
    return session


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (home and Path(home, "bin", "java").is_file()) and shutil.which("java") is None:
        raise EnvironmentFault(
            "Java is not installed, and Spark needs version 17 or later",
            remedy="Install it (Debian, Ubuntu: apt-get install default-jre-headless) or set JAVA_HOME.",
        )


def _require_reachable(remote: str) -> None:
    """Fail in seconds, because the Connect client itself goes on trying for minutes."""
    url = urlsplit(remote)
    try:
        socket.create_connection((url.hostname or "localhost", url.port or _CONNECT_PORT), _REACH_SECONDS).close()
    except OSError as exc:
        raise ConnectionFault(
            f"No Spark Connect server answers at {_address(remote)}", remedy="Start it, or correct SPARK_REMOTE."
        ) from exc


def _address(remote: str) -> str:
    """Host and port alone, because the rest of a Connect URL may hold a token."""
    url = urlsplit(remote)
    return f"{url.hostname}:{url.port or _CONNECT_PORT}"
