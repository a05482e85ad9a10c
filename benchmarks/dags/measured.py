"""The Airflow DAGs that `benchmarks.orchestration` measures."""

from __future__ import annotations

from airflow.sdk import Asset, AssetWatcher
from airflow_provider_pgtrickle import StreamTable, StreamTableGraph
from airflow_provider_pgtrickle.triggers.pending import ChangesPendingTrigger

CHAINS, LENGTH = 50, 10
BY_HAND = {"schedule": None}


def link(chain: int, place: int) -> StreamTable:
    """A table that keeps every group of the one before it; the first of a chain counts a source's rows."""
    source = f"rows_{chain:02}" if place == 0 else f"chain_{chain:02}_{place - 1}"
    return StreamTable(f"chain_{chain:02}_{place}", f"SELECT g, sum(v) AS v FROM {source} GROUP BY g")


chains = [link(chain, place) for chain in range(CHAINS) for place in range(LENGTH)]
ends = " UNION ALL ".join(
    f"SELECT {chain} AS chain, g, v FROM chain_{chain:02}_{LENGTH - 1}" for chain in range(CHAINS)
)
# What reads all of them makes one graph of them, and so one DAG.
StreamTableGraph(
    "graph_of_500",
    [*chains, StreamTable("all_chains", ends, schedule="1h")],
    "bench_pg",
    "bench_connect",
    granularity="graph",
    dag_args=BY_HAND,
).register(globals())

StreamTableGraph(
    "one_unit",
    [StreamTable("unit_totals", "SELECT g, sum(v) AS v FROM unit_rows GROUP BY g", schedule="1h")],
    "bench_pg",
    "bench_connect",
    dag_args=BY_HAND,
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
