"""Runs a lowered plan on Spark: its leaves are views, shared subqueries are computed once, one statement reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.engine.dvm import LeafPlan, SparkPlan
from airflow_provider_pgtrickle.engine.spark.heap_settings import ON_SESSION
from airflow_provider_pgtrickle.engine.spark.leaf import Leaf, Snapshot
from airflow_provider_pgtrickle.engine.spark.meter import Meter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Settings that any session needs, also the caller's own, for PostgreSQL's semantics and for plans of this size.
_CONF = ON_SESSION | {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.session.timeZone": "UTC",
}


@contextmanager
def computed(spark: SparkSession, meter: Meter, snapshot: Snapshot, plan: SparkPlan) -> Iterator[DataFrame]:
    """The result with `__pgt_w`, `__pgt_key` and the storage columns as text. The views live as long as the context."""
    made: list[str] = []
    kept: list[DataFrame] = []
    with _semantics(spark):
        try:
            for leaf in plan.leaves:
                if plan.reads_twice:
                    rows = meter.keep(snapshot, _leaf(leaf))
                    kept.append(rows)
                else:
                    rows = meter.read(snapshot, _leaf(leaf))
                _typed(rows, leaf).createOrReplaceTempView(leaf.name)
                made.append(leaf.name)
            for name, text in plan.views:
                shared = spark.sql(text).persist()
                kept.append(shared)
                shared.createOrReplaceTempView(_bare(name))
                made.append(_bare(name))
            yield spark.sql(plan.sql)
        finally:
            for persisted in kept:
                persisted.unpersist()
            for name in made:
                spark.catalog.dropTempView(name)


def _leaf(leaf: LeafPlan) -> Leaf:
    slices = leaf.statements if len(leaf.statements) > 1 else ()
    return Leaf(leaf.statements[0], slices, tuple(name for name, _ in leaf.columns))


def _typed(df: DataFrame, leaf: LeafPlan) -> DataFrame:
    quoted = [(f"`{name.replace('`', '``')}`", kind) for name, kind in leaf.columns]
    return df.selectExpr(*(f"CAST({name} AS {kind}) AS {name}" for name, kind in quoted))


def _bare(name: str) -> str:
    return name.strip("`")


@contextmanager
def _semantics(spark: SparkSession) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in _CONF}
    try:
        for name, value in _CONF.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            spark.conf.set(name, old) if old is not None else spark.conf.unset(name)
