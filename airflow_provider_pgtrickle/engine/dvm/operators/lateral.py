"""Δ(L ⋈ f(l)) = ΔL ⋈ f(l), f an item that is evaluated for each row l of L: a function or a LATERAL subquery.
If f reads tables, the terms of `dependent` for their changes are added.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import columns_of
from airflow_provider_pgtrickle.engine.dvm.node import Column, Keys, Node
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Dependent, Subquery
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter, Rows


@dataclass(frozen=True, eq=False)
class Lateral(Dependent):
    """A LATERAL subquery or set-returning function over each row of the child."""

    item: exp.Expr
    """The FROM item without its alias; outer references are columns of the row."""
    alias: str
    outputs: tuple[tuple[str, str], ...]
    """(column of the item, column of this node)."""
    outer: bool = False
    condition: exp.Expr | None = None
    ordinality: bool = False
    subqueries: tuple[Subquery, ...] = ()
    is_old: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns + tuple(Column(n) for _, n in self.outputs)

    @property
    def heavy(self) -> bool:
        return True

    def restrict(self, keys: Keys) -> Node:
        mapped = keys.only(self.child.names)
        return replace(self, child=self.child.restrict(mapped)) if mapped else self

    def rows(self, e: Emitter) -> Rows:
        outer, inner = e.item(self.child), e.alias()
        item = e.expression(self.item, outer.places, is_old=self.is_old)
        ordinality = " WITH ORDINALITY" if self.ordinality else ""
        names = ", ".join(e.name(n) for _, n in self.outputs)
        places = {**outer.places, **{n: (inner, n) for _, n in self.outputs}}
        condition = e.expression(self.condition, places) if self.condition is not None else "TRUE"
        join = "LEFT JOIN" if self.outer else "JOIN"
        source = f"{outer.source} {join} LATERAL {item}{ordinality} AS {inner}({names}) ON {condition}"
        return Rows(source, places, outer.weight, is_join=True)

    def reads(self, needed: AbstractSet[str]) -> set[str]:
        condition = columns_of(self.condition) if self.condition is not None else set()
        return super().reads(needed) | columns_of(self.item) | condition

    def unsettled(self) -> str | None:
        """The reason why it is not settled: its item is text, in which an order may be open."""
        return Node.unsettled(self)

    def label(self) -> str:
        return f"Lateral {self.alias}"
