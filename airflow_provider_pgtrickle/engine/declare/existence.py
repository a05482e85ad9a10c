"""Make and remove a stream table or a part: its table, its catalog rows and its capture."""

from __future__ import annotations

from typing import Any

import psycopg

from airflow_provider_pgtrickle.engine.capture.st_buffer import drop_st_buffer
from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.declare import capturing, table
from airflow_provider_pgtrickle.engine.declare.definition import Definition, explanation
from airflow_provider_pgtrickle.engine.declare.options import Options
from airflow_provider_pgtrickle.engine.names import QualifiedName


def establish(
    conn: psycopg.Connection, name: QualifiedName, definition: Definition, options: Options, **columns: Any
) -> StreamTable:
    """Make everything but the rows. `columns` are further columns of the catalog."""
    relid = table.create(conn, name, definition.columns, options)
    created = records.insert(
        conn,
        relid=relid,
        schema=name.schema,
        name=name.name,
        status="INITIALIZING",
        is_populated=False,
        server_row_ids=True,
        **options.catalog_columns(),
        **definition.catalog_columns(),
        **explanation(conn, definition.view),
        **columns,
    )
    records.replace_dependencies(conn, created.id, definition.dependencies)
    capturing.start(conn, created.id, definition.view)
    return created


def erase(conn: psycopg.Connection, stream_table: StreamTable, *, cascade: bool = False) -> tuple[str, ...]:
    """Remove it, with the capture that nobody else needs; the names of what PostgreSQL dropped with the table."""
    read = records.dependencies(conn, stream_table.id)
    along = table.drop(conn, stream_table.qualified, cascade=cascade)
    drop_st_buffer(conn, stream_table.id)
    records.delete(conn, stream_table.id)
    capturing.stop(conn, stream_table.id, read)
    return along
