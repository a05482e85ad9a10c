"""Chooses the back end by the Spark connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_provider_pgtrickle.backends.request import Backend
from airflow_provider_pgtrickle.engine.errors import UsageError

#: A connection given as a URI has the scheme of its master as its type.
_SUBMIT_TYPES = ("spark", "yarn", "k8s", "local")


def backend_for(spark_conn_id: str, spark_args: Mapping[str, Any] | None = None) -> Backend:
    """The back end for the connection, which must exist: for a missing one the Spark provider would take YARN."""
    try:
        connection = BaseHook.get_connection(spark_conn_id)
    except AirflowNotFoundException:
        raise UsageError(
            f"There is no Airflow connection {spark_conn_id!r}",
            remedy=f"Add it: airflow connections add {spark_conn_id} --conn-type spark --conn-host 'local[*]'.",
        ) from None
    if connection.conn_type == "spark_connect":
        from airflow_provider_pgtrickle.backends.spark_connect import SparkConnectBackend

        return SparkConnectBackend(spark_conn_id)
    if connection.conn_type in _SUBMIT_TYPES:
        from airflow_provider_pgtrickle.backends.spark_submit import SparkSubmitBackend

        return SparkSubmitBackend(spark_conn_id, spark_args or {})
    raise UsageError(
        f"Connection {spark_conn_id!r} is of type {connection.conn_type!r}, which runs no Spark",
        remedy="Give one of type spark (spark-submit) or spark_connect as spark_conn_id.",
    )
