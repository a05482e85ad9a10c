"""The executor that refreshes run on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_pgtrickle.catalog.database import Database
from airflow_provider_pgtrickle.refresh.executor import Computation, Staged, StageTarget
from airflow_provider_pgtrickle.refresh.stage import ROW_ID, WEIGHT
from airflow_provider_pgtrickle.spark.leaf import Leaf, Snapshot, portable_dsn
from airflow_provider_pgtrickle.spark.meter import Meter
from airflow_provider_pgtrickle.spark.stage import KEY, collect, copy_from_executors, with_row_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkExecutor:
    """Implements `refresh.executor.Executor` on a classic session or a Spark Connect client."""

    def __init__(self, spark: SparkSession, database: Database) -> None:
        self._spark = spark
        self._database = database

    def compute(self, snapshot_id: str, computation: Computation, stage: StageTarget | None) -> Staged:
        """Read, add the row ids, and bring the rows to the driver, or into `stage` where that is given."""
        meter = Meter(self._spark)
        # In Spark the columns go by position: their own names may differ in case only.
        names = tuple(f"c{n}" for n in range(len(computation.columns)))
        leaf = Leaf(computation.sql, computation.slices, (WEIGHT, KEY, *names))
        rows = with_row_id(meter.read(Snapshot(self._database.jdbc, snapshot_id), leaf), names)
        if stage is None:
            arrow = _named(meter.run(lambda: collect(rows)), computation.columns)
            return Staged(arrow.num_rows, arrow, None, meter.rows, meter.reads, meter.jobs)
        copied = meter.run(lambda: self._copy(rows, stage))
        return Staged(copied, None, (stage.schema, stage.table), meter.rows, meter.reads, meter.jobs)

    def _copy(self, rows: DataFrame, stage: StageTarget) -> int:
        columns = (WEIGHT, ROW_ID, *stage.columns)
        return copy_from_executors(rows, portable_dsn(self._database.jdbc), stage.schema, stage.table, columns)


def _named(arrow: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Under the columns' own names, without Spark's notes on each field."""
    types = [pa.int32(), pa.int64(), *(pa.string() for _ in columns)]
    schema = pa.schema(list(zip([WEIGHT, ROW_ID, *columns], types, strict=True)))
    return pa.Table.from_arrays(arrow.columns, schema=schema)
