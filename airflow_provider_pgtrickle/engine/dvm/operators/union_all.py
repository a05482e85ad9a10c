"""Δ(A ⊎ B) = ΔA + ΔB, because UNION ALL keeps every row of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from airflow_provider_pgtrickle.engine.dvm.node import Column, Differ, Keys, Node, Open, Slicer
from airflow_provider_pgtrickle.engine.dvm.rendering import ONE, Emitter
from airflow_provider_pgtrickle.engine.dvm.types import base_type


@dataclass(frozen=True, eq=False)
class UnionAll(Node):
    """The rows of every branch. Columns correspond by position, and `out` names them."""

    branches: tuple[Node, ...]
    out: tuple[str, ...]

    @classmethod
    def of(cls, branches: Sequence[Node]) -> Node:
        """The sum of branches that have the same columns; a single branch is returned as it is."""
        if len(branches) == 1:
            return branches[0]
        return cls(tuple(branches), branches[0].names)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.branches

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        return replace(self, branches=tuple(inputs))

    @property
    def columns(self) -> tuple[Column, ...]:
        by_position = zip(*(b.columns for b in self.branches), strict=True)
        return tuple(
            Column(
                name,
                _common_type(same),
                all(c.not_null for c in same),
                all(c.has_equality for c in same),
            )
            for name, same in zip(self.out, by_position, strict=True)
        )

    @property
    def heavy(self) -> bool:
        return True

    def delta(self, d: Differ) -> Node | None:
        changes = [c for c in map(d.delta, self.branches) if c is not None]
        if not changes:
            return None
        return UnionAll(tuple(changes), self.out)

    def _whence(self, name: str) -> frozenset[tuple[str, str]]:
        place = self.out.index(name)
        found = [branch.whence(branch.names[place]) for branch in self.branches]
        return frozenset().union(*found) if all(found) else frozenset()

    def sliced(self, s: Slicer) -> Node | None:
        parts = [part for part in map(s.slice, self.branches) if part is not None]
        return UnionAll(tuple(parts), self.out) if parts else None

    def restrict(self, keys: Keys) -> Node:
        restricted = []
        for branch in self.branches:
            mapped = keys.mapped(dict(zip(self.out, branch.names, strict=True)))
            restricted.append(branch.restrict(mapped) if mapped else branch)
        return replace(self, branches=tuple(restricted))

    def select(self, e: Emitter) -> str:
        selects = []
        for branch in self.branches:
            rows = e.rows(branch).under(dict(zip(self.out, branch.names, strict=True)))
            if self.weighted and rows.weight is None:
                rows = replace(rows, weight=ONE)
            selects.append(e.select(rows, e.listed(rows, self.out)))
        return " UNION ALL ".join(selects)

    def left_open(self, of: Callable[[Node], Open]) -> Open:
        return left_open_by_branches(self, of)

    def unsettled(self) -> None:
        return None

    def label(self) -> str:
        return "UnionAll"


def _common_type(columns: Iterable[Column]) -> str | None:
    """The type of a column in all branches; where it is written as NULL, its modifier may be missing."""
    found = list(columns)
    types = {c.type for c in found if c.null_of is None}
    if len(types) != 1:
        return None
    (only,) = types
    nulls = {base_type(c.null_of) for c in found if c.null_of is not None}
    return only if only is not None and nulls <= {base_type(only)} else None


def left_open_by_branches(node: Node, of: Callable[[Node], Open]) -> Open:
    """The columns that a node's branches leave open, under the node's names; columns correspond by position."""
    found = Open()
    for branch in node.inputs:
        found = found.also(of(branch).under(dict(zip(branch.names, node.names, strict=True))))
    return found
