"""Δγ(R) = γ(R¹ ⋉ K) − γ(R⁰ ⋉ K), K = the groups that ΔR touches.

Exact for every aggregate function there is. Without GROUP BY the one group is always touched.
The sink `merge_add` has the cheaper rule for a top aggregate over exact types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.differ import Differ, keys_from
from airflow_provider_pgtrickle.engine.dvm.emit import Emitter
from airflow_provider_pgtrickle.engine.dvm.exact_types import exact_type
from airflow_provider_pgtrickle.engine.dvm.expressions import render, unparen
from airflow_provider_pgtrickle.engine.dvm.node import Column, Key, Keys, Node, Unary
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import difference


@dataclass(frozen=True, eq=False)
class Aggregate(Unary):
    """GROUP BY columns of the child, and aggregates over each group."""

    group: tuple[str, ...]
    aggregates: tuple[tuple[str, exp.Expr], ...]
    needs_row: bool = False
    """GROUP BY () over nothing gives one row; GROUP BY columns, all of them constant-free, gives none."""

    @property
    def columns(self) -> tuple[Column, ...]:
        keys = tuple(self.child.column(g) for g in self.group)
        by_name = {c.name: c for c in self.child.columns}
        return keys + tuple(Column(n, _type_of(x, by_name), _is_count(x)) for n, x in self.aggregates)

    @property
    def unique_keys(self) -> frozenset[Key]:
        return frozenset((frozenset(self.group),))

    @property
    def weighted(self) -> bool:
        return False

    @property
    def heavy(self) -> bool:
        return True

    def delta(self, d: Differ) -> Node | None:
        change = d.delta(self.child)
        if change is None:
            return None
        return touched_difference(d, self, change, self.group)

    def restrict(self, keys: Keys) -> Node:
        mapped = keys.only(self.group)
        return replace(self, child=self.child.restrict(mapped)) if mapped else self

    def select(self, e: Emitter) -> str:
        rows = replace(e.rows(self.child), weight=None)
        values = [f"{e.expression(x, rows.places)} AS {e.name(n)}" for n, x in self.aggregates]
        group = f" GROUP BY {', '.join(e.place(rows, g) for g in self.group)}" if self.group else ""
        return e.select(rows, [*e.listed(rows, self.group), *values]) + group

    def label(self) -> str:
        aggregates = ", ".join(render(x) for _, x in self.aggregates)
        return f"Aggregate by [{', '.join(self.group)}] of [{aggregates}]"


def _is_count(call: exp.Expr) -> bool:
    return isinstance(unparen(call), exp.Count)


def _type_of(call: exp.Expr, columns: Mapping[str, Column]) -> str | None:
    """The narrowest type of an extremum; PostgreSQL forgets the modifier of its argument's."""
    bare = unparen(call)
    if isinstance(bare, exp.Filter):
        bare = unparen(bare.this)
    kind = exact_type(bare.this, columns) if isinstance(bare, (exp.Min, exp.Max)) and not bare.expressions else None
    return kind.type_name if kind else None


def touched_difference(d: Differ, node: Node, change: Node, group: Sequence[str]) -> Node:
    """node¹ − node⁰ over the groups of `group` (columns of node and change alike) that `change` touches."""
    keys = keys_from(change, group) if group else None
    before = d.old(node)
    if keys is None:
        return difference(node, before)
    return difference(Restrict(node.restrict(keys), keys), Restrict(before.restrict(keys), keys))
