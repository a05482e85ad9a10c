"""Each connected part of the graph as a value: what its DAG will be, before Airflow is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_provider_pgtrickle.engine.graph import Graph
from airflow_provider_pgtrickle.engine.schedule import Effective
from airflow_provider_pgtrickle.factory import task_ids
from airflow_provider_pgtrickle.operators.unit import Unit
from airflow_provider_pgtrickle.stream_table import StreamTable


@dataclass(frozen=True)
class Part:
    """One connected part: one DAG."""

    dag_id: str
    graph: Graph
    tables: tuple[StreamTable, ...]
    units: tuple[Unit, ...]
    schedules: Mapping[str, Effective]


def parts(name: str, tables: Sequence[StreamTable], min_seconds: int) -> list[Part]:
    """The graph cut into its connected parts, in an order that depends on nothing but the declarations."""
    whole = Graph.build(table.node for table in tables)
    schedules = whole.effective_schedules(min_seconds)
    by_name = {str(table.qualified): table for table in tables}
    components = whole.components()
    unit_of = {member: unit for unit in whole.units() for member in unit}
    result = []
    for component in components:
        members = tuple(by_name[member] for member in component)
        dag_id = name if len(components) == 1 else f"{name}__{task_ids.plain(members[0].qualified)}"
        mine = list(dict.fromkeys(unit_of[member] for member in component))
        ordered = [unit for unit in whole.units() if unit in set(mine)]
        result.append(
            Part(
                dag_id,
                whole,
                members,
                _units(whole, ordered, by_name),
                {member: schedules[member] for member in component},
            )
        )
    return result


def _units(graph: Graph, ordered: Sequence[tuple[str, ...]], by_name: Mapping[str, StreamTable]) -> tuple[Unit, ...]:
    ids = {unit: task_ids.joined([by_name[member].qualified for member in unit]) for unit in ordered}
    unit_of = {member: unit for unit in ordered for member in unit}
    level: dict[tuple[str, ...], int] = {}
    units = []
    for unit in ordered:
        above = {unit_of[parent] for member in unit for parent in graph.parents(member)} - {unit}
        level[unit] = 1 + max((level[other] for other in above), default=-1)
        units.append(
            Unit(
                ids[unit],
                tuple(by_name[member] for member in unit),
                tuple(sorted(ids[other] for other in above)),
                level[unit],
                graph.policy(unit),
            )
        )
    return tuple(units)
