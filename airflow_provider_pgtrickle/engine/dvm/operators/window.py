"""Δω(R) = ω(R¹ ⋉ K) − ω(R⁰ ⋉ K), K = the partitions that ΔR touches.
Only these partitions are computed anew, each from all of its rows.

A row that moves between partitions touches both. Without PARTITION BY all rows are one partition.
Windows with different PARTITION BY are separate nodes, one above the other, each with its own K.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import column, columns_of, plain_column, render, rewrite, unparen
from airflow_provider_pgtrickle.engine.dvm.frames import (
    called,
    depends_on_ties,
    made_finer,
    may_be_finer,
    picks_from_frame,
)
from airflow_provider_pgtrickle.engine.dvm.node import Column, Differ, Item, Key, Keys, Node, Open, Unary
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import is_sum
from airflow_provider_pgtrickle.engine.dvm.operators.grouping import Grouping, touched_difference
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter


@dataclass(frozen=True, eq=False)
class Window(Unary, Grouping):
    """The child's columns and window functions that share their partition columns."""

    partition: tuple[str, ...]
    functions: tuple[Item, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns + tuple(Column(n) for n, _ in self.functions)

    @property
    def unique_keys(self) -> frozenset[Key]:
        return self.child.unique_keys

    @property
    def groups(self) -> tuple[str, ...] | None:
        """The partition's columns, but None above another window.

        There a changed row touches the lower window's whole partition, and so rows of other partitions of this one.
        """
        return self.partition if not isinstance(self.child, Window) else None

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

    def reads(self, needed: AbstractSet[str]) -> set[str]:
        return set(self.partition).union(*(columns_of(call) for _, call in self.functions))

    def left_open(self, of: Callable[[Node], Open]) -> Open:
        below = of(self.child)
        windows = {n: list(x.find_all(exp.Window)) for n, x in self.functions}
        ties = frozenset(n for n, found in windows.items() if any(map(self._is_open, found)))
        rounded = frozenset(n for n, found in windows.items() if any(is_sum(called(w)) for w in found))
        shared = frozenset(self.partition) if ties else frozenset()
        return below.also(below.through(self.functions)).also(Open(ties, rounded, shared))

    def _is_open(self, window: exp.Window) -> bool:
        order = window.args.get("order")
        known = {plain_column(unparen(o.this)) for o in order.expressions} if order else set()
        has_no_ties = any(key <= known | set(self.partition) for key in self.child.unique_keys)
        return depends_on_ties(window) and not has_no_ties

    def ordered(self) -> Node:
        return replace(self, functions=tuple((n, _ordered_call(x, self)) for n, x in self.functions))

    def unsettled(self) -> str | None:
        """The reason why it is not settled: rows that tie may get each other's values."""
        return Node.unsettled(self)

    def label(self) -> str:
        return f"Window by [{', '.join(self.partition)}] of [{', '.join(render(x) for _, x in self.functions)}]"


def _ordered_call(call: exp.Expr, node: Window) -> exp.Expr:
    """The call, in which each window's order is made so fine that rows with different values don't tie."""

    def change(found: exp.Expr) -> exp.Expr | None:
        return _ordered_over(found, node) if isinstance(found, exp.Window) else None

    return rewrite(call, change)


def _ordered_over(window: exp.Window, node: Window) -> exp.Expr:
    ordered = [unparen(o.this) for o in window.args["order"].expressions] if window.args.get("order") else []
    keys = {n for n in map(plain_column, ordered) if n}
    known = keys | set(node.partition)
    if not depends_on_ties(window) or any(key <= known for key in node.child.unique_keys):
        return window.copy()
    if _is_determined(called(window), known, ordered):
        return window.copy()
    if not may_be_finer(window):
        raise Refused(
            Reason.AMBIGUOUS_ORDER,
            f"{render(window)} depends on the order of rows that tie",
            "Add a unique column to its ORDER BY.",
        )
    return made_finer(window, [exp.Ordered(this=b) for b in _tie_breakers(node, keys)])


def _is_determined(function: exp.Expr, known: set[str], ordered: list[exp.Expr]) -> bool:
    """Whether a function picks the same value from each of the rows that tie.

    It does if its arguments depend only on the columns on which the rows tie.
    """
    if not picks_from_frame(function):
        return False
    return all(columns_of(a) <= known or unparen(a) in ordered for a in function.iter_expressions())


def _tie_breakers(node: Window, ordered: set[str]) -> Iterable[exp.Expr]:
    unique = sorted(node.child.unique_keys, key=lambda k: (len(k), sorted(k)))
    names = sorted(unique[0]) if unique else list(node.child.names)
    for name in names:
        if name in ordered:
            continue
        held = column(name)
        if node.child.column(name).has_equality:
            yield held
        else:
            yield exp.Cast(this=held, to=exp.DataType.build("text"))
