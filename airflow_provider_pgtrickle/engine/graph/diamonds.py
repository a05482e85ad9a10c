"""Diamonds: a source that reaches one table through two stream tables, by paths with no table in common.

A table that reads a source directly and through a stream table is none: it has one intermediate table only, and
joining a dimension again further down a chain would otherwise tie the whole chain together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

from airflow_provider_pgtrickle.engine.graph.closures import Closures
from airflow_provider_pgtrickle.engine.graph.node import Node


@dataclass(frozen=True)
class Diamond:
    """`shared` fans out into `branches`, which meet again in `convergence`."""

    convergence: str
    branches: tuple[str, ...]
    shared: tuple[str, ...]
    bits: int = field(default=0, repr=False, compare=False)
    """Its members as their bit set."""

    @property
    def members(self) -> frozenset[str]:
        """The tables that must show one instant. The shared sources may be older than they: all read the same."""
        return frozenset(self.branches) | {self.convergence}


def diamond_at(name: str, nodes: Mapping[str, Node], closures: Closures) -> Diamond | None:
    """The diamond that closes in this table, over every pair of its sources."""
    branches = parting = 0
    for left, right in combinations(sorted(nodes[name].sources), 2):
        shared = closures.of(left) & closures.of(right)
        if not shared:
            continue
        one, other = (closures.tables_between(shared, tip) for tip in (left, right))
        if one and other:
            branches |= one | other
            # The two paths part at the shared sources that a branch reads itself.
            parting |= closures.read_by(one | other) & shared
    if not branches:
        return None
    return Diamond(
        name,
        tuple(sorted(closures.names(branches))),
        tuple(sorted(closures.names(parting))),
        branches | closures.bit(name),
    )


def may_differ(node: Node, closures: Closures, moved: int) -> bool:
    """Whether the table's diamond may be another one after the tables of `moved` got other sources, itself aside.

    What two sources share is closed upward, so a diamond depends only on what lies above one of them and not above
    the other: their branches are within left ⊕ right.
    """
    masks = [closures.of(source) for source in node.sources]
    return any((left ^ right) & moved for left, right in combinations(masks, 2))
