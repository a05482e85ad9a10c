"""What each DAG will be, as a value: its tables, its units, its tasks' ids.

It is the whole graph, or a connected component where the graph is split.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.graph import Graph
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.schedule import Effective
from airflow_provider_pgtrickle.operators.unit import Unit
from airflow_provider_pgtrickle.stream_table import DEFAULT_SCHEMA, StreamTable


@dataclass(frozen=True)
class Component:
    """The stream tables of one DAG."""

    dag_id: str
    graph: Graph
    tables: tuple[StreamTable, ...]
    units: tuple[Unit, ...]
    schedules: Mapping[str, Effective]

    def narrowed(self, names: Collection[str]) -> Component:
        """The units that have one of these tables. A unit that reads another through one left out waits for it."""
        kept = [unit for unit in self.units if set(unit.names) & set(names)]
        ids = {unit.task_id for unit in kept}
        above: dict[str, set[str]] = {}
        for unit in self.units:
            above[unit.task_id] = set().union(*({up} if up in ids else above[up] for up in unit.upstream))
        units = tuple(replace(unit, upstream=tuple(sorted(above[unit.task_id]))) for unit in kept)
        tables = tuple(table for unit in units for table in unit.tables)
        schedules = {str(table.qualified): self.schedules[str(table.qualified)] for table in tables}
        return replace(self, tables=tables, units=units, schedules=schedules)

    def under(self, prefix: str) -> Component:
        """The same with task ids as they are in a task group."""
        units = tuple(
            replace(u, task_id=f"{prefix}{u.task_id}", upstream=tuple(f"{prefix}{up}" for up in u.upstream))
            for u in self.units
        )
        return replace(self, units=units)


def components(name: str, tables: Sequence[StreamTable], min_seconds: int, *, split: bool = False) -> list[Component]:
    """The graph as one DAG or several, in an order that depends only on the declarations."""
    whole = Graph.build(table.node for table in tables)
    schedules = whole.effective_schedules(min_seconds)
    by_name = {str(table.qualified): table for table in tables}
    unit_of = {member: unit for unit in whole.units() for member in unit}
    groups = whole.components() if split else [tuple(whole.order())]
    ids = _split_ids(name, whole, groups, by_name) if split else [name]
    result = []
    for dag_id, group in zip(ids, groups, strict=True):
        mine = {unit_of[member] for member in group}
        ordered = [unit for unit in whole.units() if unit in mine]
        result.append(
            Component(
                dag_id,
                whole,
                tuple(by_name[member] for member in group),
                _units(whole, ordered, by_name),
                {member: schedules[member] for member in group},
            )
        )
    return result


def _split_ids(
    name: str, graph: Graph, groups: Sequence[tuple[str, ...]], by_name: Mapping[str, StreamTable]
) -> list[str]:
    """An id for each component: its name, or the one table in it that reads no other.

    What is added below that table doesn't move the id. What would make it doubtful is refused, because a DAG with
    another id starts paused and without its history.
    """
    found: dict[str, str] = {}
    for group in groups:
        names = sorted({component for member in group if (component := by_name[member].component)})
        roots = [member for member in group if not graph.parents(member)]
        if len(names) > 1:
            raise UsageError(
                f"The components {' and '.join(names)} of graph {name!r} are connected",
                remedy="Give their tables one component=….",
            )
        if not names and len(roots) > 1:
            listed = " and ".join(_task_id(by_name[root].qualified) for root in roots)
            raise UsageError(
                f"{listed} of graph {name!r} are connected, and either could name their DAG",
                remedy=f'Name it: StreamTable({roots[0]!r}, component="…"), with the end of its DAG\'s id until now.',
            )
        dag_id = f"{name}__{_fitting(names[0]) if names else _task_id(by_name[roots[0]].qualified)}"
        if dag_id in found:
            raise UsageError(
                f"Two components of graph {name!r} would be the DAG {dag_id}", remedy="Give one another component=…."
            )
        found[dag_id] = group[0]
    return list(found)


def _units(graph: Graph, ordered: Sequence[tuple[str, ...]], by_name: Mapping[str, StreamTable]) -> tuple[Unit, ...]:
    ids = {unit: _id_of(graph, unit, by_name) for unit in ordered}
    taken: dict[str, tuple[str, ...]] = {}
    for unit, task_id in ids.items():
        if (other := taken.setdefault(task_id, unit)) is not unit:
            raise UsageError(
                f"The tasks of {', '.join(other)} and of {', '.join(unit)} would both be called {task_id}",
                remedy="Give the unit another name.",
            )
    unit_of = {member: unit for unit in ordered for member in unit}
    units = []
    for unit in ordered:
        above = {unit_of[parent] for member in unit for parent in _awaited(graph, member, by_name)} - {unit}
        units.append(
            Unit(
                ids[unit],
                tuple(by_name[member] for member in unit),
                tuple(sorted(ids[other] for other in above)),
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


def _task_id(name: QualifiedName, default_schema: str = DEFAULT_SCHEMA) -> str:
    """`totals`, or `sales.totals` outside the default schema.

    >>> _task_id(QualifiedName("public", "totals")), _task_id(QualifiedName("sales", "My totals"))
    ('totals', 'sales.My_totals.90541262')
    """
    text = name.name if name.schema == default_schema and name.name not in _RESERVED else str(name)
    return _fitting(text)


def _unit_id(names: Sequence[QualifiedName], default_schema: str = DEFAULT_SCHEMA) -> str:
    """A unit's id: its tables joined by `__`."""
    return _fitting("__".join(_task_id(name, default_schema) for name in names))


def _id_of(graph: Graph, unit: Sequence[str], by_name: Mapping[str, StreamTable]) -> str:
    """A declared unit's id is its name, so that a table that joins it changes no id."""
    declared = graph.declared(unit)
    if not declared or len(unit) == 1:
        return _unit_id([by_name[member].qualified for member in unit])
    text = "__".join(declared)
    if text in _RESERVED:
        raise UsageError(f"A unit can't be called {text!r}, like a task of the DAG", remedy="Give it another name.")
    return _fitting(text)


def _fitting(text: str) -> str:
    clean = _NOT_ALLOWED.sub("_", text)
    if clean == text and len(text) <= _LONGEST:
        return text
    # A digest makes ids unique in which characters were replaced or cut.
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{clean[: _LONGEST - 9]}.{digest}"
