"""What a stream table reads, who reads it, and that nobody reads itself in the end."""

from __future__ import annotations

import psycopg

from airflow_provider_pgtrickle.catalog import records
from airflow_provider_pgtrickle.catalog.records import Dependency, StreamTable
from airflow_provider_pgtrickle.errors import CycleDetected
from airflow_provider_pgtrickle.graph import Graph, Node


def graph(conn: psycopg.Connection) -> Graph:
    """The graph of all stream tables as they are declared now."""
    sources: dict[int, set[str]] = {}
    tables = records.get_all(conn)
    names = {table.id: str(table.qualified) for table in tables}
    for dependency in records.dependencies(conn, None):
        source = names.get(dependency.source_pgt_id) or f"{dependency.source_schema}.{dependency.source_name}"
        sources.setdefault(dependency.pgt_id, set()).add(source)
    return Graph.build(_node(table, frozenset(sources.get(table.id, ()))) for table in tables)


def refuse_circle(conn: psycopg.Connection, table: StreamTable, wanted: tuple[Dependency, ...]) -> None:
    """`CycleDetected`, with its path, when the table would come to read itself."""
    name = str(table.qualified)
    sources = frozenset(f"{d.source_schema}.{d.source_name}" for d in wanted)
    if name in sources:
        raise CycleDetected(
            f"{name} would read itself", stream_table=name, remedy="Read the tables it is made from instead."
        )
    graph(conn).with_node(_node(table, sources))


def readers(conn: psycopg.Connection, table: StreamTable) -> tuple[StreamTable, ...]:
    """The stream tables that read this one directly."""
    ids = {d.pgt_id for d in records.dependencies(conn, None) if d.source_pgt_id == table.id and d.pgt_id != table.id}
    return tuple(other for other in records.get_all(conn) if other.id in ids)


def _node(table: StreamTable, sources: frozenset[str]) -> Node:
    return Node(str(table.qualified), sources, table.schedule, table.diamond_consistency, table.diamond_schedule_policy)
