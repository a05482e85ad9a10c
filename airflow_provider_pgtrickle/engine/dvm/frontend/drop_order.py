"""ORDER BY without LIMIT is dropped, because the rows of a table have no order."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import is_order_sensitive, is_windowed
from airflow_provider_pgtrickle.engine.dvm.expressions import render
from airflow_provider_pgtrickle.engine.dvm.frames import depends_on_ties
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused
from airflow_provider_pgtrickle.engine.dvm.schema import Schema

_FROM = (exp.From, exp.Join, exp.Lateral, exp.Subquery, exp.SetOperation, exp.CTE)


def drop_order(query: exp.Query, schema: Schema) -> exp.Query:
    """
    SELECT a FROM t ORDER BY a  →  SELECT a FROM t

    A query is refused if an aggregate or a window takes the order of its rows from a derived table's ORDER BY.
    """
    for node in list(query.find_all(exp.Select, exp.SetOperation, exp.Subquery)):
        if not node.args.get("order") or isinstance(node.parent, exp.Array):
            continue  # in ARRAY(SELECT … ORDER BY …) the order is part of the value
        for reader in _readers(node):
            if (call := next(_leaning(reader), None)) is not None:
                raise Refused(
                    Reason.AMBIGUOUS_ORDER,
                    f"{render(call)} takes its order from a subquery",
                    "Write the ORDER BY inside the aggregate or the window.",
                )
        if not node.args.get("limit") and not node.args.get("offset"):
            node.set("order", None)
    return query


def _readers(query: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the blocks that read a query's rows as a derived table or a WITH item."""
    node = query.parent
    while node is not None:
        if isinstance(node, exp.Select):
            yield node
        elif isinstance(node, exp.SetOperation) and node.args.get("with_"):
            yield from node.find_all(exp.Select)
        elif isinstance(node, (exp.Subquery, exp.Exists)) and not isinstance(node.parent, _FROM):
            return
        node = node.parent


def _leaning(select: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the block's calls that depend on the order of the rows and don't give one."""
    for call in select.find_all(exp.AggFunc, exp.Anonymous, exp.Window):
        if call.parent_select is not select:
            continue
        if isinstance(call, exp.Window):
            if not call.args.get("order") and depends_on_ties(call):
                yield call
        elif is_order_sensitive(call) and not _is_ordered_by_its_window(call):
            yield call


def _is_ordered_by_its_window(call: exp.Expr) -> bool:
    window = call.find_ancestor(exp.Window) if is_windowed(call) else None
    return window is not None and bool(window.args.get("order"))
