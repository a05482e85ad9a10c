"""Fixtures that all tests share. The directory of a test says what it needs: see `_NEEDS`."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# Airflow reads these when first imported, which a test module may do at its top.
_AIRFLOW_HOME = tempfile.mkdtemp(prefix="pgtrickle-airflow-")
atexit.register(shutil.rmtree, _AIRFLOW_HOME, ignore_errors=True)
os.environ.update(
    AIRFLOW_HOME=_AIRFLOW_HOME,
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__DAGS_FOLDER=str(Path(__file__).parent.parent / "dags"),
    AIRFLOW__LOGGING__LOGGING_LEVEL="WARNING",
)

from airflow_provider_pgtrickle.embedded import PostgresServer
from tests import servers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TESTS = Path(__file__).parent
_NEEDS = {
    "unit": ["unit"],
    "attack": ["database"],
    "database": ["database"],
    "foreign": ["database"],
    "oracle": ["database"],
    "property": ["database"],
    "sql_fixtures": ["database"],
    "tpch": ["database"],
    "spark": ["spark"],
    "airflow": ["airflow"],
    "end_to_end": ["database", "spark"],
}
_SPARK_LOCK = Path("/tmp/spark.lock")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        top = item.path.relative_to(_TESTS).parts[0] if item.path.is_relative_to(_TESTS) else ""
        for marker in _NEEDS.get(top, []):
            item.add_marker(marker)


@pytest.fixture(scope="session")
def postgres18() -> Iterator[PostgresServer]:
    with servers.running(18) as server:
        yield server


@pytest.fixture(scope="session")
def postgres15() -> Iterator[PostgresServer]:
    with servers.running(15) as server:
        yield server


@pytest.fixture
def _database(postgres18: PostgresServer) -> Iterator[str]:
    with servers.fresh_database(postgres18) as name:
        yield name


@pytest.fixture
def dsn(postgres18: PostgresServer, _database: str) -> str:
    """A fresh empty database on PostgreSQL 18, for the ordinary role that the URL names."""
    return servers.ordinary_dsn(postgres18, _database)


@pytest.fixture
def admin_dsn(postgres18: PostgresServer, _database: str) -> str:
    """The database of `dsn`, as superuser."""
    return postgres18.dsn(_database)


@pytest.fixture
def _database15(postgres15: PostgresServer) -> Iterator[str]:
    with servers.fresh_database(postgres15) as name:
        yield name


@pytest.fixture
def dsn15(postgres15: PostgresServer, _database15: str) -> str:
    """The same on PostgreSQL 15."""
    return servers.ordinary_dsn(postgres15, _database15)


@pytest.fixture
def admin_dsn15(postgres15: PostgresServer, _database15: str) -> str:
    """The database of `dsn15`, as superuser."""
    return postgres15.dsn(_database15)


@pytest.fixture(params=["18", "15"])
def any_dsn(request: pytest.FixtureRequest) -> str:
    """`dsn` and `dsn15` in turn: the test runs once on each."""
    return str(request.getfixturevalue("dsn" if request.param == "18" else "dsn15"))


@pytest.fixture(scope="session")
def spark_alone() -> Iterator[None]:
    """Wait until no other process on this machine runs Spark, then keep it so.

    For tests that start Spark processes of their own; `spark` includes it.
    """
    if _held_by_parent():
        yield
        return
    with open(_SPARK_LOCK, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def spark(spark_alone: None) -> Iterator[SparkSession]:
    """The one Spark session of all tests."""
    from airflow_provider_pgtrickle.engine.settings import Settings
    from airflow_provider_pgtrickle.engine.spark.session import obtain

    session = obtain(None, Settings.load(spark_master="local[2]"))
    yield session
    session.stop()


def _held_by_parent() -> bool:
    """`flock /tmp/spark.lock pytest …` hands us the locked file; locking it anew would wait for ourselves."""
    for descriptor in Path("/proc/self/fd").glob("*"):
        try:
            if descriptor.readlink() == _SPARK_LOCK:
                return True
        except OSError:
            continue  # the listing's own, closed by now
    return False
