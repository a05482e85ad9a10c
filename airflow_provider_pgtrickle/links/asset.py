"""Link to the Airflow asset of a stream table: its events, and the DAGs that follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink

from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.links.target import stream_tables, url

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
        # This is the end of the asset's URI, which is also its name.
        name = QualifiedName.parse(names[0])
        return url("/assets", name_pattern=f"{quote(name.schema, safe='')}/{quote(name.name, safe='')}")
