"""Removes what every reader of a change buffer has consumed, and what runs have left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_provider_pgtrickle.operators.database import as_airflow, hook_of
from airflow_provider_pgtrickle.stream_table import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow.sdk import Context


class ChangeBufferCleanupOperator(BaseOperator):
    """Deletes consumed changes from all buffers of a database, orphaned staging tables and old history.

    Each refresh deletes consumed changes from the buffers that it read. Once a day is enough for the rest.
    """

    template_fields: Sequence[str] = ("postgres_conn_id",)
    ui_color = "#f4e1d2"

    def __init__(self, *, postgres_conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.postgres_conn_id = postgres_conn_id

    def execute(self, context: Context) -> dict[str, int]:
        with as_airflow(), hook_of(self.postgres_conn_id).get_client() as client:
            removed = client.cleanup()
        for buffer, rows in sorted(removed.items()):
            self.log.info("%s: %d rows removed", buffer, rows)
        return {"buffers": len(removed), "rows": sum(removed.values())}
