"""The Airflow DAGs of one table each that `tests.benchmarks.orchestration` measures.

A file of their own: each task parses its DAG's file, and these are not about a file of 501 tables.
"""

from __future__ import annotations

from airflow.sdk import Asset, AssetWatcher

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph
from airflow_provider_pgtrickle.triggers.pending import ChangesPendingTrigger

StreamTableGraph(
    "one_unit",
    [StreamTable("unit_totals", "SELECT g, sum(v) AS v FROM unit_rows GROUP BY g", schedule="1h")],
    "bench_pg",
    "bench_connect",
    dag_args={"schedule": None},
).register(globals())

changed = Asset(
    "watched_rows_changed",
    watchers=[
        AssetWatcher(
            name="pending", trigger=ChangesPendingTrigger(stream_table="watched_totals", postgres_conn_id="bench_pg")
        )
    ],
)
StreamTableGraph(
    "watched",
    [StreamTable("watched_totals", "SELECT g, sum(v) AS v FROM watched_rows GROUP BY g", schedule="1h")],
    "bench_pg",
    "bench_connect",
    dag_args={"schedule": [changed]},
).register(globals())
