"""The password stands nowhere that Spark shows or keeps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.refresh.executor import Computation, StageTarget
from airflow_provider_pgtrickle.engine.spark.execute import SparkExecutor
from airflow_provider_pgtrickle.engine.spark.servers import ConnectServer

QUERY = "SELECT 1 AS __pgt_w, n::text AS __pgt_key, n::text AS n FROM generate_series(1, 10) n"


@pytest.fixture
def password(dsn) -> str:
    """As the role's connection has it."""
    with psycopg.connect(dsn) as conn:
        return conn.info.password


@pytest.fixture
def stage(conn) -> StageTarget:
    conn.execute("CREATE UNLOGGED TABLE s (__pgt_w int, __pgt_row_id bigint, n int)")
    return StageTarget("public", "s", ("n",))


def test_a_classic_application_shows_no_password(spark_alone, dsn, password, stage, tmp_path):
    script = Path(__file__).with_name("observed_application.py")
    ran = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        env=os.environ | {"PGTRICKLE_DSN": dsn, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert ran.returncode == 0, ran.stderr[-5000:]
    kept = _kept(tmp_path)
    # The log is verbose, and they do show the read itself, so they would show its options.
    assert "generate_series(1, 10)" in ran.stdout
    assert "generate_series(1, 10)" in kept
    assert " DEBUG " in ran.stderr
    assert password not in ran.stdout
    assert password not in ran.stderr
    assert password not in kept


def test_a_connect_server_shows_no_password(
    connect_server: ConnectServer, connect, database, password, stage, snapshot_now
):
    with snapshot_now() as snapshot:
        executor = SparkExecutor(connect, database)
        executor.compute(snapshot.snapshot_id, Computation(QUERY, ("n",), 10), None)
        executor.compute(snapshot.snapshot_id, Computation(QUERY, ("n",), 10, large=True), stage)
    kept = _kept(connect_server.folder)
    # It does log operations and the functions in them.
    assert "SparkListenerConnectOperationStarted" in kept
    assert "copy_partition" in kept
    assert password not in kept


def _kept(folder: Path) -> str:
    """Every log and event log below `folder`."""
    texts = [p.read_text(errors="replace") for p in folder.rglob("*") if p.is_file() and p.suffix != ".jar"]
    assert texts
    return "\n".join(texts)
