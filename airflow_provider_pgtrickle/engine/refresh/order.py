"""The members of a unit, each after those it reads."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import TopologicalSorter

from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection


def upstream_first(conn: Connection, tables: Sequence[StreamTable]) -> list[StreamTable]:
    """Sorted by what the catalog knows of their dependencies, which form no circle."""
    if len(tables) == 1:
        return list(tables)
    by_id = {st.id: st for st in sorted(tables, key=lambda st: st.qualified)}
    edges = conn.execute(
        "SELECT pgt_id, source_pgt_id FROM pgtrickle.pgt_dependencies"
        " WHERE pgt_id = ANY(%(ids)s) AND source_pgt_id = ANY(%(ids)s)",
        {"ids": list(by_id)},
    ).fetchall()
    graph: dict[int, list[int]] = {pgt_id: [] for pgt_id in by_id}
    for reader, source in edges:
        graph[reader].append(source)
    return [by_id[pgt_id] for pgt_id in TopologicalSorter(graph).static_order()]
