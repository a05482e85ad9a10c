"""Δδ(R) = δ(R¹ ⋉ K) − δ(R⁰ ⋉ K), K = the rows of ΔR.
δ keeps each row once, however often R has it, so only rows that come or go are looked up in R.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_provider_pgtrickle.engine.dvm.node import Column, Key, Keys, Node, Unary
from airflow_provider_pgtrickle.engine.dvm.operators.grouping import Grouping
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter


@dataclass(frozen=True, eq=False)
class Distinct(Unary, Grouping):
    """The distinct rows of a relation."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def unique_keys(self) -> frozenset[Key]:
        return frozenset((frozenset(self.names),)) | self.child.unique_keys

    @property
    def weighted(self) -> bool:
        return False

    @property
    def groups(self) -> tuple[str, ...]:
        return self.names

    def restrict(self, keys: Keys) -> Node:
        return replace(self, child=self.child.restrict(keys))

    def select(self, e: Emitter) -> str:
        rows = replace(e.rows(self.child), weight=None)
        return e.select(rows, e.listed(rows, self.names), "SELECT DISTINCT")

    def label(self) -> str:
        return "Distinct"
