"""Carries out what SQL asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_provider_pgtrickle.operators.database import as_airflow, hook_of
from airflow_provider_pgtrickle.stream_table import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow.sdk import Context


class StreamTableRequestsOperator(BaseOperator):
    """Declares and refreshes what was asked for in SQL and has no answer yet, as `pgtrickle serve-requests` does.

    It computes on the task's own Spark, if it needs any. A request that fails is answered with the reason, and doesn't
    fail the task: who asked wants to know, and the next request is another's.
    """

    template_fields: Sequence[str] = ("postgres_conn_id",)
    ui_color = "#fff2cc"

    def __init__(self, *, postgres_conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.postgres_conn_id = postgres_conn_id

    def execute(self, context: Context) -> dict[str, int]:
        from airflow_provider_pgtrickle.requests import serve

        done = failed = waiting = 0
        with as_airflow(), hook_of(self.postgres_conn_id).get_client() as client:
            client.install()
            for served in serve(client):
                if served.error is not None:
                    failed += 1
                    self.log.warning("%s", served)
                else:
                    done, waiting = done + (served.answer is not None), waiting + (served.answer is None)
                    self.log.info("%s", served)
        return {"done": done, "failed": failed, "waiting": waiting}
