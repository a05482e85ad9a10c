"""This module knows which calls aggregate and which of them depend on their input's order, and gives them one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.dialect import using_alias
from airflow_provider_pgtrickle.engine.dvm.expressions import has_subquery, is_row_column, render, rewrite, unparen

NAMES = {
    "any_value", "array_agg", "avg", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "corr", "count",
    "covar_pop", "covar_samp", "cume_dist", "dense_rank", "every", "json_agg", "json_agg_strict", "json_arrayagg",
    "json_object_agg", "json_object_agg_strict", "json_object_agg_unique", "json_objectagg", "jsonb_agg",
    "jsonb_agg_strict", "jsonb_object_agg", "jsonb_object_agg_strict", "jsonb_object_agg_unique", "max", "min",
    "mode", "percent_rank", "percentile_cont", "percentile_disc", "range_agg", "range_intersect_agg", "rank",
    "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy",
    "regr_syy", "stddev", "stddev_pop", "stddev_samp", "string_agg", "sum", "var_pop", "var_samp", "variance",
    "xmlagg",
}  # fmt: skip
ORDERED_SETS = {"mode", "percentile_cont", "percentile_disc", "rank", "dense_rank", "percent_rank", "cume_dist"}
WINDOW_ONLY = (exp.RowNumber, exp.Lag, exp.Lead, exp.Ntile, exp.NthValue, exp.FirstValue, exp.LastValue)
_ORDERED = {
    "array_agg", "string_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg", "xmlagg",
    "json_agg_strict", "jsonb_agg_strict", "json_arrayagg", "any_value",
}  # fmt: skip


def call_name(call: exp.Expr) -> str:
    if isinstance(call, exp.Anonymous):
        return call.name.lower()
    text = render(call)
    return text.split("(", 1)[0].strip().lower()


def is_aggregate(node: exp.Expr, own: frozenset[str] = frozenset()) -> bool:
    """Whether a call aggregates when it has no OVER; `own` are names of user-defined aggregates."""
    if isinstance(node, WINDOW_ONLY):
        return False
    if isinstance(node, exp.Dot):  # schema.name(…)
        return isinstance(node.expression, exp.Anonymous) and node.expression.name.lower() in own
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in NAMES or node.name.lower() in own
    return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Func) and call_name(node) in NAMES)


def is_order_sensitive(call: exp.Expr) -> bool:
    """Whether a call is an aggregate whose value depends on its input's order, and that doesn't say which order."""
    if call_name(call) not in _ORDERED:
        return False
    return not any(isinstance(a, exp.Order) for a in call.iter_expressions()) and call.find(exp.Order) is None


def aggregate_calls(expression: exp.Expr, own: frozenset[str]) -> Iterator[exp.Expr]:
    """Yield the outermost aggregate calls of a block's bound expression, with their FILTER and WITHIN GROUP.

    A window's own call is none of them. Inside a subquery only calls over the row alone count: by SQL's rule they
    belong to the outer block.
    """
    stack: list[tuple[exp.Expr, bool]] = [(expression, False)]
    while stack:
        node, nested = stack.pop()
        nested = nested or isinstance(node, (exp.Select, exp.SetOperation))
        if isinstance(node, exp.Window):
            stack.extend((part, nested) for part in _window_parts(node))
        elif not _is_call(node, own):
            stack.extend((child, nested) for child in node.iter_expressions())
        elif not nested or _is_over_row(node):
            yield node
        else:
            # A call of the subquery may take in a call of this block; its own clauses are not calls by themselves.
            stack.extend((part, nested) for part in _taken_in(node))


def _is_call(node: exp.Expr, own: frozenset[str]) -> bool:
    return isinstance(node, (exp.Filter, exp.WithinGroup)) or is_aggregate(node, own)


def _is_over_row(call: exp.Expr) -> bool:
    """Whether a call reads at least one column from outside of itself, and all of these are columns of the row."""
    free = list(_free_columns(call, frozenset()))
    return bool(free) and all(is_row_column(c) for c in free)


def _free_columns(node: exp.Expr, known: frozenset[str]) -> Iterator[exp.Column]:
    """Yield columns of relations that no subquery inside the expression defines."""
    if isinstance(node, exp.Column):
        if node.table not in known:
            yield node
        return
    if isinstance(node, exp.Select):
        known = known | defined_aliases(node) | {""}
    for child in node.iter_expressions():
        yield from _free_columns(child, known)


def defined_aliases(select: exp.Select) -> frozenset[str]:
    """Return the aliases that one block's FROM defines."""
    found: set[str] = set()
    stack: list[exp.Expr] = [e for e in (select.args.get("from_"), *(select.args.get("joins") or [])) if e]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Join) and (alias := using_alias(node)) is not None:
            found.add(alias)
        if isinstance(node, (exp.From, exp.Join)):
            stack.append(node.this)
            continue
        alias = node.alias_or_name
        if alias:
            found.add(alias)
        if isinstance(node, exp.Subquery) and not isinstance(node.this, (exp.Select, exp.SetOperation)):
            stack.append(node.this)
        stack.extend(node.args.get("joins") or [])
    return frozenset(found)


