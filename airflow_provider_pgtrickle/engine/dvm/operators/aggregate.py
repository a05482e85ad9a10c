"""Δγ(R) = γ(R¹ ⋉ K) − γ(R⁰ ⋉ K), K = the groups that ΔR touches.
Only these groups are computed anew, each from all of its rows.

The rule is exact for every aggregate function. Without GROUP BY there is one group, which is always touched.
The sink `merge_add` has a cheaper rule for a top aggregate over exact types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import call_name, is_order_sensitive, leaves_ties, ordered_calls
from airflow_provider_pgtrickle.engine.dvm.exact_types import exact_type
from airflow_provider_pgtrickle.engine.dvm.expressions import columns_of, plain_column, render, unparen
from airflow_provider_pgtrickle.engine.dvm.node import (
    Column,
    Differ,
    Item,
    Key,
    Keys,
    Node,
    Open,
    Unary,
)
from airflow_provider_pgtrickle.engine.dvm.operators.grouping import Grouping
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter
from airflow_provider_pgtrickle.engine.dvm.types import base_type

_ALWAYS_ALIKE = {"count", "bool_and", "bool_or", "every"}
_SUMS = {"sum", "avg"}
_EXTREMES = {"min", "max"}
#: Aggregates of floats whose last digits depend on the order of the rows.
_ROUNDED = ("sum", "avg", "stddev", "var", "corr", "covar", "regr")


@dataclass(frozen=True, eq=False)
class Aggregate(Unary, Grouping):
    """GROUP BY columns of the child, and aggregates over each group."""

    group: tuple[str, ...]
    aggregates: tuple[Item, ...]

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
    def groups(self) -> tuple[str, ...]:
        return self.group

    def _whence(self, name: str) -> frozenset[tuple[str, str]]:
        return self.child.whence(name) if name in self.group else frozenset()

    def touching(self, d: Differ, values: Sequence[exp.Expr]) -> tuple[Node, list[exp.Expr]] | None:
        """keys(Δγ(R)) ⊆ groups(ΔR), because a group changes only if one of its rows does."""
        if not all(columns_of(x) <= set(self.group) for x in values):
            return None
        change = d.delta(self.child)
        return None if change is None else (change, list(values))

    def restrict(self, keys: Keys) -> Node:
        mapped = keys.only(self.group)
        return replace(self, child=self.child.restrict(mapped)) if mapped else self

    def select(self, e: Emitter) -> str:
        rows = replace(e.rows(self.child), weight=None)
        values = [f"{e.expression(x, rows.places)} AS {e.name(n)}" for n, x in self.aggregates]
        group = f" GROUP BY {', '.join(e.column_of(rows, g) for g in self.group)}" if self.group else ""
        return e.select(rows, [*e.listed(rows, self.group), *values]) + group

    def reads(self, needed: AbstractSet[str]) -> set[str]:
        return set(self.group).union(*(columns_of(call) for _, call in self.aggregates))

    def left_open(self, of: Callable[[Node], Open]) -> Open:
        below, columns = of(self.child), {c.name: c for c in self.child.columns}
        keys = self.child.unique_keys
        calls = [(n, _bare(x)) for n, x in self.aggregates]
        order = frozenset(n for n, x in calls if is_order_sensitive(x) or leaves_ties(x, keys))
        rounded = frozenset(n for n, x in self.aggregates if _is_rounded(_bare(x), columns))
        return below.through(self.aggregates).also(below.of(self.group)).also(Open(order, rounded))

    def ordered(self) -> Node:
        return replace(
            self, aggregates=tuple((n, ordered_calls(x, self.child.unique_keys)) for n, x in self.aggregates)
        )

    @property
    def always_alike(self) -> frozenset[str]:
        below = {c.name: c for c in self.child.columns}
        return frozenset(n for n, call in self.aggregates if _is_always_alike(_bare(call), below))

    def hoisted(self, down: Callable[[Node, tuple[Item, ...]], tuple[Node, tuple[Item, ...]]]) -> Node:
        child, aggregates = down(self.child, self.aggregates)
        return replace(self, child=child, aggregates=aggregates)

    def label(self) -> str:
        aggregates = ", ".join(render(x) for _, x in self.aggregates)
        return f"Aggregate by [{', '.join(self.group)}] of [{aggregates}]"


def _is_count(call: exp.Expr) -> bool:
    return isinstance(unparen(call), exp.Count)


def _type_of(call: exp.Expr, columns: Mapping[str, Column]) -> str | None:
    """The narrowest type of an extremum. PostgreSQL's own type for it lacks the modifier of the argument's type."""
    bare = unparen(call)
    if isinstance(bare, exp.Filter):
        bare = unparen(bare.this)
    kind = exact_type(bare.this, columns) if isinstance(bare, (exp.Min, exp.Max)) and not bare.expressions else None
    return kind.type_name if kind else None


def _bare(call: exp.Expr) -> exp.Expr:
    return call.this if isinstance(call, exp.Filter) else call


def is_sum(call: exp.Expr) -> bool:
    """Whether a call adds its arguments up. If they are floats, the last digits of the sum depend on their order."""
    return call_name(call).startswith(_ROUNDED)


def _is_rounded(call: exp.Expr, columns: Mapping[str, Column]) -> bool:
    return is_sum(call) and not (isinstance(call.this, exp.Expr) and exact_type(call.this, columns) is not None)


def _is_always_alike(call: exp.Expr, below: Mapping[str, Column]) -> bool:
    """Whether a call's value looks the same whatever the order in which PostgreSQL reads the rows."""
    name = call_name(call)
    if name in _ALWAYS_ALIKE:
        return True
    if name not in _SUMS | _EXTREMES:
        return False
    if exact_type(call.this, below) is not None:
        return True
    plain = plain_column(unparen(call.this))
    if plain is None:
        return False
    # A numeric sum has as many digits as the longest of its terms, whatever the order of the additions.
    return base_type(below[plain].type or "") == "numeric" if name in _SUMS else below[plain].is_image
