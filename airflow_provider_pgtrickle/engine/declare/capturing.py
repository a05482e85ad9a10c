"""Capture of what stream tables read: started with a source's first reader, stopped with its last."""

from __future__ import annotations

from collections.abc import Iterable

import psycopg

from airflow_provider_pgtrickle.engine.capture.st_buffer import drop_st_buffer, ensure_st_buffer
from airflow_provider_pgtrickle.engine.capture.tracking import track, untrack
from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.locks import lock_rows
from airflow_provider_pgtrickle.engine.catalog.records import Dependency
from airflow_provider_pgtrickle.engine.catalog.relations import read_sources
from airflow_provider_pgtrickle.engine.dvm import View
from airflow_provider_pgtrickle.engine.errors import QueryError

#: A PostgreSQL table has at most 1,600.
MOST_COLUMNS = 798


def start(conn: psycopg.Connection, pgt_id: int, view: View) -> None:
    """Create or widen triggers and buffers for everything that the view reads."""
    # A refresh of an upstream stream table locks its row while it writes. So it either has committed before this
    # transaction creates the buffer, or will find the buffer.
    lock_rows(conn, [source.pgt_id for source in view.sources.values() if source.pgt_id is not None])
    # Everybody locks in this order, so that two declarations can't wait for each other.
    for source in sorted(view.sources.values(), key=lambda source: source.relid):
        if source.pgt_id is not None:
            ensure_st_buffer(conn, records.by_ids(conn, [source.pgt_id])[source.pgt_id], pgt_id)
        elif source.captured:
            try:
                track(conn, source, view.used.get(source.key, ()), pgt_id)
            except QueryError as error:
                if not isinstance(error.__cause__, psycopg.errors.TooManyColumns):
                    raise
                raise QueryError(
                    f"More than {MOST_COLUMNS} columns of {source.schema}.{source.name} would be captured, and a change"
                    " buffer holds the old and the new value of each",
                    remedy="Name fewer columns, counting all stream tables that read it, or give it a table for some.",
                ) from error


def settle(conn: psycopg.Connection, ids: Iterable[int]) -> None:
    """Let the buffers that these stream tables read be as their readers want them by now."""
    read = [(pgt_id, d) for pgt_id in ids for d in records.dependencies(conn, pgt_id)]
    ids_read = sorted({d.source_pgt_id for _, d in read if d.source_pgt_id is not None})
    # From here on no refresh writes the upstream tables' buffers.
    lock_rows(conn, ids_read)
    upstream = records.by_ids(conn, ids_read)
    for st in upstream.values():
        ensure_st_buffer(conn, st)
    tables = {d.source_relid: pgt_id for pgt_id, d in read if d.source_pgt_id is None and d.cdc_mode != "NONE"}
    for relid, source in sorted(read_sources(conn, sorted(tables)).items()):
        if source.kind == "TABLE":
            track(conn, source, (), tables[relid])


def stop(conn: psycopg.Connection, pgt_id: int, released: Iterable[Dependency]) -> None:
    """Stop the capture of what a stream table no longer reads; with a source's last reader triggers and buffer go.

    It is called when the catalog no longer holds these dependencies.
    """
    still_read = {d.source_pgt_id for d in records.dependencies(conn, None)}
    for dependency in released:
        if dependency.source_pgt_id is None:
            untrack(conn, dependency.source_relid, pgt_id)
        elif dependency.source_pgt_id not in still_read and not _is_live(conn, dependency.source_pgt_id):
            drop_st_buffer(conn, dependency.source_pgt_id)


def _is_live(conn: psycopg.Connection, pgt_id: int) -> bool:
    """Whether writers maintain the table; the functions that hand its changes on are settled by `immediate`."""
    found = records.by_ids(conn, [pgt_id]).get(pgt_id)
    return found is not None and found.is_live
