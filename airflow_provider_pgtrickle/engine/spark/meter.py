"""What a computation cost: leaves read, rows that came over, Spark jobs run."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_pgtrickle.engine.spark.leaf import Leaf, Snapshot, read
from airflow_provider_pgtrickle.engine.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
_GROUP = "spark.jobGroup.id"


class Meter:
    """Counts through one computation; read a leaf and run an action only through it."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.reads = 0
        self.jobs = 0
        self._observed: list[Any] = []
        self._counted = 0

    def read(self, snapshot: Snapshot, leaf: Leaf) -> DataFrame:
        """The leaf, its rows counted as they arrive. Rows that a lost executor made Spark read again count again."""
        count, observation = _observing(self.spark)
        self.reads += max(len(leaf.slices), 1)
        self._observed.append(observation)
        return read(self.spark, snapshot, leaf).observe(observation, count)

    def keep(self, snapshot: Snapshot, leaf: Leaf) -> DataFrame:
        """The leaf, read now and kept: for plans that use a leaf or a part of it more than once.

        What is observed below something kept is never told, so these rows are counted by a job of their own.
        """
        self.reads += max(len(leaf.slices), 1)
        rows = read(self.spark, snapshot, leaf).persist()
        self._counted += self.run(rows.count)
        return rows

    @property
    def rows(self) -> int:
        """Rows that arrived; to be asked once an action over every leaf has ended."""
        return self._counted + sum(map(_observed, self._observed))

    def run(self, action: Callable[[], T]) -> T:
        """Run `action`, adding the jobs it started.

        A Connect client is told of stages, not of jobs: there each action counts as one, which it is for a plan
        without an exchange.
        """
        if is_connect(self.spark):
            self.jobs += 1
            return action()
        context: Any = self.spark.sparkContext
        outer, group = context.getLocalProperty(_GROUP), f"pgtrickle-{uuid.uuid4()}"
        context.setLocalProperty(_GROUP, group)
        try:
            return action()
        finally:
            context.setLocalProperty(_GROUP, outer)
            # The tracker hears of jobs with a short delay, so one at least is assumed.
            self.jobs += max(len(context.statusTracker().getJobIdsForGroup(group)), 1)


def _observed(observation: Any) -> int:
    """Of a leaf that Spark needn't read, a client is told nothing, and a classic session fails an assertion."""
    from py4j.protocol import Py4JJavaError

    try:
        return int(observation.get.get("rows", 0))
    except Py4JJavaError:
        return 0


def _observing(spark: SparkSession) -> tuple[Any, Any]:
    """The count and the observation of the session's own kind: `pyspark.sql` picks one for the whole process."""
    kind = "pyspark.sql.connect" if is_connect(spark) else "pyspark.sql"
    functions = import_module(f"{kind}.functions")
    return functions.count(functions.lit(1)).alias("rows"), import_module(f"{kind}.observation").Observation()
