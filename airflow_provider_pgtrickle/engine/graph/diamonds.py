"""Diamonds: a source that reaches one table through two stream tables, by paths with no table in common.

A table that reads a source both directly and through one stream table is no diamond. Otherwise a dimension that is
joined again further down a chain would tie the whole chain together.
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
    """The members as a bit set."""

    @property
    def members(self) -> frozenset[str]:
        """The tables that must show one instant. The shared sources may be older, because all members read the same."""
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
            # The two paths separate at the shared sources that a branch reads directly.
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
    """Whether the table's diamond may have changed after other tables, those of `moved`, got other sources.

    With a shared table two sources share all that lies above it. So a diamond depends only on what lies above one of
    them and not above the other: its branches are within left ⊕ right.
    """
    masks = [closures.of(source) for source in node.sources]
    return any((left ^ right) & moved for left, right in combinations(masks, 2))
