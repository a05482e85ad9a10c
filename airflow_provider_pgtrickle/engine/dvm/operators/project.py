"""Δπ(L) = π(ΔL): expressions are computed row by row, set-returning ones included."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.emit import Emitter
from airflow_provider_pgtrickle.engine.dvm.exact_types import exact_type
from airflow_provider_pgtrickle.engine.dvm.expressions import plain_column, render, returns_set
from airflow_provider_pgtrickle.engine.dvm.node import Column, Key, Keys, Node
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Dependent, Subquery, unique_keys_through
from airflow_provider_pgtrickle.engine.dvm.rows import Rows


@dataclass(frozen=True, eq=False)
class Project(Dependent):
    """Named expressions over each row."""

    items: tuple[tuple[str, exp.Expr], ...]
    parts: tuple[Subquery, ...] = ()
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
                result.append(Column(name, kind.type_name if kind else None, constant))
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
        if any(returns_set(x) for _, x in self.items):
            return frozenset()
        return unique_keys_through(self.child, self.passed)

    @property
    def heavy(self) -> bool:
        return self.child.heavy or bool(self.parts)

    @property
    def in_place(self) -> bool:
        return self.child.in_place and not self.parts

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

    def label(self) -> str:
        return "Project " + ", ".join(n if plain_column(x) == n else f"{render(x)} AS {n}" for n, x in self.items)
