"""CREATE OR REPLACE: what differs between a declaration and what is there."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import psycopg

from airflow_provider_pgtrickle.engine.catalog.probe import probe
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.catalog.search_path import own_path
from airflow_provider_pgtrickle.engine.declare.options import Options
from airflow_provider_pgtrickle.engine.declare.subject import about
from airflow_provider_pgtrickle.engine.errors import UsageError


def difference(conn: psycopg.Connection, there: StreamTable, query: str, options: Options) -> dict[str, Any]:
    """The changes that `alter` has to make; empty when the declaration says what is there.

    Queries are compared as PostgreSQL understands them, so white space, comments and the spelling of
    names make no difference, and a `*` that means other columns by now does.
    """
    with about(there.qualified):
        stored = {
            name: there.requested_cdc_mode if name == "cdc_mode" else getattr(there, name) for name in asdict(options)
        }
        changes = {name: value for name, value in asdict(options).items() if value != stored[name]}
        if "partition_by" in changes:
            raise UsageError("partition_by can't be altered", remedy="Drop the stream table and create it again.")
        if probe(conn, query, own_path(conn)).canonical != there.defining_query:
            changes["query"] = query
        return changes
