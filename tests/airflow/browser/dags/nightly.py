"""A DAG of a user's own, which takes no params. Nothing runs it here."""

from __future__ import annotations

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

with DAG("nightly", schedule=None) as dag:
    EmptyOperator(task_id="load") >> EmptyOperator(task_id="views")
