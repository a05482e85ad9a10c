"""What a stream table reads, what reads it, and the refusal of circles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

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
# The ids stand in the text: as a parameter PostgreSQL would plan for all tables, in a session that plans once.
_READS = sql.SQL(
    "SELECT pgt_id, source_pgt_id, source_schema || '.' || source_name FROM pgtrickle.pgt_reads_of({ids}::bigint[])"
)
_READERS = """
WITH RECURSIVE reader (pgt_id) AS (
    SELECT pgt_id FROM pgtrickle.pgt_dependencies WHERE source_pgt_id = %s
    UNION
    SELECT d.pgt_id FROM reader r JOIN pgtrickle.pgt_stream_tables h ON h.pgt_id = r.pgt_id AND h.is_hidden
    JOIN pgtrickle.pgt_dependencies d ON d.source_pgt_id = h.pgt_id
)
SELECT pgt_id FROM reader
"""
_READERS_BY_NAME = "SELECT pgt_id FROM pgtrickle.pgt_dependencies WHERE (source_schema, source_name) = (%s, %s)"


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
    """The graph of these stream tables as they are declared now, or of all; `tables` are all that are connected."""
    # The import is late, because its library takes as long as two refreshes and most of them need no graph.
    from airflow_provider_pgtrickle.engine.graph import Graph

    sources: dict[int, set[str]] = {}
    shown = [table for table in (records.get_all(conn) if tables is None else tables) if not table.is_hidden]
    names = {table.id: str(table.qualified) for table in shown}
    reads: Iterable[tuple[int, int, str]] = conn.execute(
        _READS.format(ids=sql.Literal(None if tables is None else list(names)))
    )
    for reader, source_id, name in reads:
        # A stream table counts by its present name; it may have been renamed or moved.
        sources.setdefault(reader, set()).add(names.get(source_id) or name)
    return Graph.build(_node(table, frozenset(sources.get(table.id, ()))) for table in shown)


def reads_stream_tables(conn: psycopg.Connection, table: StreamTable) -> bool:
    """Whether the table or a part of it reads another stream table, which is to be refreshed before it."""
    row = conn.execute(_UPSTREAM, (table.id,)).fetchone()
    return row is not None and bool(row[0])


def settle_schedules(conn: psycopg.Connection, settings: Settings, ids: Iterable[int]) -> None:
    """Write down how old these stream tables may become, and what is refreshed with each by declaration.

    The same for all that are connected with them: a declaration may change both for others, too.
    """
    tables = records.connected(conn, ids)
    found = graph(conn, tables)
    _settle_units(conn, found, {str(table.qualified): table.id for table in tables})
    schedules = found.effective_schedules(settings.min_schedule_seconds, least=0)
    longest = {table.id: schedules[name].longest for table in tables if (name := str(table.qualified)) in schedules}
    conn.execute(
        "UPDATE pgtrickle.pgt_stream_tables t SET effective_schedule = make_interval(secs => s.seconds)"
        " FROM unnest(%s::bigint[], %s::bigint[]) AS s(pgt_id, seconds) WHERE t.pgt_id = s.pgt_id"
        " AND t.effective_schedule IS DISTINCT FROM make_interval(secs => s.seconds)",
        (list(longest), list(longest.values())),
    )


def _settle_units(conn: psycopg.Connection, found: Graph, ids: Mapping[str, int]) -> None:
    """Units by declaration, each in the rows of all its tables. What writers maintain is up to date at any snapshot."""
    declared = [unit for unit in found.units() if found.declared(unit)]
    conn.execute(
        "WITH member AS ("
        " SELECT t.pgt_id, u.unit FROM unnest(%s::bigint[], %s::integer[]) AS u(pgt_id, unit)"
        " JOIN pgtrickle.pgt_stream_tables t USING (pgt_id) WHERE t.refresh_mode <> 'IMMEDIATE'"
        "), wanted AS ("
        " SELECT t.pgt_id, CASE WHEN count(o) > 1 THEN array_agg(o.pgt_id ORDER BY o.pgt_id) ELSE '{}' END AS together"
        " FROM unnest(%s::bigint[]) AS t(pgt_id)"
        " LEFT JOIN member m USING (pgt_id) LEFT JOIN member o ON o.unit = m.unit GROUP BY t.pgt_id"
        ") UPDATE pgtrickle.pgt_stream_tables t SET together = w.together FROM wanted w"
        " WHERE w.pgt_id = t.pgt_id AND t.together <> w.together",
        (
            [ids[name] for unit in declared for name in unit],
            [number for number, unit in enumerate(declared) for _ in unit],
            list(ids.values()),
        ),
    )


def refuse_circle(conn: psycopg.Connection, table: StreamTable, wanted: tuple[Dependency, ...]) -> None:
    """Raise `CycleDetected` with the circle's path if the table would come to read itself."""
    name = str(table.qualified)
    sources = frozenset(f"{d.source_schema}.{d.source_name}" for d in wanted)
    if name in sources:
        raise CycleDetected(
            f"{name} would read itself", stream_table=name, remedy="Read the tables it is made from instead."
        )
    # What reads a table of this name will read it, whatever the name has meant so far.
    by_name = [pgt_id for (pgt_id,) in conn.execute(_READERS_BY_NAME, (table.schema, table.name))]
    read = [d.source_pgt_id for d in wanted if d.source_pgt_id is not None]
    graph(conn, records.connected(conn, [table.id, *read, *by_name])).with_node(_node(table, sources))


def readers(conn: psycopg.Connection, table: StreamTable) -> tuple[StreamTable, ...]:
    """The stream tables that read this one directly or through a part of theirs; of a part there are none."""
    ids = [pgt_id for (pgt_id,) in conn.execute(_READERS, (table.id,))] if not table.is_hidden else []
    found = (other for other in records.by_ids(conn, ids).values() if not other.is_hidden and other.id != table.id)
    return tuple(sorted(found, key=lambda other: other.qualified))


def _node(table: StreamTable, sources: frozenset[str]) -> Node:
    from airflow_provider_pgtrickle.engine.graph import Node

    return Node(
        str(table.qualified),
        sources,
        table.schedule,
        table.diamond_consistency,
        table.diamond_schedule_policy,
        table.unit,
    )
