"""Subqueries become joins where a join says the same; `operators.dependent` differentiates all others.

WHERE EXISTS (SELECT … WHERE r.k = l.k)         semi-join; NOT EXISTS: anti-join
WHERE x IN (SELECT y …)                          semi-join; NOT IN only where neither side can be NULL
(SELECT sum(y) FROM r WHERE r.k = l.k)           left join with r grouped by k; a COUNT of nothing is 0
(SELECT max(y) FROM r)                           cross join with the one row
"""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import NAMES, ORDERED_SETS, aggregate_calls, call_name
from airflow_provider_pgtrickle.engine.dvm.expressions import (
    ROW,
    column,
    columns_of,
    conjunction,
    conjuncts,
    equality,
    has_subquery,
    is_row_column,
    plain_column,
    returns_set,
    rewrite,
    taken_out,
    unparen,
)
from airflow_provider_pgtrickle.engine.dvm.frontend import from_items
from airflow_provider_pgtrickle.engine.dvm.frontend.bind import bind
from airflow_provider_pgtrickle.engine.dvm.frontend.builder import Builder
from airflow_provider_pgtrickle.engine.dvm.frontend.scope import Scope
from airflow_provider_pgtrickle.engine.dvm.node import Node
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.inner_join import InnerJoin
from airflow_provider_pgtrickle.engine.dvm.operators.once import Once
from airflow_provider_pgtrickle.engine.dvm.operators.outer_join import OuterJoin
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.semi_join import SemiJoin
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused

_NULL_OVER_NOTHING = NAMES - (ORDERED_SETS - {"mode", "percentile_cont", "percentile_disc"}) - {"count", "regr_count"}


def semi_join(builder: Builder, node: Node, term: exp.Expr) -> Node | None:
    """Return the rows of `node` for which a term of WHERE is true, as a semi- or anti-join.

    None where the term can't be written as such a join.
    """
    member, kind = unparen(term), "SEMI"
    if isinstance(member, exp.Not):
        member, kind = unparen(member.this), "ANTI"
    try:
        if isinstance(member, exp.Exists):
            found = _exists(builder, member.this)
        elif isinstance(member, exp.In) and member.args.get("query") and not has_subquery(member.this):
            found = _membership(builder, node, member, needs_not_null=kind == "ANTI")
        else:
            return None
    except Refused:
        return None
    if found is None:
        return None
    right, terms = found
    if any(not columns_of(t) <= {*node.names, *right.names} for t in terms):
        return None
    return SemiJoin(kind, node, right, conjunction(terms))


def _block(query: exp.Expr) -> exp.Select | None:
    """Return a query that is a plain block, with nothing above its rows but a list; None for any other."""
    while isinstance(query, exp.Subquery):
        query = query.this
    if not isinstance(query, exp.Select):
        return None
    clauses = ("with_", "limit", "offset", "group", "having", "windows")
    return None if any(query.args.get(c) for c in clauses) else query


def _exists(builder: Builder, query: exp.Expr) -> tuple[Node, list[exp.Expr]] | None:
    block = _block(query)
    if block is None or any(next(aggregate_calls(i, builder.own_aggregates), None) for i in block.expressions):
        return None
    if any(returns_set(i) for i in block.expressions):
        return None
    rows = _rows(builder, block)
    return (rows[0], rows[1]) if rows else None


def _membership(
    builder: Builder, node: Node, member: exp.In, needs_not_null: bool
) -> tuple[Node, list[exp.Expr]] | None:
    query = member.args["query"]
    members = member.this.expressions if isinstance(member.this, exp.Tuple) else [member.this]
    block = _block(query)
    plain = block is not None and not any(
        next(aggregate_calls(i, builder.own_aggregates), None) or i.find(exp.Window) or returns_set(i)
        for i in block.expressions
    )
    terms: list[exp.Expr]
    if plain and block is not None:
        rows = _rows(builder, block)
        if rows is None:
            return None
        right, terms, scope = rows
        outputs = [i.this if isinstance(i, exp.Alias) else i for i in block.expressions]
        if any(has_subquery(o) for o in outputs):
            return None
        values = [bind(o, scope) for o in outputs]
    else:
        if _reads_row(query):
            return None
        right, _ = builder.query(query, Scope())
        terms, values = [], [column(n) for n in right.names]
    if len(values) != len(members):
        return None
    if needs_not_null and not all(
        _not_null(node, unparen(m)) and _not_null(right, v) for m, v in zip(members, values, strict=True)
    ):
        return None
    equalities = [exp.EQ(this=unparen(m).copy(), expression=v) for m, v in zip(members, values, strict=True)]
    return right, [*terms, *equalities]


def _not_null(node: Node, expression: exp.Expr) -> bool:
    name = plain_column(expression)
    return name is not None and name in node.names and node.column(name).not_null


def _reads_row(expression: exp.Expr) -> bool:
    return any(c.table == ROW for c in expression.find_all(exp.Column))


