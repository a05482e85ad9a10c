"""DISTINCT ON becomes a window and a filter for the first row of each partition, because these have rules."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import returns_set, unparen
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused
from airflow_provider_pgtrickle.engine.dvm.schema import Schema

RANK = "__pgt_rank"


def distinct_on(query: exp.Query, schema: Schema) -> exp.Query:
    """
    SELECT DISTINCT ON (k) k, v FROM t ORDER BY k, w
    → SELECT d.k, d.v FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY k, w) AS __pgt_rank FROM t) d
      WHERE d.__pgt_rank = 1
    """
    for select in reversed(list(query.find_all(exp.Select))):  # innermost first, since outer ones are copied
        distinct = select.args.get("distinct")
        if distinct is None or distinct.args.get("on") is None:
            continue
        rewritten = _rewritten(select, distinct)
        if select is query:
            query = rewritten
        else:
            select.replace(rewritten)
    return query


def _rewritten(select: exp.Select, distinct: exp.Distinct) -> exp.Select:
    if any(returns_set(item) for item in select.expressions):
        raise Refused(
            Reason.UNSUPPORTED_SYNTAX,
            "DISTINCT ON beside a function that returns a set",
            "Call the function in a derived table; until then it runs FULL.",
        )
    on = unparen(distinct.args["on"])
    keys = on.expressions if isinstance(on, exp.Tuple) else [on]
    by_output = {item.alias: item.this for item in select.expressions if isinstance(item, exp.Alias)}
    inner = select.copy()
    inner.set("distinct", None)
    order = inner.args.get("order")
    inner.set("order", None)
    for clause in ("limit", "offset", "with_"):
        inner.set(clause, None)
    rank = exp.Window(
        this=exp.RowNumber(),
        partition_by=[_meant(k, by_output) for k in keys],
        order=_meant_order(order, by_output) if order else None,
        over="OVER",
    )
    names = [item.alias_or_name for item in select.expressions]
    inner.append("expressions", exp.alias_(rank, RANK, quoted=True))
    outer = exp.Select(
        expressions=[exp.column(n, table="__pgt_d", quoted=True) for n in names],
        from_=exp.From(this=exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("__pgt_d")))),
        where=exp.Where(
            this=exp.EQ(this=exp.column(RANK, table="__pgt_d", quoted=True), expression=exp.Literal.number(1))
        ),
    )
    for clause in ("limit", "offset", "with_"):
        if select.args.get(clause):
            outer.set(clause, select.args[clause].copy())
    if order and (select.args.get("limit") or select.args.get("offset")):
        outer.set("order", _outside(order, inner, by_output))
    return outer


def _outside(order: exp.Order, inner: exp.Select, by_output: dict[str, exp.Expr]) -> exp.Order:
    """Return the same order over columns that the inner query gets for it."""
    copy = order.copy()
    for number, term in enumerate(copy.expressions, 1):
        name = f"__pgt_order_{number}"
        inner.append("expressions", exp.alias_(_meant(term.this, by_output), name, quoted=True))
        term.set("this", exp.column(name, table="__pgt_d", quoted=True))
    return copy


def _meant(key: exp.Expr, by_output: dict[str, exp.Expr]) -> exp.Expr:
    """Return the expression that an output name in DISTINCT ON or ORDER BY stands for."""
    bare = unparen(key)
    if isinstance(bare, exp.Column) and not bare.table and bare.name in by_output:
        return by_output[bare.name].copy()
    return key.copy()


def _meant_order(order: exp.Order, by_output: dict[str, exp.Expr]) -> exp.Order:
    copy = order.copy()
    for term in copy.expressions:
        term.set("this", _meant(term.this, by_output))
    return copy
