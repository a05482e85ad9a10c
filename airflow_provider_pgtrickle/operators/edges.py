"""Which unit reads which: the DAG's edges, and those that a view hides from the queries' text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.operators.unit import Unit

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.operators.readiness import TableState


def upstream(units: Sequence[Unit], states: Mapping[str, TableState]) -> dict[str, set[str]]:
    """The task ids of the units that each one reads, as declared and as PostgreSQL knows."""
    home = {name: unit.task_id for unit in units for name in unit.names}
    found = {}
    for unit in units:
        read = {source for name in unit.names if name in states for source in states[name].stream_tables}
        found[unit.task_id] = {*unit.upstream, *(home[source] for source in read if source in home)} - {unit.task_id}
    return found


def upstream_first(units: Sequence[Unit], reads: Mapping[str, set[str]]) -> list[Unit]:
    """In an order in which none comes before what it reads; as declared where views close a circle of units."""
    place = {unit.task_id: number for number, unit in enumerate(units)}
    order: list[Unit] = []
    sorter = TopologicalSorter({unit.task_id: reads[unit.task_id] for unit in units})
    try:
        sorter.prepare()
    except CycleError:
        return list(units)
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=place.__getitem__)
        order.extend(units[place[task_id]] for task_id in ready)
        sorter.done(*ready)
    return order
