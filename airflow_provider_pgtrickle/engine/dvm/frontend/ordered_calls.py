"""Aggregates whose value depends on an order that they leave open, given one."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import has_subquery, rewrite
from airflow_provider_pgtrickle.engine.dvm.frontend.aggregates import call_name, is_order_sensitive


def ordered_calls(expression: exp.Expr) -> exp.Expr:
    """string_agg(x, ',') → string_agg(x, ',' ORDER BY x): equal values are interchangeable. Windows are left alone."""

    def change(node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Window):
            return node.copy()
        if not isinstance(node, exp.Func) or not is_order_sensitive(node):
            return None
        name = call_name(node)
        arguments = _arguments(node)
        if any(has_subquery(a) for a in arguments) or any(isinstance(a, exp.Distinct) for a in arguments):
            return None
        if name == "any_value":
            return exp.Anonymous(this="min", expressions=[arguments[0].copy()])
        return _with_order(name, arguments, arguments[:2] if "object" in name else arguments[:1])

    return rewrite(expression, change)


def _arguments(call: exp.Expr) -> list[exp.Expr]:
    if isinstance(call, exp.Anonymous):
        return list(call.expressions)
    found = [call.this] if isinstance(call.this, exp.Expr) else []
    if isinstance(call.args.get("expression"), exp.Expr):
        found.append(call.args["expression"])
    if isinstance(call, exp.GroupConcat) and call.args.get("separator") is not None:
        found.append(call.args["separator"])
    return found + list(call.expressions)


def _with_order(name: str, arguments: list[exp.Expr], keys: list[exp.Expr]) -> exp.Expr:
    *first, last = [a.copy() for a in arguments]
    text = exp.DataType.build("text")
    order = [exp.Ordered(this=exp.Cast(this=exp.Paren(this=k.copy()), to=text.copy())) for k in keys]
    return exp.Anonymous(this=name, expressions=[*first, exp.Order(this=last, expressions=order)])
