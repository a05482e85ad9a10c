"""Counts what a computation costs: leaves read, rows transferred, Spark jobs run."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_pgtrickle.engine.spark.faults import translating
from airflow_provider_pgtrickle.engine.spark.leaf import Leaf, Snapshot, read
from airflow_provider_pgtrickle.engine.spark.session import is_connect
from airflow_provider_pgtrickle.engine.spark.watch import Limits, watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
_GROUP = "spark.jobGroup.id"


class Meter:
    """Counts for one computation, whose leaves and actions all go through it."""

    def __init__(self, spark: SparkSession, limits: Limits | None = None) -> None:
        self.spark = spark
        self._limits = limits or Limits()
        self.reads = 0
        self.jobs = 0
        self._observed: list[Any] = []
        self._counted = 0

    def read(self, snapshot: Snapshot, leaf: Leaf) -> DataFrame:
        """The leaf. Its rows are counted as they arrive, even if Spark reads some again after losing an executor."""
        # The driver may be gone, and a Connect client lets the server ask the database for the plan's kind.
        with translating():
            count, observation = _observing(self.spark)
            self.reads += max(len(leaf.slices), 1)
            self._observed.append(observation)
            return read(self.spark, snapshot, leaf).observe(observation, count)

    def keep(self, snapshot: Snapshot, leaf: Leaf) -> DataFrame:
        """The leaf, read now and cached, for plans that use a leaf or some of it more than once.

        Spark doesn't report observations below a cache, so a job of its own counts these rows.
        """
        self.reads += max(len(leaf.slices), 1)
        rows = read(self.spark, snapshot, leaf).persist()
        self._counted += self.run(rows.count)
        return rows

    @property
    def rows(self) -> int:
        """Rows that arrived. Ask for them only after an action over every leaf has ended."""
        return self._counted + sum(map(_observed, self._observed))

    def run(self, action: Callable[[], T]) -> T:
        """Run `action` and add the jobs that it started.

        A Connect client hears of stages and not of jobs. There each action counts as one job, which is right for a plan
        without an exchange.
        """
        if is_connect(self.spark):
            self.jobs += 1
            with watched(self.spark, "", self._limits):
                return action()
        context: Any = self.spark.sparkContext
        outer, group = context.getLocalProperty(_GROUP), f"pgtrickle-{uuid.uuid4()}"
        context.setLocalProperty(_GROUP, group)
        try:
            with watched(self.spark, group, self._limits):
                return action()
        finally:
            context.setLocalProperty(_GROUP, outer)
            # The tracker hears of jobs after a short delay, so at least one is assumed.
            self.jobs += max(len(context.statusTracker().getJobIdsForGroup(group)), 1)


def _observed(observation: Any) -> int:
    """The observed count; 0 for a leaf that Spark didn't need.

    For that a Connect client has no count, and a classic session fails an assertion.
    """
    from py4j.protocol import Py4JJavaError

    try:
        return int(observation.get.get("rows", 0))
    except Py4JJavaError:
        return 0


def _observing(spark: SparkSession) -> tuple[Any, Any]:
    """The functions for the session's own kind, because `pyspark.sql` chooses one kind for the whole process."""
    kind = "pyspark.sql.connect" if is_connect(spark) else "pyspark.sql"
    functions = import_module(f"{kind}.functions")
    return functions.count(functions.lit(1)).alias("rows"), import_module(f"{kind}.observation").Observation()
