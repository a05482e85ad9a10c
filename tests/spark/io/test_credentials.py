"""The password stands nowhere that Spark shows or keeps."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh.executor import Computation, StageTarget
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.execute import SparkExecutor
from airflow_provider_pgtrickle.engine.spark.servers import ConnectServer
from tests.spark.conftest import client, password_file
from tests.spark.failure.shop import DEADLINE, until

CARRIED = "SELECT 1 AS __pgt_w, n::bigint AS __pgt_key, '1' AS n FROM generate_series(1, 10) n"
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


@pytest.mark.parametrize("standing", [False, True], ids=["sent", "standing"])
def test_a_classic_application_shows_no_password(
    spark_alone, dsn, password, stage, tmp_path, tmp_path_factory, standing
):
    there = password_file(tmp_path_factory.mktemp("standing")) | {"PGTRICKLE_SPARK_CREDENTIALS": "pgpass"}
    script = Path(__file__).with_name("observed_application.py")
    ran = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        env=os.environ | {"PGTRICKLE_DSN": dsn, "PYSPARK_PYTHON": sys.executable} | (there if standing else {}),
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert ran.returncode == 0, ran.stderr[-5000:]
    kept = _kept(tmp_path)
    # The log is verbose, and they do show the read itself, so they would show its options.
    assert "generate_series(1, 10)" in ran.stdout
    assert ran.stdout.count("ValueFault: PostgreSQL reports: division by zero") == 2
    assert "in carry" in ran.stdout
    assert "generate_series(1, 10)" in kept
    assert " DEBUG " in ran.stderr
    assert password not in ran.stdout
    assert password not in ran.stderr
    assert password not in kept


@pytest.mark.parametrize("standing", [False, True], ids=["sent", "standing"])
def test_a_connect_server_shows_no_password(
    connect_server: ConnectServer, connect, dsn, password, stage, snapshot_now, standing
):
    database = Database(dsn, Settings.load(spark_credentials="pgpass" if standing else ""))
    with snapshot_now() as snapshot:
        executor = SparkExecutor(connect, database)
        executor.compute(snapshot.snapshot_id, Computation(QUERY, ("n",), 10), None)
        executor.compute(snapshot.snapshot_id, Computation(QUERY, ("n",), 10, large=True), stage)
        executor.compute(snapshot.snapshot_id, Computation(CARRIED, ("n",), 10, identified=True, large=True), stage)
    kept = _kept(connect_server.folder)
    # It does log operations and the functions in them.
    assert "SparkListenerConnectOperationStarted" in kept
    assert "copy_partition" in kept
    assert "carry(" in kept
    # The plans are there, too.
    assert ("JDBCRelation" in kept) >= standing
    assert password not in kept


@pytest.mark.parametrize("query", ["QUERY", "CARRIED"])
def test_a_session_that_ends_in_a_stage_leaves_no_password_in_the_servers_log(
    connect_server: ConnectServer, dsn, password, conn, stage, snapshot_now, query
):
    """The server logs the whole plan then, with the bytes of the function in it."""
    halted = globals()[query].replace("SELECT 1 AS", "SELECT 1 + 0 * length(pg_advisory_xact_lock(7)::text) AS")
    computation = Computation(halted, ("n",), 10, identified=query == "CARRIED", large=True)
    # The statement by which the function claims its partition, whatever the log makes of its quotes.
    said = "(part) VALUES (%s) ON CONFLICT DO NOTHING"
    before = _kept(connect_server.folder).count(said)
    conn.execute("SELECT pg_advisory_lock(7)")
    with ThreadPoolExecutor(1) as pool, client(connect_server) as session, snapshot_now() as snapshot:
        executor = SparkExecutor(session, Database(dsn, Settings.load()))
        running = pool.submit(executor.compute, snapshot.snapshot_id, computation, stage)
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        until(lambda: running.done() or conn.execute(waiting).fetchone() != (0,))
        assert not running.done(), running.exception()
        session.stop()
        conn.execute("SELECT pg_advisory_unlock(7)")
        assert running.exception(DEADLINE) is not None
    kept = _kept(connect_server.folder)
    assert kept.count(said) > before
    assert password not in kept


def _kept(folder: Path) -> str:
    """Every log and event log below `folder`."""
    texts = [p.read_text(errors="replace") for p in folder.rglob("*") if p.is_file() and p.suffix != ".jar"]
    assert texts
    return "\n".join(texts)
