"""Fixtures that all tests share. The directory of a test says what it needs: see `_NEEDS`."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
# A test's Spark lives for seconds: the second compiler and parallel collection take twice the time that they save.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
# What a test starts keeps what it compiles, or each process compiles all modules anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from airflow_provider_pgtrickle.embedded import PostgresServer
from tests import servers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.scheduler import LoadScopeScheduling

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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Where processes share the tests, a file stays in one; so does all that starts Spark, which one at a time may."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            needs = _NEEDS.get(Path(file).parts[1], [])
            return "spark" if {"spark", "airflow"} & {*needs} else file

    return ByFile(config, log)


@pytest.fixture(scope="session")
def postgres18() -> Iterator[PostgresServer]:
    with servers.running(18) as server:
        yield server


@pytest.fixture(scope="session")
def postgres15() -> Iterator[PostgresServer]:
    with servers.running(15) as server:
        yield server


@pytest.fixture(scope="session")
def template18() -> str | None:
    """The database that `dsn` is a copy of; None: it is empty, as it is for a test marked `empty`."""
    return None


@pytest.fixture(scope="session")
def template15() -> str | None:
    """The same for `dsn15`."""
    return None


@pytest.fixture
def _database(request: pytest.FixtureRequest, postgres18: PostgresServer, template18: str | None) -> Iterator[str]:
    with servers.fresh_database(postgres18, _copied(request, template18)) as name:
        yield name


@pytest.fixture
def dsn(postgres18: PostgresServer, _database: str) -> str:
    """A fresh database on PostgreSQL 18, empty or a copy of `template18`, for the ordinary role that it names."""
    return servers.ordinary_dsn(postgres18, _database)


@pytest.fixture
def admin_dsn(postgres18: PostgresServer, _database: str) -> str:
    """The database of `dsn`, as superuser."""
    return postgres18.dsn(_database)


@pytest.fixture
def _database15(request: pytest.FixtureRequest, postgres15: PostgresServer, template15: str | None) -> Iterator[str]:
    with servers.fresh_database(postgres15, _copied(request, template15)) as name:
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


def _copied(request: pytest.FixtureRequest, template: str | None) -> str | None:
    return None if request.node.get_closest_marker("empty") else template


def _held_by_parent() -> bool:
    """`flock /tmp/spark.lock pytest …` hands us the locked file; locking it anew would wait for ourselves."""
    for descriptor in Path("/proc/self/fd").glob("*"):
        try:
            if descriptor.readlink() == _SPARK_LOCK:
                return True
        except OSError:
            continue  # the listing's own, closed by now
    return False
