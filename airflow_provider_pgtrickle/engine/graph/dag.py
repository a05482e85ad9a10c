"""The graph of stream tables. It is immutable, computes each derived fact once, and keeps it over a small change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import networkx as nx

from airflow_provider_pgtrickle.engine.errors import CycleDetected, UnknownStreamTable, UsageError
from airflow_provider_pgtrickle.engine.graph.closures import Closures
from airflow_provider_pgtrickle.engine.graph.diamonds import Diamond, diamond_at, may_differ
from airflow_provider_pgtrickle.engine.graph.node import Node
from airflow_provider_pgtrickle.engine.graph.schedules import effective_schedules
from airflow_provider_pgtrickle.engine.graph.units import joined_by, units
from airflow_provider_pgtrickle.engine.schedule import Effective


class Graph:
    """Made by `Graph.build`. Edges run from what is read to what reads it. Every answer is deterministic."""

    def __init__(
        self,
        nodes: Mapping[str, Node],
        tables: nx.DiGraph,
        closures: Closures,
        diamonds: Mapping[str, Diamond | None],
    ) -> None:
        self.nodes = nodes
        self._tables = tables
        self._closures = closures
        self._diamonds = diamonds

    @classmethod
    def build(cls, nodes: Iterable[Node]) -> Graph:
        """The graph of these tables; `CycleDetected` names the path of a circle."""
        by_name: dict[str, Node] = {}
        for node in nodes:
            if node.name in by_name:
                raise UsageError(f"Stream table {node.name} is declared twice", remedy="Rename or remove one.")
            by_name[node.name] = node
        tables = _edges(by_name)
        _refuse_circles(tables)
        order = _order(tables)
        closures = Closures.build(by_name, order)
        graph = cls(by_name, tables, closures, {name: diamond_at(name, by_name, closures) for name in order})
        graph.__dict__["_order"] = order
        return graph

    def with_node(self, node: Node) -> Graph:
        """This graph with one table added or replaced; only what it reaches is computed anew."""
        nodes = {**self.nodes, node.name: node}
        known = self.nodes.get(node.name)
        if known is not None and (known.sources, known.unit) == (node.sources, node.unit):
            graph = Graph(nodes, self._tables, self._closures, self._diamonds)
            for fact in ("_order", "_levels", "_components"):
                if fact in self.__dict__:
                    graph.__dict__[fact] = self.__dict__[fact]
            return graph
        tables = self._tables.copy(as_view=False)
        _rewire(tables, nodes, node)
        changed = {node.name, *nx.descendants(tables, node.name)}
        if changed & node.sources:
            raise _circle(nx.shortest_path(tables, node.name, min(changed & node.sources)))
        graph = Graph(nodes, tables, self._closures, self._diamonds)
        below = [name for name in graph._order if name in changed]
        graph._closures = self._closures.updated(nodes, below)
        moved = graph._closures.moved_since(self._closures, below) | graph._closures.bit(node.name)
        stale = [name for name in below if name == node.name or may_differ(nodes[name], graph._closures, moved)]
        graph._diamonds = {**self._diamonds, **{name: diamond_at(name, nodes, graph._closures) for name in stale}}
        return graph

    def without(self, name: str) -> Graph:
        """This graph without the table. What reads it then reads a base table of that name."""
        return Graph.build(node for node in self.nodes.values() if node.name != name)

    def order(self) -> list[str]:
        """Upstream first; ties by name."""
        return list(self._order)

    def levels(self) -> list[tuple[str, ...]]:
        """Tables of one level read none of each other; level 0 reads base tables only."""
        return list(self._levels)

    def components(self) -> list[tuple[str, ...]]:
        """The connected components, each in refresh order. A unit connects tables, a shared base table doesn't."""
        return list(self._components)

    def diamonds(self) -> list[Diamond]:
        return [diamond for name in self._order if (diamond := self._diamonds[name]) is not None]

    def units(self) -> list[tuple[str, ...]]:
        """What is refreshed together, in refresh order: an atomic diamond, and what is declared as a unit."""
        return list(self._units)

    def declared(self, unit: Iterable[str]) -> tuple[str, ...]:
        """The names under which tables of this unit were declared as one; mostly there are none."""
        return tuple(sorted({name for table in unit if (name := self.nodes[table].unit) is not None}))

    def upstream(self, name: str) -> tuple[str, ...]:
        """Every stream table that feeds this one, in refresh order."""
        return self._sorted(nx.ancestors(self._tables, self._known(name)))

    def downstream(self, name: str) -> tuple[str, ...]:
        """Every stream table that this one feeds, in refresh order."""
        return self._sorted(nx.descendants(self._tables, self._known(name)))

    def parents(self, name: str) -> tuple[str, ...]:
        """The stream tables that this one reads directly."""
        return self._sorted(self._tables.pred[self._known(name)])

    def children(self, name: str) -> tuple[str, ...]:
        """The stream tables that read this one directly."""
        return self._sorted(self._tables.succ[self._known(name)])

    def effective_schedules(self, min_seconds: int, *, least: int | None = None) -> dict[str, Effective]:
        """Every table's schedule, CALCULATED resolved. One below `least` (by default the minimum) is refused."""
        least = min_seconds if least is None else least
        return effective_schedules(self._tables, self.nodes, self._order, min_seconds, least)

    def policy(self, unit: Iterable[str]) -> str:
        """`slowest` if a diamond that closes in the unit says so, or a table that is declared to be in one.

        Such a unit waits until all members are due.
        """
        asked = {
            self.nodes[name].diamond_schedule_policy
            for name in unit
            if self._diamonds[name] is not None or self.nodes[name].unit is not None
        }
        return "slowest" if "slowest" in asked else "fastest"

    def tree(self, name: str) -> Iterator[tuple[int, str]]:
        """(depth, name) of the table and everything above it, base tables included."""
        to_visit = [(0, name)]
        while to_visit:
            depth, current = to_visit.pop()
            yield depth, current
            node = self.nodes.get(current)
            to_visit.extend((depth + 1, source) for source in sorted(node.sources if node else (), reverse=True))

    @cached_property
    def _order(self) -> list[str]:
        return _order(self._tables)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self._order)}

    @cached_property
    def _levels(self) -> list[tuple[str, ...]]:
        return [tuple(sorted(level)) for level in nx.topological_generations(self._tables)]

    @cached_property
    def _components(self) -> list[tuple[str, ...]]:
        connected = nx.Graph(self._tables)
        for members in self._declared.values():
            nx.add_path(connected, members)
        parts = [self._sorted(part) for part in nx.connected_components(connected)]
        return sorted(parts, key=lambda part: self._position[part[0]])

    @cached_property
    def _units(self) -> list[tuple[str, ...]]:
        atomic = (d.bits for d in self.diamonds() if self.nodes[d.convergence].diamond_consistency == "atomic")
        declared = (joined_by(members, self.nodes, self._closures) for members in self._declared.values())
        groups = [*map(self._closures.names, _joined(atomic)), *declared]
        return units(self._tables, self._order, groups)

    @cached_property
    def _declared(self) -> dict[str, list[str]]:
        """The tables of each unit by declaration."""
        found: dict[str, list[str]] = {}
        for name in self._order:
            if (unit := self.nodes[name].unit) is not None:
                found.setdefault(unit, []).append(name)
        return found

    def _sorted(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(names, key=self._position.__getitem__))

    def _known(self, name: str) -> str:
        if name not in self.nodes:
            raise UnknownStreamTable(f"There is no stream table named {name}")
        return name


