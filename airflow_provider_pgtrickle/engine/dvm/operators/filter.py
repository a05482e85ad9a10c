"""Δσ(L) = σ(ΔL): each changed row is judged by its own values, old ones by the old."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.emit import Emitter
from airflow_provider_pgtrickle.engine.dvm.expressions import conjuncts, equality, plain_column, render
from airflow_provider_pgtrickle.engine.dvm.node import Column, Key, Keys, Node
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Dependent, Subquery
from airflow_provider_pgtrickle.engine.dvm.rows import Rows


@dataclass(frozen=True, eq=False)
class Filter(Dependent):
    """The rows for which a predicate is true."""

    predicate: exp.Expr
    parts: tuple[Subquery, ...] = ()
    is_old: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        proven = not_null_by(self.predicate)
        return tuple(replace(c, not_null=c.not_null or c.name in proven) for c in self.child.columns)

    @property
    def unique_keys(self) -> frozenset[Key]:
        return self.child.unique_keys

    @property
    def heavy(self) -> bool:
        return self.child.heavy or bool(self.parts)

    @property
    def in_place(self) -> bool:
        return self.child.in_place and not self.parts

    def restrict(self, keys: Keys) -> Node:
        return replace(self, child=self.child.restrict(keys))

    def rows(self, e: Emitter) -> Rows:
        rows = e.rows(self.child)
        return rows.that(f"({e.expression(self.predicate, rows.places, is_old=self.is_old)})")

    def label(self) -> str:
        return f"Filter {render(self.predicate)}"


def not_null_by(predicate: exp.Expr) -> set[str]:
    """Columns that a true predicate proves to be not NULL."""
    proven: set[str] = set()
    for term in conjuncts(predicate):
        sides = equality(term)
        if sides:
            proven.update(n for n in map(plain_column, sides) if n)
        elif isinstance(term, exp.Is) and term.args.get("negate") and isinstance(term.expression, exp.Null):
            name = plain_column(term.this)
            if name:
                proven.add(name)
    return proven