def _rows(builder: Builder, block: exp.Select) -> tuple[Node, list[exp.Expr], Scope] | None:
    """Return the block's rows without the terms that tie it to the outer row, these terms, and the block's scope."""
    clauses = [c for c in (block.args.get("from_"), *(block.args.get("joins") or [])) if c]
    if not clauses or any(_reads_row(c) for c in clauses):
        return None
    scope = Scope()
    group = from_items.build(builder, block, scope)
    where = block.args.get("where")
    terms = conjuncts(where.this) if where else []
    tied = [t for t in terms if _reads_row(t)]
    if any(has_subquery(t) for t in tied):
        return None
    own = [bind(t, scope) for t in terms if not _reads_row(t)]
    plain = [t for t in (*group.terms, *own) if not has_subquery(t)]
    node = from_items.combine(list(group.relations), plain)
    node = builder.filtered(node, scope, [t for t in (*group.terms, *own) if has_subquery(t)])
    return node, [bind(t, scope) for t in tied], scope


# -- scalar subqueries -----------------------------------------------------------------------------


def join_scalars(builder: Builder, node: Node, expression: exp.Expr) -> tuple[Node, exp.Expr]:
    """Join the node with the aggregates that scalar subqueries compute; return it, and the expression over it."""
    values: dict[int, exp.Expr] = {}
    for subquery in _scalars(expression):
        try:
            joined = _joined(builder, node, subquery)
        except Refused:
            joined = None
        if joined is not None:
            node, values[id(subquery)] = joined
    if not values:
        return node, expression
    return node, _replace(expression, values)


def _scalars(expression: exp.Expr) -> list[exp.Subquery]:
    found: list[exp.Subquery] = []
    stack = [expression]
    while stack:
        part = stack.pop()
        if isinstance(part, exp.Subquery):
            found.append(part)
        elif isinstance(part, (exp.Exists, exp.Any, exp.All, exp.Array, exp.Select, exp.SetOperation)):
            continue
        elif isinstance(part, exp.In) and part.args.get("query"):
            stack.append(part.this)
        elif not isinstance(part, (exp.Window, exp.Case)) or not has_subquery(part):
            stack.extend(part.iter_expressions())
    return found


def _replace(expression: exp.Expr, values: dict[int, exp.Expr]) -> exp.Expr:
    wrapper = exp.Paren(this=expression)
    for subquery in _scalars(expression):
        if id(subquery) in values:
            subquery.replace(exp.Paren(this=values[id(subquery)]))
    return taken_out(wrapper)


def _joined(builder: Builder, node: Node, subquery: exp.Subquery) -> tuple[Node, exp.Expr] | None:
    block = _block(subquery)
    if block is None or block.args.get("distinct") or len(block.expressions) != 1:
        return None
    item = block.expressions[0]
    item = item.this if isinstance(item, exp.Alias) else item
    calls = list(aggregate_calls(item, builder.own_aggregates))
    if not calls or _reads_row(item) or has_subquery(item) or item.find(exp.Window):
        return None
    names = {id(c): call_name(_bare(c)) for c in calls}
    if any(n not in _NULL_OVER_NOTHING and n not in ("count", "regr_count") for n in names.values()):
        return None
    rows = _rows(builder, block)
    if rows is None:
        return None
    core, tied, scope = rows
    ties = [_tie(t, core) for t in tied]
    if any(t is None for t in ties):
        return None
    keys = [(builder.name("tie"), inner) for _, inner in (t for t in ties if t is not None)]
    if keys:
        core = Project(core, tuple((n, column(n)) for n in core.names) + tuple(keys))
    aggregates = {builder.name("agg"): bind(c, scope) for c in calls}
    grouped = Aggregate(core, tuple(n for n, _ in keys), tuple(aggregates.items()))
    value = _value(item, calls, list(aggregates), names, tied=bool(keys))
    if not keys:
        return InnerJoin((node, Once(grouped))), value
    terms = [exp.EQ(this=outer.copy(), expression=column(n)) for (outer, _), (n, _) in zip(ties, keys, strict=True)]  # type: ignore[misc]
    return OuterJoin("LEFT", node, grouped, conjunction(terms)), value


def _bare(call: exp.Expr) -> exp.Expr:
    while isinstance(call, (exp.Filter, exp.WithinGroup, exp.Paren)):
        call = call.this
    return call


def _tie(term: exp.Expr, core: Node) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the (outer, inner) sides of an equality that ties the subquery to the outer row."""
    sides = equality(term)
    inside = set(core.names)
    for outer, inner in (sides, sides[::-1]) if sides else ():
        if columns_of(inner) and columns_of(inner) <= inside and columns_of(outer) and not columns_of(outer) & inside:
            return outer, inner
    return None


def _value(item: exp.Expr, calls: list[exp.Expr], columns: list[str], names: dict[int, str], tied: bool) -> exp.Expr:
    """Return the item over the aggregate's columns; a count that found no group is 0."""
    by_call = {call: (name, names[id(call)]) for call, name in zip(calls, columns, strict=True)}

    def change(part: exp.Expr) -> exp.Expr | None:
        if is_row_column(part) or part not in by_call:
            return None
        name, function = by_call[part]
        if tied and function in ("count", "regr_count"):
            return exp.Coalesce(this=column(name), expressions=[exp.Literal.number(0)])
        return column(name)

    return rewrite(item, change)
