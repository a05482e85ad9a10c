"""Orders that a query leaves open, made total, so that computing it twice gives the same rows.

The result is one of those PostgreSQL may give. Where even that can't be had the query is refused
for differences (it runs FULL).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from airflow_provider_pgtrickle.dvm.expressions import column, columns_of, plain_column, rewrite, unparen
from airflow_provider_pgtrickle.dvm.frontend.aggregates import call_name, is_order_sensitive
from airflow_provider_pgtrickle.dvm.frontend.ordered_calls import ordered_calls
from airflow_provider_pgtrickle.dvm.node import Node
from airflow_provider_pgtrickle.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.dvm.operators.window import Window
from airflow_provider_pgtrickle.dvm.reasons import Reason, Refused

_BY_POSITION = {"row_number", "ntile", "lag", "lead"}
_BY_FRAME = {"first_value", "last_value", "nth_value"}


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
            fresh = node.with_inputs([self.visit(i) for i in node.inputs])
            parts = getattr(fresh, "parts", ())
            if parts:
                visited = tuple(replace(p, core=self.visit(p.core)) if p.core is not None else p for p in parts)
                fresh = replace(fresh, parts=visited)  # type: ignore[call-arg]
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
    function = window.this
    while isinstance(function, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        function = function.this
    name = call_name(function)
    spec = window.args.get("spec")
    rows = spec is not None and (spec.args.get("kind") or "").upper() == "ROWS"
    ordered = window.args["order"].expressions if window.args.get("order") else []
    keys = {n for n in (plain_column(o.this) for o in ordered) if n}
    if any(key <= keys | set(node.partition) for key in node.child.unique_keys):
        return window.copy()
    if _is_determined(function, keys | set(node.partition), [unparen(o.this) for o in ordered]):
        return window.copy()
    sensitive = is_order_sensitive(function)
    if not rows and not _keeps_its_frame(name, window, sensitive):
        raise Refused(
            Reason.AMBIGUOUS_ORDER,
            f"{window.sql('postgres')} depends on the order of rows that tie",
            "Add a unique column to its ORDER BY.",
        )
    if name not in _BY_POSITION | _BY_FRAME and not rows and not sensitive:
        return window.copy()
    copy = window.copy()
    order = copy.args.get("order") or exp.Order(expressions=[])
    for extra in _tie_breakers(node, keys):
        order.append("expressions", exp.Ordered(this=extra))
    copy.set("order", order)
    if not window.args.get("order") and spec is None:
        copy.set(
            "spec",
            exp.WindowSpec(
                kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="UNBOUNDED", end_side="FOLLOWING"
            ),
        )
    return copy


def _is_determined(function: exp.Expr, known: set[str], ordered: list[exp.Expr]) -> bool:
    """What is taken from rows that tie is the same in each of them where it is made of what they tie on."""
    if call_name(function) not in _BY_FRAME and not is_order_sensitive(function):
        return False
    return all(columns_of(a) <= known or unparen(a) in ordered for a in function.iter_expressions())


def _keeps_its_frame(name: str, window: exp.Window, sensitive: bool) -> bool:
    """Whether a frame that isn't counted in rows still means the same once rows no longer tie."""
    spec = window.args.get("spec")
    if name in _BY_FRAME:
        return _reaches_its_end(name, spec)
    if not sensitive:
        return True
    return not window.args.get("order") if spec is None else _reaches_its_end("nth_value", spec)


def _reaches_its_end(name: str, spec: exp.Expr | None) -> bool:
    """Whether the frame begins (or ends) with the partition, so that a finer order picks one of the rows that tie."""
    if spec is None:
        return name == "first_value"
    if spec.args.get("exclude") or any(isinstance(spec.args.get(end), exp.Expr) for end in ("start", "end")):
        return False
    if name == "first_value":
        return spec.args.get("start") == "UNBOUNDED"
    return spec.args.get("end") == "UNBOUNDED" and (name == "last_value" or spec.args.get("start") == "UNBOUNDED")


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
