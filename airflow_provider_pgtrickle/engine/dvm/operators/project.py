"""Δπ(L) = π(ΔL), because each expression, even one that returns a set of rows, is computed from one row of L."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.exact_types import exact_type, null_type
from airflow_provider_pgtrickle.engine.dvm.expressions import columns_of, plain_column, render, returns_set, substitute
from airflow_provider_pgtrickle.engine.dvm.node import Column, Differ, Item, Key, Keys, Node, Open
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Dependent, Subquery, unique_keys_through
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter, Rows


@dataclass(frozen=True, eq=False)
class Project(Dependent):
    """Named expressions over each row."""

    items: tuple[Item, ...]
    subqueries: tuple[Subquery, ...] = ()
    is_old: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        by_name = {c.name: c for c in self.child.columns}
        result = []
        for name, expression in self.items:
            origin = plain_column(expression)
            if origin is not None:
                result.append(replace(by_name[origin], name=name))
            else:
                kind = exact_type(expression, by_name)
                constant = isinstance(expression, (exp.Literal, exp.Boolean))
                null_of = null_type(expression) or None
                result.append(Column(name, kind.type_name if kind else None, constant, null_of=null_of))
        return tuple(result)

    @property
    def passed(self) -> dict[str, str]:
        """Input column → output column, for columns that pass unchanged."""
        found: dict[str, str] = {}
        for name, expression in self.items:
            origin = plain_column(expression)
            if origin is not None:
                found.setdefault(origin, name)
        return found

    @property
    def unique_keys(self) -> frozenset[Key]:
        return frozenset() if self.makes_sets else unique_keys_through(self.child, self.passed)

    def _whence(self, name: str) -> frozenset[tuple[str, str]]:
        below = plain_column(dict(self.items)[name])
        return self.child.whence(below) if below is not None else frozenset()

    @property
    def makes_sets(self) -> bool:
        """Whether a function that returns a set may turn one row into several rows or none."""
        return any(returns_set(x) for _, x in self.items)

    @property
    def heavy(self) -> bool:
        return self.child.heavy or bool(self.subqueries)

    @property
    def in_place(self) -> bool:
        return self.child.in_place and not self.subqueries

    def restrict(self, keys: Keys) -> Node:
        origins = {out: plain_column(x) for out, x in self.items}
        mapped = keys.mapped({out: origin for out, origin in origins.items() if origin is not None})
        return replace(self, child=self.child.restrict(mapped)) if mapped else self

    def rows(self, e: Emitter) -> Rows | None:
        origins = {name: plain_column(x) for name, x in self.items}
        plain = {name: origin for name, origin in origins.items() if origin is not None}
        return e.rows(self.child).under(plain) if len(plain) == len(origins) else None

    def select(self, e: Emitter) -> str:
        rows = e.rows(self.child)
        items = [f"{e.expression(x, rows.places, is_old=self.is_old)} AS {e.name(n)}" for n, x in self.items]
        return e.select(rows, items)

    def reads(self, needed: AbstractSet[str]) -> set[str]:
        """A function that returns a set decides how many rows there are, so it is read even if its column is not."""
        kept = [(n, x) for n, x in self.items if n in needed or returns_set(x)]
        return super().reads(needed).union(*(columns_of(x) | {n} for n, x in kept))

    def narrowed(self, needed: AbstractSet[str]) -> Node:
        items = tuple(i for i in self.items if i[0] in needed)
        return replace(self, items=items or ((self.items[0][0], exp.true()),))

    @property
    def row_wise(self) -> bool:
        return not self.subqueries

    def steps_from(self, child: Node) -> bool:
        return True

    def carrying(self, items: Sequence[Item]) -> Node:
        return replace(self, items=(*self.items, *items))

    def left_open(self, of: Callable[[Node], Open]) -> Open:
        return of(self.child).through(self.items)

    def touching(self, d: Differ, values: Sequence[exp.Expr]) -> tuple[Node, list[exp.Expr]] | None:
        items = dict(self.items)
        if self.subqueries or any(returns_set(items[n]) for x in values for n in columns_of(x)):
            return None
        return self.child.touching(d, [substitute(x, items) for x in values])

    def hoisted(self, down: Callable[[Node, tuple[Item, ...]], tuple[Node, tuple[Item, ...]]]) -> Node:
        if self.subqueries:
            return self
        child, items = down(self.child, self.items)
        return replace(self, child=child, items=items)

    def label(self) -> str:
        return "Project " + ", ".join(n if plain_column(x) == n else f"{render(x)} AS {n}" for n, x in self.items)