def belongs(found: exp.Expr) -> bool:
    """Whether a call that looks like a call of the block is one: `count(*)` in a subquery belongs to the subquery."""
    return found.find_ancestor(exp.Select, exp.SetOperation) is None or _is_over_row(found)


def is_windowed(call: exp.Expr) -> bool:
    """Whether a window computes the call, which may read like an aggregate of the block."""
    node = call
    while isinstance(node.parent, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.Dot)):
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


def _window_parts(window: exp.Window) -> list[exp.Expr]:
    """Return a window call's arguments, PARTITION BY and ORDER BY, which may hold plain aggregates."""
    parts = _taken_in(window.this)
    parts.extend(window.args.get("partition_by") or [])
    if window.args.get("order"):
        parts.append(window.args["order"])
    return parts


def _taken_in(call: exp.Expr) -> list[exp.Expr]:
    """Return the arguments of a call, and the expressions in its clauses."""
    parts: list[exp.Expr] = []
    while isinstance(call, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
        if call.args.get("expression"):
            parts.append(call.expression)
        call = call.this
    if isinstance(call, exp.Dot):
        call = call.expression
    parts.extend(call.iter_expressions())
    return parts


# -- an order for calls that leave it open ----------------------------------------------------------


def leaves_ties(call: exp.Expr, keys: Iterable[frozenset[str]] = ()) -> bool:
    """Whether a call says in which order it collects values, and rows with different ones may tie in that."""
    order = _own_order(call)
    return order is not None and bool(_unordered(call, order)) and not any(_is_total(order, k) for k in keys)


def ordered_calls(expression: exp.Expr, keys: Iterable[frozenset[str]] = ()) -> exp.Expr:
    """string_agg(x, ',') → string_agg(x, ',' ORDER BY x), since equal values are interchangeable.

    array_agg(x ORDER BY y) → array_agg(x ORDER BY y, x), unless y has all columns of one of the `keys`, which tell the
    rows apart. Windows are left as they are.
    """

    def change(node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Window):
            return node.copy()
        if not isinstance(node, exp.Func):
            return None
        order = _own_order(node)
        if order is not None:
            rest = _unordered(node, order)
            return _with_order(node, rest) if rest and not any(_is_total(order, k) for k in keys) else None
        if not is_order_sensitive(node):
            return None
        given = arguments(node)
        if any(has_subquery(a) for a in given) or any(isinstance(a, exp.Distinct) for a in given):
            return None
        if call_name(node) == "any_value":
            return exp.Anonymous(this="min", expressions=[given[0].copy()])
        return _with_order(node, _read(node))

    return rewrite(expression, change)


def _own_order(call: exp.Expr) -> exp.Order | None:
    """The ORDER BY of a call that collects values; None where it has none, or DISTINCT values, which never tie."""
    if not isinstance(call, exp.Func) or call_name(call) not in _ORDERED:
        return None
    given = arguments(call)
    if any(a.find(exp.Distinct) or has_subquery(a) for a in given):
        return None
    return next((a for a in given if isinstance(a, exp.Order)), None)


def _read(call: exp.Expr) -> list[exp.Expr]:
    """The arguments that are collected, without the separator."""
    given = [a.this if isinstance(a, exp.Order) else a for a in arguments(call)]
    return given[:2] if "object" in call_name(call) else given[:1]


def _unordered(call: exp.Expr, order: exp.Order) -> list[exp.Expr]:
    """What a call collects and isn't ordered by."""
    by = [unparen(o.this) for o in order.expressions]
    return [a for a in _read(call) if unparen(a) not in by]


def _is_total(order: exp.Order, key: frozenset[str]) -> bool:
    return bool(key) and key <= {unparen(o.this).name for o in order.expressions if is_row_column(unparen(o.this))}


def arguments(call: exp.Expr) -> list[exp.Expr]:
    if isinstance(call, exp.Anonymous):
        return list(call.expressions)
    found = [call.this] if isinstance(call.this, exp.Expr) else []
    if isinstance(call.args.get("expression"), exp.Expr):
        found.append(call.args["expression"])
    if isinstance(call, exp.GroupConcat) and call.args.get("separator") is not None:
        found.append(call.args["separator"])
    return found + list(call.expressions)


def _with_order(call: exp.Expr, keys: list[exp.Expr]) -> exp.Expr:
    *first, last = [a.copy() for a in arguments(call)]
    terms = list(last.expressions) if isinstance(last, exp.Order) else []
    for key in keys:
        text = exp.Cast(this=exp.Paren(this=key.copy()), to=exp.DataType.build("text"))
        terms.append(exp.Ordered(this=text))
    what = last.this if isinstance(last, exp.Order) else last
    return exp.Anonymous(this=call_name(call), expressions=[*first, exp.Order(this=what, expressions=terms)])
