"""Orders that a query leaves open, made total, so that computing it twice gives the same rows.

The result is one of those PostgreSQL may give. Where even that can't be had the query is refused
for differences (it runs FULL).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import column, columns_of, plain_column, render, rewrite, unparen
from airflow_provider_pgtrickle.engine.dvm.frontend.open_frames import (
    called,
    depends_on_ties,
    made_finer,
    may_be_finer,
    picks_from_frame,
)
from airflow_provider_pgtrickle.engine.dvm.frontend.ordered_calls import ordered_calls
from airflow_provider_pgtrickle.engine.dvm.node import Node
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.window import Window
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused


def total_order(root: Node, but: Node | None = None) -> Node:
    """The tree with every window and ordered aggregate deterministic; `but` may leave its own order open."""
    return _Pass(but).visit(root)


class _Pass:
    def __init__(self, but: Node | None) -> None:
        self._but = but
        self._done: dict[int, Node] = {}
        self._alive: list[Node] = []

    def visit(self, node: Node) -> Node:
        if id(node) not in self._done:
            self._alive.append(node)
            fresh = node.mapped(self.visit)
            if node is self._but:
                pass
            elif isinstance(fresh, Aggregate):
                fresh = replace(fresh, aggregates=tuple((n, ordered_calls(x)) for n, x in fresh.aggregates))
            elif isinstance(fresh, Window):
                fresh = replace(fresh, functions=tuple((n, _ordered_window(x, fresh)) for n, x in fresh.functions))
            self._done[id(node)] = fresh
        return self._done[id(node)]


def _ordered_window(call: exp.Expr, node: Window) -> exp.Expr:
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
    """What is taken from rows that tie is the same in each of them where it is made of what they tie on."""
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
