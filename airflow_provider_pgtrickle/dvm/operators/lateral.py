"""Δ(L ⋈ f(l)) = ΔL ⋈ f(l) + what a change inside f touches: an item evaluated for each outer row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.dvm.differ import Differ
from airflow_provider_pgtrickle.dvm.emit import Emitter
from airflow_provider_pgtrickle.dvm.node import Column, Keys, Node
from airflow_provider_pgtrickle.dvm.operators.dependent import Subquery, dependent_delta
from airflow_provider_pgtrickle.dvm.rows import Rows


@dataclass(frozen=True, eq=False)
class Lateral(Node):
    """LATERAL subquery or set-returning function over each row of the child."""

    child: Node
    item: exp.Expr
    """The FROM item without its alias; outer references are columns of the row."""
    alias: str
    outputs: tuple[tuple[str, str], ...]
    """(column of the item, column of this node)."""
    outer: bool = False
    condition: exp.Expr | None = None
    ordinality: bool = False
    parts: tuple[Subquery, ...] = ()
    is_old: bool = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child,)

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        return replace(self, child=inputs[0])

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns + tuple(Column(n) for _, n in self.outputs)

    @property
    def own_sources(self) -> frozenset[str]:
        return frozenset().union(*(p.sources for p in self.parts))

    @property
    def heavy(self) -> bool:
        return True

    def delta(self, d: Differ) -> Node | None:
        return dependent_delta(d, self.child, self.parts, lambda n, old: replace(self, child=n, is_old=old))

    def old(self, d: Differ) -> Node:
        return replace(self, child=d.old(self.child), is_old=True)

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

    def label(self) -> str:
        return f"Lateral {self.alias}"
