"""Rows that executors COPY arrive exactly once, whatever happens to the attempts that bring them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.engine.refresh.executor import Computation, StageTarget
from airflow_provider_pgtrickle.engine.spark.execute import SparkExecutor
from airflow_provider_pgtrickle.engine.spark.leaf import Leaf, portable_dsn, read
from airflow_provider_pgtrickle.engine.spark.stage import copy_from_executors, ledger, staging

SLICES = tuple(f"SELECT n::text AS n FROM generate_series({k}, 4000, 4) n" for k in range(1, 5))
LEAF = Leaf("SELECT n::text AS n FROM generate_series(1, 4000) n", SLICES)
_DEADLINE_SECONDS = 60


@pytest.fixture
def stage(conn):
    conn.execute("CREATE UNLOGGED TABLE s (n int)")


def _content(conn) -> tuple[int, int, int]:
    return conn.execute("SELECT count(*), count(DISTINCT n), coalesce(sum(n), 0) FROM s").fetchone()


EXACT = (4000, 4000, 8002000)


def _passing_on_then_failing_once(df, schema):
    """Hands on every row, then fails where this is the first attempt at the partition."""

    def fail_once(batches):
        from pyspark import TaskContext

        yield from batches
        task = TaskContext.get()
        assert task is not None
        if task.attemptNumber() == 0:
            raise RuntimeError("the first attempt fails at its end")

    return df.mapInArrow(fail_once, schema)


def test_attempts_that_fail_before_their_commit_leave_nothing(on_cluster, conn, stage, snapshot_now):
    with snapshot_now() as snapshot:
        df = _passing_on_then_failing_once(read(on_cluster, snapshot, LEAF), "n string")
        assert copy_from_executors(df, portable_dsn(snapshot.jdbc), "public", "s", ["n"]) == 4000
    assert _content(conn) == EXACT


def test_attempts_that_fail_after_their_commit_are_not_repeated(on_cluster, conn, stage, snapshot_now):
    with snapshot_now() as snapshot:
        dsn = portable_dsn(snapshot.jdbc)
        df = read(on_cluster, snapshot, LEAF)
        with ledger(dsn, "public", "s"):
            copying = staging(df, dsn, "public", "s", ["n"])
            told = _passing_on_then_failing_once(copying, "copied bigint").toArrow()
    # The second attempts found every partition arrived.
    assert sum(told.column("copied").to_pylist()) == 0
    assert _content(conn) == EXACT


def test_an_attempt_that_comes_after_the_end_adds_nothing(any_spark, database, conn, stage, snapshot_now):
    with snapshot_now() as snapshot:
        dsn = portable_dsn(snapshot.jdbc)
        df = read(any_spark, snapshot, LEAF)
        assert copy_from_executors(df, dsn, "public", "s", ["n"], here=database.dsn) == 4000
        with pytest.raises(Exception, match="s_parts"):
            staging(df, dsn, "public", "s", ["n"]).toArrow()
    assert _content(conn) == EXACT


def test_a_value_that_its_column_refuses_fails_the_stage_in_postgresqls_words(
    any_spark, database, conn, stage, snapshot_now
):
    with snapshot_now() as snapshot:
        df = read(any_spark, snapshot, Leaf("SELECT 'x' AS n"))
        with pytest.raises(PgTrickleError, match="invalid input syntax for type integer"):
            copy_from_executors(df, portable_dsn(snapshot.jdbc), "public", "s", ["n"], here=database.dsn)
    assert _content(conn) == (0, 0, 0)
    assert conn.execute("SELECT to_regclass('s_parts')").fetchone() == (None,)


@pytest.mark.parametrize("identified", [False, True], ids=["staged", "carried"])
def test_losing_a_worker_in_mid_computation_changes_no_row(
    cluster, on_cluster, database, conn, snapshot_now, identified
):
    """Two slices have arrived and two are being read when one of the two workers is killed."""
    conn.execute("CREATE UNLOGGED TABLE s (__pgt_w int, __pgt_row_id bigint, n int)")
    key = "bigint" if identified else "text"
    query = f"SELECT 1 AS __pgt_w, n::{key} AS __pgt_key, n::text AS n FROM generate_series({{}}, 4000, 4) n{{}}"
    gate = ", (SELECT pg_advisory_xact_lock_shared(7)) gate"
    slices = tuple(query.format(k, gate if k > 2 else "") for k in range(1, 5))
    computation = Computation(query.format(1, ""), ("n",), 4000, identified=identified, large=True, slices=slices)
    with snapshot_now() as snapshot, ThreadPoolExecutor(1) as pool:
        conn.execute("SELECT pg_advisory_lock(7)")
        running = pool.submit(
            SparkExecutor(on_cluster, database).compute,
            snapshot.snapshot_id,
            computation,
            StageTarget("public", "s", ("n",)),
        )
        try:
            until(
                lambda: (
                    conn.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").fetchone()
                    == (2,)
                )
            )
            cluster.workers.pop(0).kill()
        finally:
            conn.execute("SELECT pg_advisory_unlock(7)")
        assert running.result(_DEADLINE_SECONDS).rows == 4000
    assert _content(conn) == EXACT
    cluster.add_worker()


def until(condition) -> None:
    """Ask again until true: PostgreSQL has no way to tell us of a lock that someone waits for."""
    over = threading.Event()
    timer = threading.Timer(_DEADLINE_SECONDS, over.set)
    timer.start()
    try:
        while not condition():
            assert not over.wait(0.05), "it did not happen"
    finally:
        timer.cancel()
