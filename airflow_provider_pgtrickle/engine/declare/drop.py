"""DROP: the table, its catalog entries, and the capture that nobody else needs."""

from __future__ import annotations

import psycopg

from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.faults import about
from airflow_provider_pgtrickle.engine.catalog.locks import lock_declarations, lock_rows, wait_for_refreshes
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.declare import dependencies
from airflow_provider_pgtrickle.engine.declare.existence import erase
from airflow_provider_pgtrickle.engine.declare.parts import erase_unread, refuse_part
from airflow_provider_pgtrickle.engine.errors import UsageError, spoken
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.settings import Settings


def drop(
    conn: psycopg.Connection, settings: Settings, name: QualifiedName, *, cascade: bool = False
) -> tuple[str, ...]:
    """Drop a stream table; the names that were dropped, readers first. Refused while another stream table reads it."""
    with about(name):
        lock_declarations(conn)
        target = records.get(conn, name)
        refuse_part(conn, target)
        readers = dependencies.readers(conn, target)
        if readers and not cascade:
            names = ", ".join(str(reader.qualified) for reader in readers)
            raise UsageError(
                f"It can't be dropped while {names} reads it",
                remedy="Drop that first, or let all that reads it go too: "
                + spoken(cli="--cascade.", python="cascade=True.", dag="cascade=True."),
            )
        doomed = _with_readers(conn, target)
        ids = [stream_table.id for stream_table in doomed]
        wait_for_refreshes(conn, ids)
        lock_rows(conn, ids)
        beside = [stream_table.id for stream_table in records.connected(conn, ids)]
        # With `cascade` views and foreign keys of users go with the tables, and are named with them.
        along: list[str] = []
        for stream_table in doomed:
            along += erase(conn, stream_table, cascade=cascade)
            erase_unread(conn, stream_table.id)
        dependencies.settle_schedules(conn, settings, beside)
        return (*(str(stream_table.qualified) for stream_table in doomed), *along)


def _with_readers(conn: psycopg.Connection, target: StreamTable) -> list[StreamTable]:
    beside = records.connected(conn, [target.id])
    by_name = {str(stream_table.qualified): stream_table for stream_table in beside}
    downstream = dependencies.graph(conn, beside).downstream(str(target.qualified))
    return [*(by_name[name] for name in reversed(downstream)), target]
