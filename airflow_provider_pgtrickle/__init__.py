"""Stream tables for any PostgreSQL: declared in Airflow, kept by differences, computed by PostgreSQL and Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.factory.stream_table_graph import StreamTableGraph
    from airflow_provider_pgtrickle.factory.stream_table_group import StreamTableGroup
    from airflow_provider_pgtrickle.stream_table import StreamTable, Unit

__version__ = "0.1.0"
__all__ = ["StreamTable", "StreamTableGraph", "StreamTableGroup", "Unit"]

_HOMES = {
    "StreamTable": "airflow_provider_pgtrickle.stream_table",
    "StreamTableGraph": "airflow_provider_pgtrickle.factory.stream_table_graph",
    "StreamTableGroup": "airflow_provider_pgtrickle.factory.stream_table_group",
    "Unit": "airflow_provider_pgtrickle.stream_table",
}


def __getattr__(name: str) -> Any:
    # Lazy: the package also runs in Spark drivers, where there is no Airflow.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
