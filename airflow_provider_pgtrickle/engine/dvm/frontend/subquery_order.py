"""A query that is left to PostgreSQL gets a total order, so that evaluating it twice gives the same value."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import ordered_calls
from airflow_provider_pgtrickle.engine.dvm.expressions import has_subquery, render, unparen
from airflow_provider_pgtrickle.engine.dvm.frames import (
    called,
    depends_on_ties,
    made_finer,
    may_be_finer,
    picks_from_frame,
)
from airflow_provider_pgtrickle.engine.dvm.frontend.builder import Builder
from airflow_provider_pgtrickle.engine.dvm.frontend.spell_keys import spell_keys
from airflow_provider_pgtrickle.engine.dvm.frontend.tie_breakers import row_breakers, tie_breakers, unordered
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused


def make_total(builder: Builder, query: exp.Expr) -> None:
    """Order limited rows, elements of ARRAY(SELECT …) and aggregates' input; refuse where that can't be done.

    The innermost first: an outer order takes copies of keys, which must be the same texts as the keys are in the end.
    """
    spell_keys(query, builder.own_aggregates)
    for found in reversed(list(query.find_all(exp.Select, exp.SetOperation, exp.Subquery))):
        if isinstance(found, exp.Select):
            _order_aggregates(found)
            _order_windows(builder, found)
        if isinstance(found.parent, exp.Array):
            _order_elements(found)
        if found.args.get("limit") or found.args.get("offset"):
            _order_limit(builder, found)


def _order_aggregates(select: exp.Select) -> None:
    """Order the aggregates in one block's items; a nested query is a block of its own, visited later."""
    for item in select.expressions:
        if not any(item.find_all(exp.Select, exp.SetOperation)):
            item.replace(ordered_calls(item))


def _order_windows(builder: Builder, select: exp.Select) -> None:
    """Order the rows that tie in a window by the columns that tell the rows of the block apart."""
    windows = [w for w in select.find_all(exp.Window) if w.parent_select is select and depends_on_ties(w)]
    breakers = row_breakers(builder, select) if windows else None
    for window in windows:
        missing = None if breakers is None else unordered(breakers, window)
        if missing == [] or _is_determined(window):
            continue  # No rows tie, or those that do have the same value.
        if missing is None or not may_be_finer(window):
            raise Refused(Reason.AMBIGUOUS_ORDER, render(window), "Add a unique column to its ORDER BY.")
        window.replace(made_finer(window, missing))


def _is_determined(window: exp.Window) -> bool:
    """Whether a function picks one of its arguments' values from rows that agree in all that these read."""
    function, order = called(window), window.args.get("order")
    if not picks_from_frame(function) or not order:
        return False
    known = {unparen(o.this) for o in order.expressions} | {unparen(k) for k in window.args.get("partition_by") or []}
    return all(
        unparen(a) in known or (not has_subquery(a) and all(c in known for c in a.find_all(exp.Column)))
        for a in function.iter_expressions()
    )


def _order_elements(query: exp.Expr) -> None:
    """Order elements by themselves last, so that elements that tie look alike."""
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
    limit, order = query.args.get("limit"), query.args.get("order")
    if not order or _has_ties(limit):
        return  # without ORDER BY all rows look alike (`refuse` checks it), and WITH TIES keeps all rows that tie
    breakers = tie_breakers(builder, query)
    if breakers is not None:
        order.set("expressions", [*order.expressions, *unordered(breakers, query)])
    elif not (isinstance(query, exp.Select) and _shows_its_order(query)):
        raise Refused(
            Reason.AMBIGUOUS_ORDER,
            "which of the rows that tie a LIMIT in a subquery keeps",
            "Put every column it shows into its ORDER BY.",
        )


def _has_ties(limit: exp.Expr | None) -> bool:
    options = limit.args.get("limit_options") if limit else None
    return bool(options and options.args.get("with_ties"))


def _shows_its_order(select: exp.Select) -> bool:
    """Whether all rows that tie look alike."""
    ordered = {unparen(o.this) for o in select.args["order"].expressions}
    shown = [unparen(i.this if isinstance(i, exp.Alias) else i) for i in select.expressions]
    return all(s in ordered or not s.find(exp.Column) for s in shown) and not select.args.get("distinct")
