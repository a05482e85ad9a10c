"""A LIMIT that can't leave a row out is dropped, because the algebra has no rule for LIMIT."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import aggregate_calls
from airflow_provider_pgtrickle.engine.dvm.expressions import (
    SOURCE_META,
    conjuncts,
    equality,
    has_subquery,
    returns_set,
    unparen,
)
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import output_names
from airflow_provider_pgtrickle.engine.dvm.schema import Schema, Source


def drop_limit(query: exp.Query, schema: Schema) -> exp.Query:
    """
    SELECT a FROM t LIMIT ALL OFFSET 0             →  SELECT a FROM t
    EXISTS (SELECT 1 FROM t LIMIT 1)               →  EXISTS (SELECT 1 FROM t)
    (SELECT a FROM t WHERE t.id = x.id LIMIT 1)    →  (SELECT a FROM t WHERE t.id = x.id), id a key of t
    SELECT count(*) FROM t LIMIT 1                 →  SELECT count(*) FROM t
    SELECT a FROM t LIMIT 0                        →  SELECT a FROM (SELECT a FROM t) WHERE false
    SELECT count(*) FROM t OFFSET 1                →  the same: there is no second row
    """
    sources = schema.by_key
    for node in list(query.find_all(exp.Select, exp.SetOperation, exp.Subquery))[::-1]:
        if not is_bounded(node):
            node.set("limit", None)
            node.set("offset", None)
        elif _takes_one(node) and (isinstance(node.parent, exp.Exists) or _has_one_row(node, sources, schema)):
            node.set("limit", None)
        elif isinstance(node, exp.Query) and (
            _takes_none(node) or (_passes_one(node) and _has_one_row(node, sources, schema))
        ):
            empty = _nothing_of(node)
            if node is query:
                return empty
            node.replace(empty)
    return query


def _nothing_of(query: exp.Query) -> exp.Query:
    """Return a query that has the same columns and no rows."""
    outputs = output_names(query)
    inner = query.copy()
    for clause in ("limit", "offset", "order"):
        inner.set(clause, None)
    columns = [f"c{n}" for n in range(1, len(outputs) + 1)]
    alias = exp.TableAlias(
        this=exp.to_identifier("__pgt_l", quoted=True), columns=[exp.to_identifier(c, quoted=True) for c in columns]
    )
    items = [
        exp.alias_(exp.column(c, table="__pgt_l", quoted=True), o, quoted=True)
        for c, o in zip(columns, outputs, strict=True)
    ]
    empty = exp.Select(
        expressions=items,
        from_=exp.From(this=exp.Subquery(this=inner, alias=alias)),
        where=exp.Where(this=exp.false()),
    )
    return exp.Subquery(this=empty, alias=query.args.get("alias")) if isinstance(query, exp.Subquery) else empty


def is_bounded(query: exp.Expr) -> bool:
    """Whether LIMIT or OFFSET can leave rows out."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    return bool(limit and not _is_all(limit)) or bool(offset and number_of(offset) != 0)


def shows_constants(query: exp.Expr) -> bool:
    """Whether all rows of a block look alike, so that it doesn't matter which of them LIMIT keeps."""
    if not isinstance(query, exp.Select) or query.args.get("distinct"):
        return False
    return not any(i.find(exp.Column, exp.Star) or has_subquery(i) or returns_set(i) for i in query.expressions)


def number_of(clause: exp.Expr) -> int | None:
    """Return the constant number of a LIMIT, FETCH or OFFSET clause; None where it is no constant."""
    found = _counted(clause)
    return int(found.name) if isinstance(found, exp.Literal) and found.name.isdigit() else None


def _takes_one(query: exp.Expr) -> bool:
    """Whether a bounded query keeps at least one row if there are any."""
    return not query.args.get("offset") and (number_of(query.args["limit"]) or 0) >= 1


def _takes_none(query: exp.Expr) -> bool:
    limit = query.args.get("limit")
    return limit is not None and number_of(limit) == 0


def _passes_one(query: exp.Expr) -> bool:
    """Whether OFFSET skips at least one row."""
    offset = query.args.get("offset")
    return offset is not None and (number_of(offset) or 0) >= 1


def _is_all(limit: exp.Expr) -> bool:
    count = _counted(limit)
    return isinstance(count, exp.Null) or (isinstance(count, exp.Var) and count.name.upper() == "ALL")


def _counted(clause: exp.Expr) -> exp.Expr | None:
    count = clause.args.get("count") if isinstance(clause, exp.Fetch) else clause.expression
    while isinstance(count, (exp.Paren, exp.Cast)):
        count = count.this
    return count if isinstance(count, exp.Expr) else None


def _has_one_row(query: exp.Expr, sources: dict[str, Source], schema: Schema) -> bool:
    """Whether a block has at most one row: it is one group, has no FROM, or looks up one table's row by a key."""
    if not isinstance(query, exp.Select) or any(returns_set(i) for i in query.expressions):
        return False
    calls = (c for i in query.expressions for c in aggregate_calls(i, schema.aggregates))
    if not query.args.get("group") and (query.args.get("having") or next(calls, None) is not None):
        return True
    if not query.args.get("from_"):
        return True
    if query.args.get("joins"):
        return False
    if query.args.get("group"):
        return False
    table, where = query.args["from_"].this, query.args.get("where")
    if not isinstance(table, exp.Table) or SOURCE_META not in table.meta or not where:
        return False
    if table.args.get("joins") or (table.args.get("alias") and table.args["alias"].args.get("columns")):
        return False
    source, alias = sources[table.meta[SOURCE_META]], table.alias_or_name
    fixed = {name for term in conjuncts(where.this) for name in _fixed(term, alias)}
    # Two local times may be the same instant, so two keys may equal one time of another type: times fix no row.
    fixed -= {c.name for c in source.columns if c.type.startswith(("date", "time"))}
    return any(key and set(key) <= fixed for key in (source.primary_key, *source.unique_keys))


def _fixed(term: exp.Expr, alias: str) -> list[str]:
    """Return the columns of `alias` that a term equates with an expression over no column of `alias`."""
    sides = equality(term)
    if sides is None or has_subquery(term) or term.find(exp.Collate):
        return []
    return [
        own.name
        for own, other in (sides, sides[::-1])
        if isinstance(own, exp.Column)
        # PostgreSQL prints columns of a query's only table without the table's name.
        and own.table in ("", alias)
        and all(c.table not in ("", alias) for c in unparen(other).find_all(exp.Column))
    ]
