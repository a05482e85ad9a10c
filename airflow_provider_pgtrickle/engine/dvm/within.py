"""σ(Q): the rows of a query whose column is not below a bound, filtered as early as that means the same.

    SELECT day, sum(v) FROM t GROUP BY day  →  SELECT day, sum(v) FROM t WHERE day >= bound GROUP BY day

A group has one value of such a column, so it is left out whole or not at all. Where the column is computed from
several rows, or the rows stand before or after each other, the filter stays outside.
"""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import aggregate_calls
from airflow_provider_pgtrickle.engine.dvm.expressions import (
    conjunction,
    has_subquery,
    plain_column,
    render,
    returns_set,
    unparen,
)
from airflow_provider_pgtrickle.engine.dvm.frontend.drop_limit import is_bounded
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import output_names, read
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused
from airflow_provider_pgtrickle.engine.dvm.schema import Schema


def within(text: str, schema: Schema, column: str, bound: str) -> str | None:
    """Return a canonical text with `column >= bound` in its own WHERE; None if it can't stand there."""
    try:
        query = read(text)
        value = _value(query, schema, column)
        if value is None:
            return None
        comparison = read(f"SELECT 1 WHERE {render(exp.Paren(this=value.copy()))} >= {bound}").args["where"].this
    except Refused:
        return None
    where = query.args.get("where")
    terms = [exp.Paren(this=where.this), comparison] if where else [comparison]
    query.set("where", exp.Where(this=conjunction(terms)))
    return render(query)


def _value(query: exp.Expr, schema: Schema, column: str) -> exp.Expr | None:
    """The column's expression over one row of FROM, if a group or a row of the result has one value of it."""
    names = output_names(query)
    if not isinstance(query, exp.Select) or is_bounded(query) or names.count(column) != 1:
        return None
    distinct, group = query.args.get("distinct"), query.args.get("group")
    if distinct is not None and distinct.args.get("on"):
        return None
    if group is not None and group.find(exp.GroupingSets, exp.Cube, exp.Rollup):
        return None
    shown = [*query.expressions, *(query.args[clause] for clause in ("having", "order") if query.args.get(clause))]
    if any(item.find(exp.Window) for item in shown):
        return None
    if group is None and (query.args.get("having") or any(_aggregates(item, schema) for item in shown)):
        return None
    value = unparen(query.expressions[names.index(column)].unalias())
    if _aggregates(value, schema) or has_subquery(value) or returns_set(value):
        return None
    return value if plain_column(value) is not None or schema.steady else None


def _aggregates(item: exp.Expr, schema: Schema) -> bool:
    return any(True for _ in aggregate_calls(item, schema.aggregates))
