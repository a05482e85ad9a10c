"""The 22 queries of TPC-H as stream tables in one Airflow DAG, started by hand.

The tables of TPC-H, at any scale, come into the database of the connection `tpch_pg` by

    import psycopg
    from tests.benchmarks import tpch

    tpch.load(psycopg.connect("postgresql://…", autocommit=True), scale=0.1)
"""

from __future__ import annotations

from pathlib import Path

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph

QUERIES = Path(__file__).parent.parent / "tests" / "benchmarks" / "tpch" / "queries"

queries = [StreamTable(file.stem, file.read_text()) for file in sorted(QUERIES.glob("q*.sql"))]

# It reads all of them, which makes one graph of them, and one DAG. Their sources meet here again: without
# "none" the 23 tables would be one unit, which shows one instant and fails as one.
answers = StreamTable(
    "answers",
    " UNION ALL ".join(f"SELECT '{q.name}' AS query, count(*) AS rows FROM {q.name}" for q in queries),  # noqa: S608
    schedule="10m",
    diamond_consistency="none",
    description="How many rows each query answers with.",
)

StreamTableGraph(
    "tpch",
    [*queries, answers],
    postgres_conn_id="tpch_pg",
    spark_conn_id="spark_default",
    # One Spark session for all, and light tasks that show each table's state.
    granularity="graph",
    dag_args={"schedule": None},
    tags=["example"],
).register(globals())
