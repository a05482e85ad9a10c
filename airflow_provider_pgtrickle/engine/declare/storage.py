"""REINITIALIZE: read a stream table's definition anew, and reshape its table for it."""

from __future__ import annotations

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.capture.maintained import end_readers
from airflow_provider_pgtrickle.engine.capture.st_buffer import drop_st_buffer, ensure_st_buffer
from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.database import scalar
from airflow_provider_pgtrickle.engine.catalog.faults import about
from airflow_provider_pgtrickle.engine.catalog.records import Dependency, StreamTable
from airflow_provider_pgtrickle.engine.catalog.search_path import own_path
from airflow_provider_pgtrickle.engine.catalog.zone import in_zone
from airflow_provider_pgtrickle.engine.declare import (
    capturing,
    copies,
    dependencies,
    frozen,
    identity_index,
    parts,
    table,
)
from airflow_provider_pgtrickle.engine.declare.definition import Definition, define
from airflow_provider_pgtrickle.engine.declare.retention import Retention
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, QueryError
from airflow_provider_pgtrickle.engine.settings import Settings


def recapture(conn: psycopg.Connection, stream_table: StreamTable, settings: Settings) -> StreamTable:
    """Store what the query means now, and capture all that it reads. The table itself stays as it is.

    This runs before the snapshot, in a transaction of its own, so that each change is in the snapshot or in a buffer.
    """
    with about(stream_table.qualified):
        _find_again(conn, stream_table)
        definition = _define(conn, stream_table, settings)
        dependencies.refuse_circle(conn, stream_table, definition.dependencies)
        capturing.start(conn, stream_table.id, definition.view)
        gone = parts.without_parts(conn, _released(conn, stream_table, definition))
        before = _reads(conn, stream_table)
        records.replace_dependencies(conn, stream_table.id, (*definition.dependencies, *gone))
        parts.belong(conn, stream_table)
        frozen.hold(conn, stream_table)
        copies.hold(conn, stream_table)
        query = definition.query_columns() | _as_written(stream_table)
        records.update(conn, stream_table.id, **query)
        _settle(conn, settings, stream_table, before)
        return records.get(conn, stream_table.qualified)


def _settle(conn: psycopg.Connection, settings: Settings, stream_table: StreamTable, before: set[int]) -> None:
    """If it reads other stream tables than before, as where a view leads elsewhere, schedules and units follow."""
    now = _reads(conn, stream_table)
    if now != before:
        dependencies.settle_schedules(conn, settings, sorted({stream_table.id, *before, *now}))


def _reads(conn: psycopg.Connection, stream_table: StreamTable) -> set[int]:
    """The stream tables that it reads itself."""
    return {d.source_pgt_id for d in records.dependencies(conn, stream_table.id) if d.source_pgt_id is not None}


def _find_again(conn: psycopg.Connection, stream_table: StreamTable) -> None:
    """Note the table's oid, which is another one since a restore: by it readers know that it is a stream table."""
    found = scalar(conn, "SELECT pg_catalog.to_regclass(%s)::oid::bigint", (stream_table.qualified.quoted,))
    if found is not None and found != stream_table.relid:
        records.update(conn, stream_table.id, relid=found)


def rebuild(conn: psycopg.Connection, stream_table: StreamTable, settings: Settings) -> StreamTable:
    """Give the table the columns of its query, and record them in the catalog.

    This runs in the transaction that then fills the table: rows that are still there are the old ones, and the FULL
    refresh replaces what differs.
    """
    with about(stream_table.qualified):
        definition = _define(conn, stream_table, settings)
        # Their writers are waited for before the table is locked, which they may read.
        end_readers(conn, stream_table.id)
        is_rewritten = _is_rewritten(conn, stream_table)
        reshaped = table.reshape(conn, stream_table.qualified, definition.columns, stream_table)
        if stream_table.is_hidden:
            table.keep_private(conn, stream_table.qualified)
        identified = (tuple(definition.view.identity), definition.view.keyed)
        if identified != (stream_table.identity, stream_table.keyed):
            # The stored row ids mean something else now, so neither the rows nor their identity index can stay.
            table.empty(conn, stream_table.qualified)
            identity_index.drop(conn, stream_table.qualified)
        gone = _released(conn, stream_table, definition)
        capturing.start(conn, stream_table.id, definition.view)
        before = _reads(conn, stream_table)
        records.replace_dependencies(conn, stream_table.id, definition.dependencies)
        frozen.hold(conn, stream_table)
        copies.hold(conn, stream_table)
        _settle(conn, settings, stream_table, before)
        records.update(
            conn,
            stream_table.id,
            # The author's text stays, even if the definition had to be made from the canonical text.
            **definition.catalog_columns() | _as_written(stream_table),
            relid=reshaped.relid,
            needs_reinit=False,
            reinit_reason=None,
            kept_query=None,
        )
        capturing.stop(conn, stream_table.id, gone)
        parts.erase_unread(conn, stream_table.id)
        rebuilt = records.get(conn, stream_table.qualified)
        kept = reshaped.change is table.Change.SAME and identified == (stream_table.identity, stream_table.keyed)
        if (not kept or is_rewritten) and dependencies.readers(conn, rebuilt):
            # The buffer has the old columns, or lacks what was deleted. With a new buffer its readers run FULL.
            drop_st_buffer(conn, rebuilt.id)
            ensure_st_buffer(conn, rebuilt)
        return rebuilt


