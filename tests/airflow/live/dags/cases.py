"""One Airflow DAG for each case of the live tests: one source table, mostly one stream table on it."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Asset, AssetWatcher, task

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph
from airflow_provider_pgtrickle.operators import StreamTableRefreshOperator
from airflow_provider_pgtrickle.triggers.pending import ChangesPendingTrigger

RETRIED = {"retries": 2, "retry_delay": timedelta(seconds=1)}
ONCE = {"retries": 0}


def totals(case: str, **options: Any) -> StreamTable:
    """How `<case>_rows` become `<case>_totals`."""
    return StreamTable(
        f"{case}_totals", f"SELECT k, sum(v) AS total, count(*) AS n FROM {case}_rows GROUP BY k", **options
    )


def graph(
    case: str,
    *tables: StreamTable,
    postgres: str = "live_pg",
    spark: str = "live_connect",
    **args: Any,
) -> None:
    """A DAG named like the case, started by hand."""
    options = {"default_args": RETRIED, "dag_args": {"schedule": None}, **args}
    StreamTableGraph(case, tables or [totals(case)], postgres, spark, **options).register(globals())


followed = totals("chain", schedule="5s")
graph("chain", followed, dag_args={})

with DAG("consumer", schedule=[followed.asset], catchup=False) as consumer:

    @task
    def follow() -> None:
        """Being started is what is tested."""

    follow()

graph("worker")
graph("driver", spark="live_submit")
graph("scheduler")
graph("remote")
events = f"file://{os.environ.get('AIRFLOW_HOME', '/tmp')}/events"
graph(
    "standalone",
    spark="live_standalone",
    spark_args={"conf": {"spark.eventLog.enabled": "true", "spark.eventLog.dir": events}},
)
graph("cleared")
graph("suspended")
graph("twice")
graph(
    "whole",
    totals("whole"),
    StreamTable("whole_ratio", "SELECT k, 1000 / total AS share FROM whole_totals"),
    StreamTable("whole_shares", "SELECT count(*) AS n FROM whole_ratio"),
    StreamTable("whole_groups", "SELECT count(*) AS n FROM whole_totals"),
    granularity="graph",
)
graph("late", deadline=timedelta(seconds=1))
graph("no_postgres", postgres="live_missing", default_args=ONCE)
graph("wrong_password", postgres="live_wrong", default_args=ONCE)
graph("no_spark", spark="live_missing", default_args=ONCE)
graph("spark_down", spark="live_down", default_args=ONCE)

with DAG("rival", schedule=None, default_args=ONCE) as rival:
    StreamTableRefreshOperator(
        task_id="refresh", tables=["twice_totals"], postgres_conn_id="live_pg", spark_conn_id="live_connect"
    )

changed = Asset(
    "watched_rows_changed",
    watchers=[
        AssetWatcher(
            name="watched_rows_pending",
            trigger=ChangesPendingTrigger(stream_table="watched_totals", postgres_conn_id="live_pg"),
        )
    ],
)
graph("watched", dag_args={"schedule": [changed]})
