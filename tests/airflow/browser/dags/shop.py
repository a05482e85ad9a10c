"""A DAG of the shop's name, with the params of a graph's: what the page triggers. No scheduler runs it here."""

from __future__ import annotations

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Param

with DAG(
    "shop",
    schedule=None,
    params={"full_refresh": Param(False, type="boolean"), "tables": Param(None, type=["null", "string"])},
) as dag:
    EmptyOperator(task_id="order_totals")
