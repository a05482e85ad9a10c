"""Orders that a subquery leaves open, made total, so that evaluating it twice gives the same value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from airflow_provider_pgtrickle.dvm.emit import SOURCE_META
from airflow_provider_pgtrickle.dvm.expressions import unparen
from airflow_provider_pgtrickle.dvm.frontend.aggregates import aggregate_calls
from airflow_provider_pgtrickle.dvm.frontend.ordered_calls import ordered_calls
from airflow_provider_pgtrickle.dvm.reasons import Reason, Refused

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.dvm.frontend.build import Builder

_NUMBERING = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead)


def make_total(builder: Builder, query: exp.Expr) -> None:
    """Order limited rows, elements of ARRAY(SELECT …) and what aggregates take in; refuse where that can't be done."""
    for found in list(query.find_all(exp.Select, exp.SetOperation, exp.Subquery)):
        if isinstance(found, exp.Select):
            _order_aggregates(found)
            _order_windows(builder, found)
        if isinstance(found.parent, exp.Array):
            _order_elements(found)
        if found.args.get("limit") or found.args.get("offset"):
            _order_limit(builder, found)


def _order_aggregates(select: exp.Select) -> None:
    """Items of one block; what is nested in them is a block of its own, visited after it."""
    for item in select.expressions:
        if not any(item.find_all(exp.Select, exp.SetOperation)):
            item.replace(ordered_calls(item))


def _order_windows(builder: Builder, select: exp.Select) -> None:
    """Rows that are numbered among rows that tie: by the keys of their tables, where they come from tables."""
    keys = _table_keys(builder, select)
    for window in [w for item in select.expressions for w in item.find_all(exp.Window)]:
        if window.parent_select is not select or not isinstance(window.this, _NUMBERING):
            continue
        if keys is None:
            if window.args.get("order") is None:
                raise Refused(Reason.AMBIGUOUS_ORDER, window.sql("postgres"), "Add a unique column to its ORDER BY.")
            continue
        order = window.args.get("order") or exp.Order(expressions=[])
        order.set("expressions", [*order.expressions, *(k.copy() for k in keys)])
        window.set("order", order)


def _table_keys(builder: Builder, select: exp.Select) -> list[exp.Expr] | None:
    """What tells the rows of a block's FROM apart: its tables' keys, or all their columns; None beyond plain tables."""
    tables = [t for t in select.find_all(exp.Table) if t.parent_select is select and SOURCE_META in t.meta]
    if len(tables) != len(select.args.get("joins") or []) + 1 or select.args.get("group"):
        return None
    keys: list[exp.Expr] = []
    for table in tables:
        source = builder.sources[table.meta[SOURCE_META]]
        for held in source.columns:
            if source.primary_key and held.name not in source.primary_key:
                continue
            reference: exp.Expr = exp.column(held.name, table=table.alias_or_name, quoted=True)
            if not held.has_equality:
                reference = exp.Cast(this=reference, to=exp.DataType.build("text"))
            keys.append(exp.Ordered(this=reference))
    return keys


def _order_elements(query: exp.Expr) -> None:
    """The elements themselves are the last things to order by: those that tie look alike."""
    order = query.args.get("order") or exp.Order(expressions=[])
    if isinstance(query, exp.Select) and not query.args.get("distinct"):
        item = query.expressions[0]
        element = item.this if isinstance(item, exp.Alias) else item
        last: exp.Expr = exp.Cast(this=exp.Paren(this=element.copy()), to=exp.DataType.build("text"))
    else:
        last = exp.Literal.number(1)
    if not query.args.get("limit"):
        order.append("expressions", exp.Ordered(this=last))
        query.set("order", order)


def _order_limit(builder: Builder, query: exp.Expr) -> None:
    if isinstance(query, exp.Select) and _shows_its_order(query):
        return
    keys = _table_keys(builder, query) if isinstance(query, exp.Select) and not query.args.get("distinct") else None
    if keys is None or any(next(aggregate_calls(i, builder.own_aggregates), None) for i in query.expressions):
        raise Refused(
            Reason.AMBIGUOUS_ORDER,
            "LIMIT in a subquery over something that is no table",
            "Put every column it shows into its ORDER BY.",
        )
    for key in keys:
        query.args["order"].append("expressions", key)


def _shows_its_order(select: exp.Select) -> bool:
    """Whether rows that tie are rows that look alike."""
    ordered = {unparen(o.this) for o in select.args["order"].expressions}
    shown = [unparen(i.this if isinstance(i, exp.Alias) else i) for i in select.expressions]
    return all(s in ordered or not s.find(exp.Column) for s in shown) and not select.args.get("distinct")
