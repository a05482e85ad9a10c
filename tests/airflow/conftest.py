"""Airflow's metadata database, made once: SQLite in the session's own AIRFLOW_HOME."""

from __future__ import annotations

import os
import subprocess
import sys
from urllib.parse import quote

import pytest


@pytest.fixture(scope="session")
def airflow_database() -> None:
    """`airflow db migrate`, in a process of its own as a user runs it."""
    subprocess.run(
        [sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True, env=os.environ.copy()
    )


@pytest.fixture
def shop_connection(dsn: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a `pgtrickle` connection to a fresh database."""
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_PG", f"pgtrickle://{dsn.split('://', 1)[1]}")
    return "shop_pg"


@pytest.fixture
def local_spark_connection(monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a `spark` connection that submits to this machine."""
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", f"spark://{quote('local[2]', safe='')}")
    return "spark_default"
