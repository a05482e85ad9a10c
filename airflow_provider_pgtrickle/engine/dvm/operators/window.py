"""Δω(R) = ω(R¹ ⋉ K) − ω(R⁰ ⋉ K), K = the partitions that ΔR touches.

A row that moves between partitions touches both. Without PARTITION BY the whole is one partition.
Windows of different partitions stand one above the other, each with its own K.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.differ import Differ
from airflow_provider_pgtrickle.engine.dvm.emit import Emitter
from airflow_provider_pgtrickle.engine.dvm.expressions import render
from airflow_provider_pgtrickle.engine.dvm.node import Column, Key, Keys, Node, Unary
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import touched_difference


@dataclass(frozen=True, eq=False)
class Window(Unary):
    """The child's columns and window functions that share their partition columns."""

    partition: tuple[str, ...]
    functions: tuple[tuple[str, exp.Expr], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns + tuple(Column(n) for n, _ in self.functions)

    @property
    def unique_keys(self) -> frozenset[Key]:
        return self.child.unique_keys

    @property
    def heavy(self) -> bool:
        return True

    def delta(self, d: Differ) -> Node | None:
        change = d.delta(self.child)
        return None if change is None else touched_difference(d, self, change, self.partition)

    def restrict(self, keys: Keys) -> Node:
        mapped = keys.only(self.partition)
        return replace(self, child=self.child.restrict(mapped)) if mapped else self

    def select(self, e: Emitter) -> str:
        rows = e.rows(self.child)
        items = [f"{e.expression(x, rows.places)} AS {e.name(n)}" for n, x in self.functions]
        return e.select(rows, e.listed(rows, self.child.names) + items)

    def label(self) -> str:
        return f"Window by [{', '.join(self.partition)}] of [{', '.join(render(x) for _, x in self.functions)}]"
