"""Links to the plugin's page of a stream table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

from airflow_provider_pgtrickle.links.target import page_url, stream_tables

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class RefreshHistoryLink(BaseOperatorLink):
    """The last refreshes of the task's stream table."""

    name = "Refresh history"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        return _page(operator, "history")


class ExplainLink(BaseOperatorLink):
    """Operator tree, delta SQL and the reason of the mode of the task's stream table."""

    name = "Explain"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        return _page(operator, "explain")


def _page(operator: BaseOperator, part: str) -> str:
    names = stream_tables(operator)
    if not names:
        return ""
    return page_url(
        conf.get("api", "base_url", fallback="") or "",
        conn_id=getattr(operator, "postgres_conn_id", "pgtrickle_default"),
        stream_table=names[0],
        part=part,
    )
