"""Refresh units: the partition of the tables into sets that share one snapshot and one commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import networkx as nx
from networkx.utils import UnionFind

from airflow_provider_pgtrickle.engine.graph.closures import Closures
from airflow_provider_pgtrickle.engine.graph.node import Node


def joined_by(members: Iterable[str], nodes: Mapping[str, Node], closures: Closures) -> set[str]:
    """These tables, and each one through which a source reaches them that reaches them in another way, too.

    U ← U ∪ { e : e is read by U, e shares a source with another that is read by U, and feeds no such other }

    What is left outside brings each source in one way alone, so that all of U sees it at one instant.
    """
    joined = set(members)
    while True:
        read = {source for name in joined for source in nodes[name].sources} - joined
        clashing = {
            source
            for source in read
            if any(closures.of(source) & closures.of(other) for other in read if other != source)
        }
        last = {
            source
            for source in clashing
            if source in nodes
            and not any(closures.of(other) & closures.bit(source) for other in clashing if other != source)
        }
        if not last:
            return joined
        joined |= last


def units(tables: nx.DiGraph, order: Sequence[str], groups: Iterable[Iterable[str]]) -> list[tuple[str, ...]]:
    """Unite groups that overlap or would wait for each other.

    Members stand in refresh order, units in an order that depends only on the graph.
    """
    union = UnionFind(order)
    for group in groups:
        union.union(*sorted(group))
    position = {name: i for i, name in enumerate(order)}
    leader = _leaders(union, order)
    if len(set(leader.values())) == len(order):
        return [(name,) for name in order]
    contracted = nx.DiGraph()
    contracted.add_nodes_from(leader.values())
    contracted.add_edges_from((leader[a], leader[b]) for a, b in tables.edges if leader[a] != leader[b])
    # Groups that read each other's tables form a circle when each is contracted to one node; they become one unit.
    for circle in nx.strongly_connected_components(contracted):
        union.union(*sorted(circle))
    return _ordered(tables, order, _leaders(union, order), position)


def _leaders(union: UnionFind, order: Sequence[str]) -> dict[str, str]:
    """Each table's unit, named by its first member in refresh order."""
    first: dict[str, str] = {}
    return {name: first.setdefault(union[name], name) for name in order}


def _ordered(
    tables: nx.DiGraph, order: Sequence[str], leader: Mapping[str, str], position: Mapping[str, int]
) -> list[tuple[str, ...]]:
    members: dict[str, list[str]] = {}
    for name in order:
        members.setdefault(leader[name], []).append(name)
    contracted = nx.DiGraph()
    contracted.add_nodes_from(members)
    contracted.add_edges_from((leader[a], leader[b]) for a, b in tables.edges if leader[a] != leader[b])
    return [tuple(members[name]) for name in nx.lexicographical_topological_sort(contracted, key=position.__getitem__)]
