"""The connected components of the graph as values: what each DAG will be, its tasks' ids included."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_provider_pgtrickle.engine.graph import Graph
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.schedule import Effective
from airflow_provider_pgtrickle.operators.unit import Unit
from airflow_provider_pgtrickle.stream_table import StreamTable


@dataclass(frozen=True)
class Component:
    """Stream tables that are connected with each other: one DAG."""

    dag_id: str
    graph: Graph
    tables: tuple[StreamTable, ...]
    units: tuple[Unit, ...]
    schedules: Mapping[str, Effective]


def components(name: str, tables: Sequence[StreamTable], min_seconds: int) -> list[Component]:
    """The graph's connected components, in an order that depends only on the declarations."""
    whole = Graph.build(table.node for table in tables)
    schedules = whole.effective_schedules(min_seconds)
    by_name = {str(table.qualified): table for table in tables}
    groups = whole.components()
    unit_of = {member: unit for unit in whole.units() for member in unit}
    result = []
    for group in groups:
        members = tuple(by_name[member] for member in group)
        dag_id = name if len(groups) == 1 else f"{name}__{_task_id(members[0].qualified)}"
        mine = list(dict.fromkeys(unit_of[member] for member in group))
        ordered = [unit for unit in whole.units() if unit in set(mine)]
        result.append(
            Component(
                dag_id,
                whole,
                members,
                _units(whole, ordered, by_name),
                {member: schedules[member] for member in group},
            )
        )
    return result


def _units(graph: Graph, ordered: Sequence[tuple[str, ...]], by_name: Mapping[str, StreamTable]) -> tuple[Unit, ...]:
    ids = {unit: _unit_id([by_name[member].qualified for member in unit]) for unit in ordered}
    unit_of = {member: unit for unit in ordered for member in unit}
    level: dict[tuple[str, ...], int] = {}
    units = []
    for unit in ordered:
        above = {unit_of[parent] for member in unit for parent in _awaited(graph, member, by_name)} - {unit}
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


def _awaited(graph: Graph, name: str, by_name: Mapping[str, StreamTable]) -> set[str]:
    """What a table reads, also through IMMEDIATE ones, whose tasks mostly have nothing to do and are skipped."""
    found: set[str] = set()
    for parent in graph.parents(name):
        found.add(parent)
        if by_name[parent].is_immediate:
            found |= _awaited(graph, parent, by_name)
    return found


#: Ids of DAGs and tasks hold no other characters.
_NOT_ALLOWED = re.compile(r"[^\w.]", re.ASCII)
#: Airflow allows 250 characters. The rest is for the suffix of a group or a mapped task.
_LONGEST = 200
#: Ids of the DAG's own tasks, which no table's task may have.
_RESERVED = frozenset({"plan", "refresh", "outcomes"})


def _task_id(name: QualifiedName, default_schema: str = "public") -> str:
    """`totals`, or `sales.totals` outside the default schema.

    >>> _task_id(QualifiedName("public", "totals")), _task_id(QualifiedName("sales", "My totals"))
    ('totals', 'sales.My_totals.90541262')
    """
    text = name.name if name.schema == default_schema and name.name not in _RESERVED else str(name)
    return _fitting(text)


def _unit_id(names: Sequence[QualifiedName], default_schema: str = "public") -> str:
    """A unit's id: its tables joined by `__`."""
    return _fitting("__".join(_task_id(name, default_schema) for name in names))


def _fitting(text: str) -> str:
    clean = _NOT_ALLOWED.sub("_", text)
    if clean == text and len(text) <= _LONGEST:
        return text
    # A digest makes ids unique in which characters were replaced or cut.
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{clean[: _LONGEST - 9]}.{digest}"
