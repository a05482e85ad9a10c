"""The executor: what it brings, where it puts it, what it counts."""

from __future__ import annotations

import pytest
import xxhash

from airflow_provider_pgtrickle.engine.dvm.identity import row_id
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.engine.refresh.executor import Computation, StageTarget
from airflow_provider_pgtrickle.engine.spark.execute import SparkExecutor

TEXTS = ["", "a", "é漢😀", "x" * 1000, "a\nb", '"', "0" * 31, "0" * 32, "0" * 33]
QUERY = """SELECT 1 AS "__pgt_w", id::text AS "__pgt_key", id::text AS "Id", v AS id FROM public.t"""


@pytest.fixture
def table(conn):
    conn.execute("CREATE TABLE t (id bigint PRIMARY KEY, v text)")
    conn.execute(
        "INSERT INTO t SELECT n, CASE n % 3 WHEN 0 THEN '' WHEN 1 THEN 'v' || n END FROM generate_series(1, 999) n"
    )


@pytest.fixture
def stage(conn) -> StageTarget:
    conn.execute('CREATE UNLOGGED TABLE s (__pgt_w int, __pgt_row_id bigint, "Id" bigint, id text)')
    return StageTarget("public", "s", ("Id", "id"))


def test_a_small_computation_takes_one_job_and_one_read(any_spark, database, table, snapshot_now):
    with snapshot_now() as snapshot:
        staged = SparkExecutor(any_spark, database).compute(
            snapshot.snapshot_id, Computation(QUERY, ("Id", "id"), 999), None
        )
    assert (staged.rows, staged.rows_read, staged.reads, staged.jobs) == (999, 999, 1, 1)
    assert staged.arrow is not None
    assert staged.arrow.column_names == ["__pgt_w", "__pgt_row_id", "Id", "id"]
    assert [str(t) for t in staged.arrow.schema.types] == ["int32", "int64", "string", "string"]
    assert staged.stage_table is None


def test_a_large_computation_arrives_in_the_stage_table(any_spark, database, table, stage, conn, snapshot_now):
    slices = tuple(f"{QUERY} WHERE id % 3 = {n}" for n in range(3))
    with snapshot_now() as snapshot:
        staged = SparkExecutor(any_spark, database).compute(
            snapshot.snapshot_id, Computation(QUERY, ("Id", "id"), 999, large=True, slices=slices), stage
        )
    assert (staged.rows, staged.rows_read, staged.reads, staged.jobs) == (999, 999, 3, 1)
    assert (staged.arrow, staged.stage_table) == (None, ("public", "s"))
    assert conn.execute(
        'SELECT count(*) FROM (SELECT "Id", id FROM s EXCEPT ALL SELECT id, v FROM t) d'
    ).fetchone() == (0,)
    assert conn.execute("SELECT count(*), count(id), count(*) FILTER (WHERE id = '') FROM s").fetchone() == (
        999,
        666,
        333,
    )
    # The ledger of arrived partitions is gone.
    assert conn.execute("SELECT relname FROM pg_class WHERE relname LIKE 's\\_%'").fetchall() == []


def test_nothing_to_bring_is_an_empty_table_of_the_same_columns(any_spark, database, table, snapshot_now):
    with snapshot_now() as snapshot:
        staged = SparkExecutor(any_spark, database).compute(
            snapshot.snapshot_id, Computation(f"{QUERY} WHERE false", ("Id", "id"), 0), None
        )
    assert (staged.rows, staged.rows_read) == (0, 0)
    assert staged.arrow is not None
    assert [str(t) for t in staged.arrow.schema.types] == ["int32", "int64", "string", "string"]


def test_row_ids_of_spark_python_and_driver_are_equal(any_spark, database, conn, snapshot_now):
    conn.execute("CREATE TABLE keys (n int, k text)")
    for n, text in enumerate(TEXTS):
        conn.execute("INSERT INTO keys VALUES (%s, %s)", [n, text])
    query = "SELECT 1 AS __pgt_w, k AS __pgt_key, k FROM public.keys ORDER BY n"
    with snapshot_now() as snapshot:
        arrow = (
            SparkExecutor(any_spark, database).compute(snapshot.snapshot_id, Computation(query, ("k",), 9), None).arrow
        )
    assert arrow is not None
    by_spark = arrow.column("__pgt_row_id").to_pylist()
    assert by_spark == [row_id(text) for text in TEXTS]
    assert [n % (1 << 64) for n in by_spark] == [xxhash.xxh64_intdigest(text.encode(), 42) for text in TEXTS]


def test_what_outlasts_the_patience_is_computed_with_hash_joins(any_spark, database, snapshot_now):
    stuck = "current_setting('enable_nestloop') = 'off' OR pg_sleep(600) IS NULL"
    query = f"SELECT 1 AS __pgt_w, 'k' AS __pgt_key, 'there' AS v WHERE {stuck}"
    with snapshot_now() as snapshot:
        staged = SparkExecutor(any_spark, database).compute(
            snapshot.snapshot_id, Computation(query, ("v",), 1, patience_ms=200), None
        )
    assert staged.arrow is not None
    assert staged.arrow["v"].to_pylist() == ["there"]


def test_a_failure_within_the_patience_is_a_failure(any_spark, database, snapshot_now):
    query = "SELECT 1 AS __pgt_w, 'k' AS __pgt_key, (1 / (random() * 0)::int)::text AS v"
    with snapshot_now() as snapshot, pytest.raises(PgTrickleError, match="division by zero"):
        SparkExecutor(any_spark, database).compute(
            snapshot.snapshot_id, Computation(query, ("v",), 1, patience_ms=600_000), None
        )
