"""Δμ = μ¹ − μ⁰, μ a query that PostgreSQL evaluates as it is written: some WITH RECURSIVE, and ORDER BY with LIMIT.

At the top of a query the stored rows stand for μ⁰ (sink `recompute`), so only μ¹ is computed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import render
from airflow_provider_pgtrickle.engine.dvm.node import Column, Differ, Leaf, Node
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import difference
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter


@dataclass(frozen=True, eq=False)
class Native(Leaf):
    """A whole query over sources, which PostgreSQL evaluates in their old or new state."""

    query: exp.Expr
    outputs: tuple[str, ...]
    tables: frozenset[str]
    """Keys of the sources that it reads."""
    is_old: bool = False
    why: str = ""
    """Why a recursion can't be maintained by its own change."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(n) for n in self.outputs)

    @property
    def own_sources(self) -> frozenset[str]:
        return self.tables

    @property
    def heavy(self) -> bool:
        return True

    def delta(self, d: Differ) -> Node:
        return difference(self, d.old(self))

    def old(self, d: Differ) -> Node:
        return replace(self, is_old=True)

    def select(self, e: Emitter) -> str:
        alias = e.alias()
        names = ", ".join(e.name(n) for n in self.outputs)
        return f"SELECT {names} FROM ({e.expression(self.query, alias, is_old=self.is_old)}) AS {alias}({names})"

    def label(self) -> str:
        return f"Native {render(self.query)}"
