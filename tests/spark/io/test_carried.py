"""Rows that PostgreSQL has computed whole go from session to session: as they are, and exactly once."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.engine.refresh.executor import Computation
from airflow_provider_pgtrickle.engine.spark.execute import SparkExecutor
from tests.spark.io.test_execute import stage, table

__all__ = ["stage", "table"]

_DEADLINE_SECONDS = 60


CARRIED = """SELECT 1 AS "__pgt_w", id AS "__pgt_key", id::text AS "Id", v AS id FROM public.t"""


@pytest.mark.parametrize("count", [1, 3])
def test_rows_that_postgresql_has_computed_whole_are_carried(
    any_spark, database, table, stage, conn, snapshot_now, count
):
    """Texts that COPY escapes, an empty one and NULL arrive as they are."""
    odd = 'a\nb\\c\td,"e"\r\\N é漢😀'
    conn.execute("INSERT INTO t VALUES (5000, %s), (5001, ''), (5002, NULL), (5003, '\\N')", [odd])
    slices = tuple(f"{CARRIED} WHERE id % 3 = {n}" for n in range(3)) if count > 1 else ()
    computation = Computation(CARRIED, ("Id", "id"), 1003, identified=True, large=True, slices=slices)
    with snapshot_now() as snapshot:
        conn.execute("DELETE FROM t WHERE id = 1")
        staged = SparkExecutor(any_spark, database).compute(snapshot.snapshot_id, computation, stage)
        conn.execute("INSERT INTO t VALUES (1, 'v1')")
    assert (staged.rows, staged.rows_read, staged.reads, staged.jobs) == (1003, 1003, count, 1)
    assert (staged.arrow, staged.stage_table, staged.identified) == (None, ("public", "s"), True)
    read = 'SELECT __pgt_row_id, "Id", id FROM s', "SELECT id, id, v FROM t"
    for left, right in (read, read[::-1]):
        assert conn.execute(f"({left}) EXCEPT ALL ({right})").fetchall() == []
    assert conn.execute("SELECT relname FROM pg_class WHERE relname LIKE 's\\_%'").fetchall() == []


def test_what_fails_while_it_is_carried_leaves_nothing(any_spark, database, stage, conn, snapshot_now):
    """Rows of one slice have arrived when another fails after many rows."""
    query = 'SELECT 1 AS "__pgt_w", n::bigint AS "__pgt_key", (1 / (90000 - n))::text AS "Id", NULL AS id'
    slices = tuple(f"{query} FROM generate_series({n}, {n} + 50000) AS n" for n in (1, 60_000))
    computation = Computation(query, ("Id", "id"), 100_002, identified=True, large=True, slices=slices)
    with snapshot_now() as snapshot, pytest.raises(PgTrickleError, match="division by zero"):
        SparkExecutor(any_spark, database).compute(snapshot.snapshot_id, computation, stage)
    assert conn.execute("SELECT count(*) FROM s").fetchone() == (0,)


def test_what_is_carried_and_outlasts_the_patience_is_computed_with_hash_joins(
    any_spark, database, stage, conn, snapshot_now
):
    stuck = "current_setting('enable_nestloop') = 'off' OR pg_sleep(600) IS NULL"
    query = f"SELECT 1 AS __pgt_w, 1::bigint AS __pgt_key, '1' AS \"Id\", 'there' AS id WHERE {stuck}"
    computation = Computation(query, ("Id", "id"), 1, identified=True, large=True, patience_ms=200)
    with snapshot_now() as snapshot:
        assert SparkExecutor(any_spark, database).compute(snapshot.snapshot_id, computation, stage).rows == 1
    assert conn.execute("SELECT id FROM s").fetchall() == [("there",)]
