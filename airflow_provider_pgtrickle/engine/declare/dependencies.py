"""What a stream table reads, what reads it, and the refusal of circles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import psycopg

from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.probe import Probe
from airflow_provider_pgtrickle.engine.catalog.records import Dependency, StreamTable
from airflow_provider_pgtrickle.engine.errors import CycleDetected
from airflow_provider_pgtrickle.engine.settings import Settings

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.engine.graph import Graph, Node

_UPSTREAM = """
WITH RECURSIVE unit (pgt_id) AS (
    SELECT %s::bigint
    UNION
    SELECT h.pgt_id FROM unit JOIN pgtrickle.pgt_dependencies d USING (pgt_id)
    JOIN pgtrickle.pgt_stream_tables h ON h.pgt_id = d.source_pgt_id AND h.is_hidden
)
SELECT EXISTS (SELECT FROM unit JOIN pgtrickle.pgt_dependencies d USING (pgt_id)
               JOIN pgtrickle.pgt_stream_tables s ON s.pgt_id = d.source_pgt_id AND NOT s.is_hidden)
"""
_READS = "SELECT pgt_id, source_pgt_id, source_schema || '.' || source_name FROM pgtrickle.pgt_reads"


def of(conn: psycopg.Connection, probed: Probe) -> tuple[Dependency, ...]:
    """The tables a query reads and the views it reads them through; `pgt_id` is the caller's to fill in."""
    modes: dict[int, str] = dict(
        conn.execute(
            "SELECT source_relid::bigint, mode FROM pgtrickle.pgt_change_tracking WHERE source_relid = ANY(%s::oid[])",
            ([source.relid for source in probed.sources],),
        ).fetchall()
    )
    tables = tuple(
        Dependency(
            pgt_id=0,
            source_relid=source.relid,
            source_type=source.kind,
            source_schema=source.schema,
            source_name=source.name,
            source_pgt_id=source.pgt_id,
            columns_used=tuple(probed.columns_used.get(source.relid, ())),
            cdc_mode=modes.get(source.relid, "TRIGGER") if source.captured else "NONE",
        )
        for source in probed.sources
    )
    views = conn.execute(
        "SELECT c.oid::bigint, n.nspname, c.relname FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ANY(%s) ORDER BY c.oid",
        (list(probed.views),),
    ).fetchall()
    return tables + tuple(Dependency(0, relid, "VIEW", schema, name) for relid, schema, name in views)


def graph(conn: psycopg.Connection, tables: Iterable[StreamTable] | None = None) -> Graph:
    """The graph of all stream tables as they are declared now; `tables`: all of them, if they were read already."""
    # The import is late, because its library takes as long as two refreshes and most of them need no graph.
    from airflow_provider_pgtrickle.engine.graph import Graph

    sources: dict[int, set[str]] = {}
    tables = [table for table in tables or records.get_all(conn) if not table.is_hidden]
    names = {table.id: str(table.qualified) for table in tables}
    reads: Iterable[tuple[int, int, str]] = conn.execute(_READS)
    for reader, source_id, name in reads:
        # A stream table counts by its present name; it may have been renamed or moved.
        sources.setdefault(reader, set()).add(names.get(source_id) or name)
    return Graph.build(_node(table, frozenset(sources.get(table.id, ()))) for table in tables)


def reads_stream_tables(conn: psycopg.Connection, table: StreamTable) -> bool:
    """Whether the table or a part of it reads another stream table, which is to be refreshed before it."""
    row = conn.execute(_UPSTREAM, (table.id,)).fetchone()
    return row is not None and bool(row[0])


def settle_schedules(conn: psycopg.Connection, settings: Settings) -> None:
    """Write down how old each stream table may become. A declaration may change that for all tables it reads."""
    schedules = graph(conn).effective_schedules(settings.min_schedule_seconds, least=0)
    conn.execute(
        "UPDATE pgtrickle.pgt_stream_tables t SET effective_schedule = make_interval(secs => s.seconds)"
        " FROM unnest(%s::text[], %s::bigint[]) AS s(name, seconds)"
        " WHERE t.pgt_schema || '.' || t.pgt_name = s.name"
        " AND t.effective_schedule IS DISTINCT FROM make_interval(secs => s.seconds)",
        (list(schedules), [schedule.longest for schedule in schedules.values()]),
    )


def refuse_circle(conn: psycopg.Connection, table: StreamTable, wanted: tuple[Dependency, ...]) -> None:
    """Raise `CycleDetected` with the circle's path if the table would come to read itself."""
    name = str(table.qualified)
    sources = frozenset(f"{d.source_schema}.{d.source_name}" for d in wanted)
    if name in sources:
        raise CycleDetected(
            f"{name} would read itself", stream_table=name, remedy="Read the tables it is made from instead."
        )
    graph(conn).with_node(_node(table, sources))


def readers(conn: psycopg.Connection, table: StreamTable) -> tuple[StreamTable, ...]:
    """The stream tables that read this one directly or through a part of theirs."""
    ids = {reader for reader, source_id, _ in conn.execute(_READS) if source_id == table.id != reader}
    return tuple(other for other in records.get_all(conn) if other.id in ids)


def _node(table: StreamTable, sources: frozenset[str]) -> Node:
    from airflow_provider_pgtrickle.engine.graph import Node

    return Node(str(table.qualified), sources, table.schedule, table.diamond_consistency, table.diamond_schedule_policy)
