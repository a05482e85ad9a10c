"""The way from an operator to its database; nothing of it is loaded while a DAG file is parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.hooks.pgtrickle import PgTrickleHook


def hook_of(postgres_conn_id: str) -> PgTrickleHook:
    """The hook of a connection. Imported late: DAG files are parsed all the time, and the client is large."""
    from airflow_provider_pgtrickle.hooks.pgtrickle import PgTrickleHook

    return PgTrickleHook(postgres_conn_id=postgres_conn_id)
