"""A subquery is analysed for what it reads, and how it is tied to the row around it (see `operators.dependent`)."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import aggregate_calls
from airflow_provider_pgtrickle.engine.dvm.expressions import (
    ROW,
    SOURCE_META,
    conjuncts,
    equality,
    has_subquery,
    plain_column,
    subqueries,
    tables_of,
    unparen,
)
from airflow_provider_pgtrickle.engine.dvm.frontend import from_items
from airflow_provider_pgtrickle.engine.dvm.frontend.bind import bind
from airflow_provider_pgtrickle.engine.dvm.frontend.builder import Builder
from airflow_provider_pgtrickle.engine.dvm.frontend.scope import Scope
from airflow_provider_pgtrickle.engine.dvm.frontend.subquery_order import make_total
from airflow_provider_pgtrickle.engine.dvm.node import Node
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Subquery
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused


def of_predicate(builder: Builder, bound: exp.Expr, scope: Scope, row: Node) -> tuple[Subquery, ...]:
    """Return every subquery inside a term of WHERE, which keeps a row only if the term is true.

    WHERE treats false and NULL alike, so `x IN (query)` depends only on the query's rows that equal x. As a value it
    depends on others, too: one NULL in the query makes it NULL for every x that the query doesn't hold.
    """
    return _found_in(builder, bound, scope, row, only_true=True)


def of_expression(builder: Builder, bound: exp.Expr, scope: Scope, row: Node) -> tuple[Subquery, ...]:
    """Return every subquery inside an expression that is computed for each row."""
    return _found_in(builder, bound, scope, row, only_true=False)


def _found_in(builder: Builder, bound: exp.Expr, scope: Scope, row: Node, *, only_true: bool) -> tuple[Subquery, ...]:
    found: list[Subquery] = []
    for term in conjuncts(bound):
        member = unparen(term)
        if isinstance(member, exp.In) and member.args.get("query") and not has_subquery(member.this):
            value = unparen(member.this)
            found += analyse(builder, member.args["query"], scope, row, value, needs_not_null=not only_true)
        elif _is_not_in(member) and not has_subquery(unparen(member.this).this):
            inner = unparen(member.this)
            found += analyse(builder, inner.args["query"], scope, row, unparen(inner.this), needs_not_null=True)
        else:
            for query in list(subqueries(member)):
                found += analyse(builder, query, scope, row)
    return tuple(found)


def _is_not_in(term: exp.Expr) -> bool:
    inner = unparen(term.this) if isinstance(term, exp.Not) else None
    return isinstance(inner, exp.In) and bool(inner.args.get("query"))


def analyse(
    builder: Builder,
    query: exp.Expr,
    scope: Scope,
    row: Node,
    member: exp.Expr | None = None,
    needs_not_null: bool = False,
) -> tuple[Subquery, ...]:
    """Return what each branch of a bound subquery reads and its ties; `member` is the left side of `IN (query)`."""
    while isinstance(query, exp.Subquery):
        query = query.this
    make_total(builder, query)
    builder.note_reads(query)
    sources = tables_of(query)
    if not sources:
        return ()
    if isinstance(query, exp.SetOperation) and not query.args.get("with_"):
        left = analyse(builder, query.this, scope, row, member, needs_not_null)
        return left + analyse(builder, query.expression, scope, row, member, needs_not_null)
    unknown = (Subquery(sources, None),)
    if not isinstance(query, exp.Select) or query.args.get("with_"):
        return unknown
    try:
        return _tied(builder, query, row, member, needs_not_null) or unknown
    except Refused:
        return unknown


def _count(expressions: list[exp.Expr]) -> int:
    return sum(1 for e in expressions for t in e.find_all(exp.Table) if SOURCE_META in t.meta)


def _tied(
    builder: Builder, query: exp.Select, row: Node, member: exp.Expr | None, needs_not_null: bool
) -> tuple[Subquery, ...] | None:
    clauses = [c for c in (query.args.get("from_"), *(query.args.get("joins") or [])) if c]
    if any(_reads_row(c) for c in clauses):
        return None
    inner_scope = Scope()
    group = from_items.build(builder, query, inner_scope)
    kept: list[exp.Expr] = []
    ties: list[tuple[exp.Expr, exp.Expr]] = []
    where = query.args.get("where")
    terms = conjuncts(where.this) if where else []
    for term in terms:
        if not _reads_row(term):
            kept.append(term)
            continue
        tie = _tie(term, inner_scope)
        if tie is not None:
            ties.append(tie)
    plain = [t for t in kept if not has_subquery(t)]
    if _count([query]) != _count([*clauses, *plain]):
        return None
    core = from_items.combine(list(group.relations), [*group.terms, *(bind(t, inner_scope) for t in plain)])
    if member is not None:
        ties += _membership(builder, query, row, core, inner_scope, member, needs_not_null)
    return (Subquery(core.sources, core, tuple(ties)),)


def _reads_row(expression: exp.Expr) -> bool:
    return any(c.table == ROW for c in expression.find_all(exp.Column))


def _tie(term: exp.Expr, scope: Scope) -> tuple[exp.Expr, exp.Expr] | None:
    sides = equality(term)
    if sides is None or has_subquery(term):
        return None
    for outer, inner in (sides, sides[::-1]):
        all_outer = all(c.table == ROW for c in outer.find_all(exp.Column)) and _reads_row(outer)
        if all_outer and not _reads_row(inner) and inner.find(exp.Column):
            return outer.copy(), bind(inner, scope)
    return None


def _membership(
    builder: Builder,
    query: exp.Select,
    row: Node,
    core: Node,
    scope: Scope,
    member: exp.Expr,
    needs_not_null: bool,
) -> list[tuple[exp.Expr, exp.Expr]]:
    """Return the ties of a membership: `x IN (SELECT y …)` ties x to y, `x NOT IN` only where neither can be NULL."""
    outputs = [i.this if isinstance(i, exp.Alias) else i for i in query.expressions]
    if query.args.get("limit") or any(next(aggregate_calls(o, builder.own_aggregates), None) for o in outputs):
        return []
    if any(o.find(exp.Window) for o in outputs):
        return []
    members = member.expressions if isinstance(member, exp.Tuple) else [member]
    ties = []
    for outer, output in zip(members, outputs, strict=False):
        if _reads_row(output) or has_subquery(output) or not output.find(exp.Column):
            continue
        inner = bind(output, scope)
        if needs_not_null:
            names = plain_column(outer), plain_column(inner)
            if None in names or not row.column(str(names[0])).not_null or not core.column(str(names[1])).not_null:
                continue
        ties.append((outer.copy(), inner))
    return ties