def _is_rewritten(conn: psycopg.Connection, stream_table: StreamTable) -> bool:
    """Whether somebody has changed the stored rows, so that a difference from them is none from what readers know.

    From now on nobody attaches, detaches or drops partitions until the transaction ends.
    """
    if stream_table.partition_by is not None and table.exists(conn, stream_table.qualified):
        conn.execute(sql.SQL("LOCK TABLE ONLY {} IN SHARE UPDATE EXCLUSIVE MODE").format(stream_table.qualified.sql))
    return bool(
        scalar(
            conn,
            "SELECT pgtrickle.pgt_was_rewritten("
            " ARRAY(SELECT pg_catalog.jsonb_array_elements_text(frontier -> 'table')),"
            " pgtrickle.pgt_table_digest(pgt_id)) FROM pgtrickle.pgt_stream_tables WHERE pgt_id = %s",
            (stream_table.id,),
        )
    )


def _define(conn: psycopg.Connection, stream_table: StreamTable, settings: Settings) -> Definition:
    with in_zone(conn, stream_table.timezone):
        # What PostgreSQL expects of the groups may change from one transaction to the next, and this is asked in two.
        is_split = stream_table.split_query is not None
        owner = parts.Owner(
            stream_table.qualified,
            stream_table.refresh_mode,
            stream_table.id,
            stream_table.timezone,
            over_groups=is_split,
        )
        whole = _declared(conn, stream_table, owner)
        if stream_table.is_copy:
            copies.refuse_other_rows(conn, stream_table, whole)
        return whole if stream_table.is_hidden else parts.in_parts(conn, settings, owner, whole)


def _declared(conn: psycopg.Connection, stream_table: StreamTable, owner: parts.Owner) -> Definition:
    """The declared query's definition, from the user's own text or from the canonical one.

    The user's text expands a `*` anew. It is used as long as it means the same relations; in the canonical text every
    name is qualified.
    """
    accepted = stream_table.foreign_code
    read = [d for part in records.with_parts(conn, [stream_table.id]) for d in records.dependencies(conn, part)]
    stored = {(d.source_schema, d.source_name) for d in read}
    fresh: Definition | None = None
    try:
        with conn.transaction():
            path = stream_table.search_path or own_path(conn)  # an older version stored no path
            fresh = define(
                conn,
                stream_table.original_query,
                stream_table.refresh_mode,
                path,
                accepted,
                retention=Retention.of(stream_table),
                approximate_floats=stream_table.may_approximate,
                frozen_rows=stream_table.frozen_rows,
            )
    except PgTrickleError:
        # Over copies the canonical text has the views as they were, and would go on without a word.
        if stream_table.ignores_breaches:
            raise
    if fresh is not None and stream_table.ignores_breaches:
        approximates = stream_table.may_approximate
        return copies.over(
            conn,
            owner,
            fresh,
            stream_table,
            accepted=accepted,
            approximate_floats=approximates,
            is_declared=False,
        )
    if fresh is not None and {(d.source_schema, d.source_name) for d in fresh.dependencies} <= stored:
        return fresh
    try:
        return define(
            conn,
            stream_table.defining_query,
            stream_table.refresh_mode,
            accepted=accepted,
            approximate_floats=stream_table.may_approximate,
            frozen_rows=stream_table.frozen_rows,
        )
    except QueryError as error:
        error.place = None  # it is in PostgreSQL's text, which nobody wrote
        error.remedy = (
            "Something that it reads was changed (a column, a type, a key): undo that and refresh it in full,"
            " or alter its query."
        )
        raise


def _as_written(stream_table: StreamTable) -> dict[str, str | None]:
    """The author's own text, and the path along which its names are looked up."""
    return {"original_query": stream_table.original_query, "search_path": stream_table.search_path}


def _released(conn: psycopg.Connection, stream_table: StreamTable, definition: Definition) -> tuple[Dependency, ...]:
    wanted = {d.source_relid for d in definition.dependencies}
    return tuple(d for d in records.dependencies(conn, stream_table.id) if d.source_relid not in wanted)
