"""Sessions of both kinds, and a cluster that can lose a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.leaf import Snapshot
from airflow_provider_pgtrickle.engine.spark.servers import ConnectServer, StandaloneCluster
from tests import servers
from tests.answers import only

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SnapshotNow = Callable[[], AbstractContextManager[Snapshot]]


@pytest.fixture(scope="session")
def connect_server(spark_alone: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A warm Connect server whose event log and own log stand readable in its folder."""
    folder = tmp_path_factory.mktemp("connect")
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": folder.as_uri(),
    }
    standing = tmp_path_factory.mktemp("standing")
    with ConnectServer(folder, Settings.load(), conf=conf, environment=password_file(standing)) as server:
        yield server


@pytest.fixture(scope="session")
def connect(connect_server: ConnectServer) -> Iterator[SparkSession]:
    with client(connect_server) as session:
        yield session


@pytest.fixture(params=["classic", "connect", "standing"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def any_spark(request: pytest.FixtureRequest, kind: str) -> SparkSession:
    """The test runs on a classic session, on a Connect client, and on one whose server has the password in a file."""
    return request.getfixturevalue("spark" if kind == "classic" else "connect")


@pytest.fixture(scope="module")
def cluster(spark_alone: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """A master and two workers. A test may kill the first one: the second goes on for the others."""
    with StandaloneCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def on_cluster(cluster: StandaloneCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session whose executors are the cluster's; a failed task is tried again there."""
    conf = {"spark.executor.memory": "512m"}
    with (
        ConnectServer(tmp_path_factory.mktemp("driver"), Settings.load(), master=cluster.url, conf=conf) as server,
        client(server) as session,
    ):
        yield session


@pytest.fixture
def database(dsn: str, request: pytest.FixtureRequest) -> Database:
    standing = "kind" in request.fixturenames and request.getfixturevalue("kind") == "standing"
    return Database(dsn, Settings.load(spark_credentials="pgpass") if standing else Settings.load())


@pytest.fixture
def conn(database: Database) -> Iterator[psycopg.Connection]:
    with servers.user_session(database.dsn) as conn:
        yield conn


@pytest.fixture
def snapshot_now(database: Database) -> SnapshotNow:
    """Export what is visible now, and hold it open for the block."""

    @contextmanager
    def holding() -> Iterator[Snapshot]:
        with database.connect() as coordinator:
            coordinator.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            (exported,) = only(coordinator.execute("SELECT pg_export_snapshot()"))
            yield Snapshot(database.jdbc, exported)

    return holding


def password_file(folder: Path) -> dict[str, str]:
    """What a server gets so that the password stands there."""
    file = folder / "pgpass"
    file.touch(mode=0o600)
    file.write_text(f"*:*:*:{servers.ORDINARY_ROLE}:{servers.ORDINARY_PASSWORD}\n")
    return {"PGPASSFILE": str(file)}


@contextmanager
def client(server: ConnectServer) -> Iterator[SparkSession]:
    """A session of a Connect server, beside whatever other sessions the process has."""
    # The class itself: PySpark's own builder would turn this whole process over to Connect.
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    # PySpark promises both kinds of session one face, and has no type for it.
    session: Any = ConnectSession.builder.remote(server.url).create()
    try:
        yield session
    finally:
        session.stop()
