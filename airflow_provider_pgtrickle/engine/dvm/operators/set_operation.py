"""Δ(A ∘ B) = (A¹ ⋉ K ∘ B¹ ⋉ K) − (A⁰ ⋉ K ∘ B⁰ ⋉ K), K = the rows of ΔA and ΔB.
∘ is INTERSECT or EXCEPT, with or without ALL.

A value that only one branch holds needs no hidden state, because it is read
when the other branch touches it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from airflow_provider_pgtrickle.engine.dvm.node import Binary, Column, Differ, Key, Keys, Node, Open
from airflow_provider_pgtrickle.engine.dvm.operators.grouping import Grouping
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll, left_open_by_branches
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter


@dataclass(frozen=True, eq=False)
class SetOperation(Binary, Grouping):
    """INTERSECT or EXCEPT."""

    is_all: bool

    @property
    def columns(self) -> tuple[Column, ...]:
        both = zip(self.left.columns, self.right.columns, strict=True)
        if self.kind == "EXCEPT":
            return self.left.columns
        return tuple(replace(a, not_null=a.not_null or b.not_null, type=None) for a, b in both)

    @property
    def unique_keys(self) -> frozenset[Key]:
        return self.left.unique_keys if self.is_all else self.left.unique_keys | {frozenset(self.names)}

    @property
    def groups(self) -> tuple[str, ...]:
        return self.names

    def change(self, d: Differ) -> Node | None:
        """The rows that either branch touches, under this node's names."""
        changes = [c for c in (d.delta(self.left), d.delta(self.right)) if c is not None]
        return UnionAll(tuple(changes), self.names) if changes else None

    def restrict(self, keys: Keys) -> Node:
        over_right = keys.mapped(dict(zip(self.names, self.right.names, strict=True)))
        right = self.right.restrict(over_right) if over_right else self.right
        return replace(self, left=self.left.restrict(keys), right=right)

    def select(self, e: Emitter) -> str:
        operator = self.kind + (" ALL" if self.is_all else "")
        left, right = e.rows(self.left), e.rows(self.right)
        first = e.select(left, e.listed(left, self.left.names))
        return f"{first} {operator} {e.select(right, e.listed(right, self.right.names))}"

    def left_open(self, of: Callable[[Node], Open]) -> Open:
        return left_open_by_branches(self, of)

    def label(self) -> str:
        return self.kind.title() + ("All" if self.is_all else "")
