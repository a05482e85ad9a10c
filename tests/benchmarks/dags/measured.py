"""The Airflow DAG of 501 tables that `tests.benchmarks.orchestration` measures."""

from __future__ import annotations

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph

CHAINS, LENGTH = 50, 10


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
    dag_args={"schedule": None},
).register(globals())