def _edges(nodes: Mapping[str, Node]) -> nx.DiGraph:
    tables = nx.DiGraph()
    tables.add_nodes_from(sorted(nodes))
    tables.add_edges_from(
        sorted((source, node.name) for node in nodes.values() for source in node.sources if source in nodes)
    )
    return tables


def _rewire(tables: nx.DiGraph, nodes: Mapping[str, Node], node: Node) -> None:
    """Give the table its new sources, and the readers for which its name meant a base table so far."""
    is_new = node.name not in tables
    tables.add_node(node.name)
    tables.remove_edges_from([(source, node.name) for source in tables.pred[node.name]])
    tables.add_edges_from((source, node.name) for source in sorted(node.sources) if source in nodes)
    if is_new:
        readers = sorted(other.name for other in nodes.values() if node.name in other.sources)
        tables.add_edges_from((node.name, reader) for reader in readers)


def _joined(groups: Iterable[int]) -> list[int]:
    """The bit sets, with those that overlap united."""
    joined: list[int] = []
    for group in groups:
        apart = []
        for other in joined:
            if other & group:
                group |= other
            else:
                apart.append(other)
        joined = [*apart, group]
    return joined


def _order(tables: nx.DiGraph) -> list[str]:
    return list(nx.lexicographical_topological_sort(tables))


def _refuse_circles(tables: nx.DiGraph) -> None:
    try:
        edges = nx.find_cycle(tables)
    except nx.NetworkXNoCycle:
        return
    raise _circle([a for a, _ in edges])


def _circle(path: list[str]) -> CycleDetected:
    start = path.index(min(path))
    closed = [*path[start:], *path[:start], path[start]]
    return CycleDetected(
        f"Stream tables would depend on each other in a circle: {' → '.join(closed)}",
        remedy="Take one of these reads out, or read the base tables there.",
        stream_table=closed[0],
    )
