"""Diamonds: a source that reaches one table through two stream tables, by paths with no table in common.

A table that reads a source directly and through a stream table is none: it has one intermediate table only, and
joining a dimension again further down a chain would otherwise tie the whole chain together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from airflow_provider_pgtrickle.graph.closures import Closures
from airflow_provider_pgtrickle.graph.node import Node


@dataclass(frozen=True)
class Diamond:
    """`shared` fans out into `branches`, which meet again in `convergence`."""

    convergence: str
    branches: tuple[str, ...]
    shared: tuple[str, ...]

    @property
    def members(self) -> frozenset[str]:
        """The tables that must show one instant. The shared sources may be older than they: all read the same."""
        return frozenset(self.branches) | {self.convergence}


def diamond_at(name: str, nodes: Mapping[str, Node], closures: Closures) -> Diamond | None:
    """The diamond that closes in this table, over every pair of its sources."""
    branches: set[str] = set()
    shared_mask = 0
    for left, right in combinations(sorted(nodes[name].sources), 2):
        shared = closures.of(left) & closures.of(right)
        if not shared:
            continue
        one, other = (closures.tables_between(shared, tip) for tip in (left, right))
        if one and other:
            branches |= one | other
            shared_mask |= _parting(one | other, shared, nodes, closures)
    if not branches:
        return None
    return Diamond(name, tuple(sorted(branches)), tuple(sorted(closures.names(shared_mask))))


def may_differ(node: Node, closures: Closures, moved: int) -> bool:
    """Whether the table's diamond may be another one after the tables of `moved` got other sources, itself aside.

    What two sources share is closed upward, so a diamond depends only on what lies above one of them and not above
    the other: their branches are within left ⊕ right.
    """
    masks = [closures.of(source) for source in node.sources]
    return any((left ^ right) & moved for left, right in combinations(masks, 2))


def _parting(branches: set[str], shared: int, nodes: Mapping[str, Node], closures: Closures) -> int:
    """The shared sources at which the two paths part: those that a branch reads directly."""
    mask = 0
    for name in branches:
        for source in nodes[name].sources:
            mask |= closures.bit(source)
    return mask & shared
