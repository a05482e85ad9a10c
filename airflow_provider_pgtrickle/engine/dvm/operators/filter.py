"""Δσ(L) = σ(ΔL), because the condition on a row reads the values of this row alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import columns_of, conjuncts, equality, plain_column, render
from airflow_provider_pgtrickle.engine.dvm.node import Column, Differ, Item, Key, Keys, Node, Open
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Dependent, Subquery
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter, Rows


@dataclass(frozen=True, eq=False)
class Filter(Dependent):
    """The rows for which a predicate is true."""

    predicate: exp.Expr
    subqueries: tuple[Subquery, ...] = ()
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
        return self.child.heavy or bool(self.subqueries)

    @property
    def in_place(self) -> bool:
        return self.child.in_place and not self.subqueries

    def restrict(self, keys: Keys) -> Node:
        return replace(self, child=self.child.restrict(keys))

    def rows(self, e: Emitter) -> Rows:
        rows = e.rows(self.child)
        return rows.that(f"({e.expression(self.predicate, rows.places, is_old=self.is_old)})")

    def reads(self, needed: AbstractSet[str]) -> set[str]:
        return super().reads(needed) | columns_of(self.predicate)

    @property
    def row_wise(self) -> bool:
        return not self.subqueries

    def _whence(self, name: str) -> frozenset[tuple[str, str]]:
        return self.child.whence(name)

    def steps_from(self, child: Node) -> bool:
        return True

    def left_open(self, of: Callable[[Node], Open]) -> Open:
        below = of(self.child)
        if columns_of(self.predicate) & below.order:
            # The predicate chooses among rows that tie. Which of them passes is open, and so are all of its columns
            # except those in which the rows agree.
            return Open(frozenset(self.names) - below.shared, below.rounded, below.shared)
        return below.of(self.names)

    def touching(self, d: Differ, values: Sequence[exp.Expr]) -> tuple[Node, list[exp.Expr]] | None:
        return None if self.subqueries else self.child.touching(d, values)

    def computing(self, item: Item) -> Node | None:
        child = None if self.subqueries else self.child.computing(item)
        return None if child is None else replace(self, child=child)

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
