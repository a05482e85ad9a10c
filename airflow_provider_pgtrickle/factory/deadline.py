"""A freshness deadline: by when a run has to be done, and the alert where it isn't."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk.definitions.callback import AsyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from airflow_provider_pgtrickle.engine.catalog.alerts import Event
from airflow_provider_pgtrickle.factory.parts import Part


def deadline_alert(part: Part, within: timedelta, postgres_conn_id: str) -> DeadlineAlert:
    """`stale_data` on the channel for the tables that nobody reads, from the triggerer, whatever holds the run up.

    Counted from the queueing: a run by hand or by an asset has no logical date.
    """
    ends = [name for name in part.schedules if not part.graph.downstream(name)]
    return DeadlineAlert(
        DeadlineReference.DAGRUN_QUEUED_AT,
        within,
        # By its path: parsing a DAG file needs nothing of what sends it.
        AsyncCallback(
            "airflow_provider_pgtrickle.notifications.AlertNotifier",
            {
                "event": str(Event.STALE_DATA),
                "stream_table": ", ".join(ends),
                "text": f"{{{{ dag_run.dag_id }}}} {{{{ dag_run.dag_run_id }}}} was not done within {within}",
                "postgres_conn_id": postgres_conn_id,
            },
        ),
    )
