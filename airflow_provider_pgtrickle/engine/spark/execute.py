"""The executor that refreshes run on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa
from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.dvm import SparkPlan
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.errors import MemoryFault, OutOfTime, PgTrickleError
from airflow_provider_pgtrickle.engine.refresh.executor import Computation, Planner, Staged, StageTarget, patiently
from airflow_provider_pgtrickle.engine.spark.compute import computed
from airflow_provider_pgtrickle.engine.spark.faults import translating
from airflow_provider_pgtrickle.engine.spark.leaf import Leaf, Snapshot, portable_dsn, reader
from airflow_provider_pgtrickle.engine.spark.meter import Meter
from airflow_provider_pgtrickle.engine.spark.session import is_connect
from airflow_provider_pgtrickle.engine.spark.stage import (
    KEY,
    carry_by_executors,
    collect,
    copy_from_executors,
    with_row_id,
)
from airflow_provider_pgtrickle.engine.spark.watch import Limits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_log = logging.getLogger(__name__)


class SparkExecutor:
    """Implements `refresh.executor.Executor` on a classic session or a Spark Connect client."""

    def __init__(self, spark: SparkSession, database: Database) -> None:
        self._spark = spark
        self._database = database

    def compute(self, snapshot_id: str, computation: Computation, stage: StageTarget | None) -> Staged:
        """Read, compute and add the row ids; the rows come to the driver, or go into `stage` if that is given."""
        try:
            return self._compute(snapshot_id, computation, stage)
        except BaseException as error:
            interrupt = _interrupt_behind(error)
            if interrupt is None:
                raise
            self._end_readers(snapshot_id)
            raise interrupt from None

    def _compute(self, snapshot_id: str, computation: Computation, stage: StageTarget | None) -> Staged:
        limit = computation.limit_ms
        ends_at = None if limit is None else monotonic() + limit / 1000
        limits = Limits(self._database.settings.spark_wait_seconds, ends_at)
        snapshot = Snapshot(self._database.jdbc, snapshot_id, timezone=computation.timezone)
        if computation.spark is not None:
            try:
                return self._in_spark(snapshot, computation, computation.spark, stage, limits)
            except PgTrickleError as error:
                # Where memory is short, the planner takes another way, and remembers.
                gives_way = isinstance(error, (MemoryFault, OutOfTime))
                if not error.permanent or gives_way or _interrupt_behind(error) is not None:
                    raise
                # PostgreSQL may be able to compute what Spark can't, such as NaN as a numeric or a sum of over 38
                # digits.
                _log.warning("%s PostgreSQL computes it instead.", error)
                self._undo(snapshot, stage)
        return self._pushed(snapshot, computation, stage, limits)

    def _in_spark(
        self,
        snapshot: Snapshot,
        computation: Computation,
        plan: SparkPlan,
        stage: StageTarget | None,
        limits: Limits,
    ) -> Staged:
        meter = Meter(self._spark, limits)
        with translating(), computed(self._spark, meter, snapshot, plan) as rows:
            staged = self._staged(meter, snapshot, with_row_id(rows, computation.columns), computation, stage)
        # Spark lacks the server's hash.
        return replace(staged, late=plan.late, identified=not computation.identified)

    def _pushed(
        self, snapshot: Snapshot, computation: Computation, stage: StageTarget | None, limits: Limits
    ) -> Staged:
        """Let PostgreSQL compute all of it in one statement, which is one read for Spark."""
        # In Spark the columns get names by position, because their own may differ in case only.
        names = tuple(f"c{n}" for n in range(len(computation.columns)))
        leaf = Leaf(computation.sql, computation.slices, (WEIGHT, KEY, *names))
        if is_connect(self._spark):
            limits = replace(limits, is_at_work=lambda: self._is_at_work(snapshot.snapshot_id))

        def run(planner: Planner) -> Staged:
            meter = Meter(self._spark, limits)
            at = replace(snapshot, planner=(*computation.planner, *planner))
            try:
                if stage is not None and computation.identified:
                    return self._carried(meter, at, computation, stage)
                rows = meter.read(at, leaf)
                return self._staged(
                    meter, at, with_row_id(rows, names, identified=computation.identified), computation, stage
                )
            except PgTrickleError:
                self._undo(snapshot, stage)
                raise

        return patiently(computation.patience_ms, run)

    def _carried(self, meter: Meter, snapshot: Snapshot, computation: Computation, stage: StageTarget) -> Staged:
        """PostgreSQL has computed everything, the row ids too: the rows go from session to session."""
        queries = computation.slices or (computation.sql,)
        columns = (WEIGHT, ROW_ID, *stage.columns)
        copied, sizes = meter.run(
            lambda: carry_by_executors(
                self._spark,
                snapshot,
                queries,
                stage.schema,
                stage.table,
                columns,
                meeting=computation.meeting,
                here=self._database.dsn,
            )
        )
        return Staged(copied, None, (stage.schema, stage.table), copied, len(queries), meter.jobs, sizes=sizes)

    def _staged(
        self, meter: Meter, snapshot: Snapshot, rows: DataFrame, computation: Computation, stage: StageTarget | None
    ) -> Staged:
        if stage is None:
            arrow = _named(meter.run(lambda: collect(rows)), computation.columns)
            return Staged(arrow.num_rows, arrow, None, meter.rows, meter.reads, meter.jobs)
        copied = meter.run(lambda: self._copy(rows, stage, reader(snapshot.snapshot_id)))
        return Staged(copied, None, (stage.schema, stage.table), meter.rows, meter.reads, meter.jobs)

    def _undo(self, snapshot: Snapshot, stage: StageTarget | None) -> None:
        """End what a failed computation still reads, and remove what it has staged."""
        self._end_readers(snapshot.snapshot_id)
        if stage is not None:
            with self._database.connect(autocommit=True, application_name="pgtrickle stage") as conn:
                conn.execute(sql.SQL("TRUNCATE {}").format(sql.Identifier(stage.schema, stage.table)))

    def _is_at_work(self, snapshot_id: str) -> bool:
        """Whether a task has a session. Of one that was killed it ends when PostgreSQL has something to tell it."""
        with self._database.connect(autocommit=True, application_name="pgtrickle watch") as conn:
            row = conn.execute(
                "SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_activity WHERE application_name = %s"
                " AND datname = pg_catalog.current_database())",
                [reader(snapshot_id)],
            ).fetchone()
        return row is not None and bool(row[0])

    def _end_readers(self, snapshot_id: str) -> None:
        # A query whose reader is gone would run on until it has rows to send.
        with suppress(PgTrickleError, psycopg.Error), self._database.connect(autocommit=True) as conn:
            conn.execute(
                "SELECT pg_catalog.pg_terminate_backend(pid, 2000) FROM pg_catalog.pg_stat_activity"
                " WHERE application_name = %s AND datname = pg_catalog.current_database()"
                " AND pg_catalog.pg_has_role(usename, 'MEMBER')",
                [reader(snapshot_id)],
            )

    def _copy(self, rows: DataFrame, stage: StageTarget, name: str) -> int:
        columns = (WEIGHT, ROW_ID, *stage.columns)
        there = portable_dsn(self._database.jdbc)
        return copy_from_executors(rows, there, stage.schema, stage.table, columns, here=self._database.dsn, name=name)


def _interrupt_behind(error: BaseException | None) -> BaseException | None:
    """The interrupt that caused `error`, if any. PySpark's clean-up after an interrupt fails, and hides it."""
    while isinstance(error, Exception):
        error = error.__cause__ or error.__context__
    return None if isinstance(error, GeneratorExit) else error


def _named(arrow: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The table under the columns' own names, without Spark's metadata of each field."""
    types = [pa.int32(), pa.int64(), *(pa.string() for _ in columns)]
    schema = pa.schema(list(zip([WEIGHT, ROW_ID, *columns], types, strict=True)))
    return pa.Table.from_arrays(arrow.columns, schema=schema)
