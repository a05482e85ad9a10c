"""Link to the Airflow asset of a stream table: its events, and the DAGs that follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink

from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.links.target import stream_tables, url
from airflow_provider_pgtrickle.stream_table import DEFAULT_SCHEMA

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class AssetLink(BaseOperatorLink):
    """Airflow's list of assets, narrowed to the stream table's."""

    name = "Asset"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        names = stream_tables(operator)
        if not names:
            return ""
        # Assets are named by their table, after their database.
        name = QualifiedName.parse(names[0])
        short = name.name if name.schema == DEFAULT_SCHEMA else str(name)
        return url("/assets", name_pattern=f".{quote(short, safe=' ')}")
