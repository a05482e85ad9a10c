"""ORDER BY without LIMIT is dropped, as PostgreSQL's materialized views do: a relation has no order."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.dvm.frontend.aggregates import is_order_sensitive
from airflow_provider_pgtrickle.dvm.reasons import Reason, Refused
from airflow_provider_pgtrickle.dvm.schema import Schema


def drop_order(query: exp.Query, schema: Schema) -> exp.Query:
    """
    SELECT a FROM t ORDER BY a  →  SELECT a FROM t

    An aggregate above that takes its rows' order from a subquery's ORDER BY is refused.
    """
    for node in list(query.find_all(exp.Select, exp.SetOperation, exp.Subquery)):
        if not node.args.get("order") or node.args.get("limit") or node.args.get("offset"):
            continue
        if isinstance(node.parent, exp.Array):
            continue  # ARRAY(SELECT … ORDER BY …): here the order is the value
        above = node.parent_select if node is not query else None
        while above is not None:
            for call in above.find_all(exp.AggFunc, exp.Anonymous):
                if call.parent_select is above and is_order_sensitive(call):
                    raise Refused(
                        Reason.AMBIGUOUS_ORDER,
                        f"{call.sql('postgres')} takes its order from a subquery",
                        "Write the ORDER BY inside the aggregate.",
                    )
            above = above.parent_select
        node.set("order", None)
    return query
