"""What finds no change loads nothing of Spark: its client takes a second of the processor before it does anything."""

from __future__ import annotations

import os
import subprocess
import sys

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor

IDLE = """
import sys
from types import SimpleNamespace
from airflow.sdk.exceptions import AirflowSkipException
from airflow_provider_pgtrickle.operators import StreamTableRefreshOperator
task = StreamTableRefreshOperator(
    task_id="totals", tables=["totals"], postgres_conn_id="shop_pg", spark_conn_id="there_is_none"
)
ti = SimpleNamespace(
    dag_id="d", run_id="r", task_id="totals", map_index=-1, max_tries=0, task=task, xcom_push=lambda **_: None
)
try:
    task.execute({"ti": ti})
except AirflowSkipException as skip:
    print(skip)
print(sorted({"pyspark", "pandas", "numpy", "pyarrow", "grpc"} & set(sys.modules)))
"""


def test_a_refresh_without_a_change_loads_nothing_of_spark(
    shop: psycopg.Connection, shop_connection: str, dsn: str
) -> None:
    with PgTrickle(dsn) as client:
        database = client.database
    with PgTrickle(dsn, executor=lambda: PostgresExecutor(database)) as client:
        client.install()
        client.create_stream_table("totals", "SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id")
    done = subprocess.run(
        [sys.executable, "-c", IDLE], env=os.environ.copy(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["no change", "[]"]
    assert shop.execute("SELECT action FROM pgtrickle.pgt_refresh_history ORDER BY refresh_id").fetchall() == [
        ("FULL",),
        ("NO_DATA",),
    ]
