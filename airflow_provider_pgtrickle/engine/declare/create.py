"""CREATE: everything a stream table needs but its rows, in the caller's transaction."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.capture import mode
from airflow_provider_pgtrickle.engine.catalog import records, zone
from airflow_provider_pgtrickle.engine.catalog.database import scalar
from airflow_provider_pgtrickle.engine.catalog.faults import about
from airflow_provider_pgtrickle.engine.catalog.locks import lock_declarations
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.catalog.search_path import own_path
from airflow_provider_pgtrickle.engine.declare import (
    copies,
    dependencies,
    frozen,
    partitions,
    parts,
    replica_identity,
    table,
)
from airflow_provider_pgtrickle.engine.declare.definition import define, float_notice
from airflow_provider_pgtrickle.engine.declare.existence import establish
from airflow_provider_pgtrickle.engine.declare.options import Options
from airflow_provider_pgtrickle.engine.declare.retention import Retention
from airflow_provider_pgtrickle.engine.errors import StreamTableExists, UsageError, spoken
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.settings import Settings


@dataclass(frozen=True)
class Created:
    """The new stream table, not populated yet."""

    stream_table: StreamTable
    notices: tuple[str, ...]


def create(conn: psycopg.Connection, settings: Settings, name: QualifiedName, query: str, options: Options) -> Created:
    """Create storage, catalog rows, triggers and buffers.

    They have to be committed before the first snapshot is taken, so that each change is in the snapshot or in a buffer.
    """
    with about(name):
        lock_declarations(conn)
        _refuse_taken(conn, name)
        zone.require(conn, options.timezone)
        with zone.in_zone(conn, options.timezone):
            whole = define(
                conn,
                query,
                options.refresh_mode,
                own_path(conn),
                retention=Retention.of(options),
                approximate_floats=options.may_approximate,
            )
            parts.refuse_reading(conn, whole)
            partitions.refuse(options, whole.columns)
            owner = parts.Owner(name, options.refresh_mode, timezone=options.timezone)
            whole = copies.over(conn, owner, whole, options, approximate_floats=options.may_approximate)
            definition = parts.in_parts(conn, settings, owner, whole)
            created = establish(conn, name, definition, options)
        parts.belong(conn, created)
        frozen.hold(conn, created)
        copies.hold(conn, created)
        dependencies.settle_schedules(conn, settings, [created.id])
        captured = mode.examine(conn, settings, created)
        view = definition.view
        published = replica_identity.notice(
            conn, name, keyed=view.keyed, never_null=view.never_null == frozenset(view.identity)
        )
        floats = float_notice(view) if options.may_approximate else ()
        return Created(created, definition.notices + options.notices + floats + published + captured)


def _refuse_taken(conn: psycopg.Connection, name: QualifiedName) -> None:
    schema = sql.Identifier(name.schema).as_string(conn)
    if scalar(conn, "SELECT pg_catalog.to_regnamespace(%s)", (schema,)) is None:
        raise UsageError(f"There is no schema {name.schema!r}", remedy="Create it, or choose another.")
    if records.find(conn, name):
        raise StreamTableExists(
            "The stream table is there already",
            remedy="Drop it first, or change it: "
            + spoken(cli="--or-replace.", python="create_or_replace_stream_table.", dag="replace=True."),
        )
    if table.exists(conn, name):
        raise UsageError("A relation of that name is there already", remedy="Choose another name for the stream table.")
