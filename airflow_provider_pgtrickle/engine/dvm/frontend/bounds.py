"""ORDER BY … LIMIT n at the top is taken apart where the bounded rows' change tells whether it reaches the window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.budget import budget
from airflow_provider_pgtrickle.engine.dvm.calls import aggregate_calls
from airflow_provider_pgtrickle.engine.dvm.clock import clock_type
from airflow_provider_pgtrickle.engine.dvm.expressions import (
    column,
    has_subquery,
    is_row_column,
    render,
    returns_set,
    rewrite,
    unparen,
)
from airflow_provider_pgtrickle.engine.dvm.frontend.drop_limit import number_of
from airflow_provider_pgtrickle.engine.dvm.frontend.mark_sets import mark_sets
from airflow_provider_pgtrickle.engine.dvm.node import Node, descendants
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.reached import Bounds
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused
from airflow_provider_pgtrickle.engine.dvm.schema import Schema


def bounds(
    query: exp.Query, schema: Schema, outputs: tuple[str, ...], tree: Callable[[exp.Query], Node]
) -> Bounds | None:
    """Return the bounds of a TopK query; None where only recomputing it can tell what a change does to it.

    `tree` makes the operator tree of the query without its bounds.
    """
    limit = _limit(query)
    try:
        with budget():
            order = _order(mark_sets(query.copy(), schema), schema, outputs)
            if not limit or order is None:
                return None
            body = tree(_unbounded(query))
    except (Refused, RecursionError):
        return None
    # The stored rows are PostgreSQL's answer to the text, but the change is computed from the tree. Both are about the
    # same rows only if the query has exactly one right answer.
    if any(node.unsettled() is not None for node in descendants(body)):
        return None
    items = tuple((o, column(n)) for o, n in zip(outputs, body.names, strict=True))
    return Bounds(Project(body, items), order, limit)


def _limit(query: exp.Query) -> int | None:
    limit, offset = query.args["limit"], query.args.get("offset")
    if limit is None or (offset and number_of(offset) is None):
        return None
    options = limit.args.get("limit_options")
    return None if options and options.args.get("with_ties") else number_of(limit)


def _unbounded(query: exp.Query) -> exp.Query:
    """Return a copy without ORDER BY, LIMIT and OFFSET."""
    copy = query.copy()
    for clause in ("order", "limit", "offset"):
        copy.set(clause, None)
    return copy


# -- ORDER BY --------------------------------------------------------------------------------------


def _order(query: exp.Query, schema: Schema, outputs: Sequence[str]) -> tuple[exp.Expr, ...] | None:
    """Return the terms over the query's own columns; None where a term reads anything else."""
    items: dict[str, str] = {}
    if isinstance(query, exp.Select):
        for item, output in zip(query.expressions, outputs, strict=True):
            items.setdefault(render(unparen(item.unalias())), output)
    terms = []
    for term in query.args["order"].expressions:
        meant = _meant(unparen(term.this), items, outputs)
        if not _is_over_row(meant, schema):
            return None
        ordered = term.copy()
        ordered.set("this", meant)
        terms.append(ordered)
    return tuple(terms)


def _meant(key: exp.Expr, items: Mapping[str, str], outputs: Sequence[str]) -> exp.Expr:
    """Return a term over the output columns: a bare name, a bare position or a repeated item means such a column."""
    if isinstance(key, exp.Column) and not key.table and key.name in outputs:
        return column(key.name)
    if isinstance(key, exp.Literal) and not key.is_string:
        return column(outputs[int(key.name) - 1])

    def change(node: exp.Expr) -> exp.Expr | None:
        # Constants and pieces of a qualified name are no repeated items.
        if not isinstance(node, exp.Condition) or isinstance(node, exp.Literal) or isinstance(node.parent, exp.Dot):
            return None
        output = items.get(render(node))
        return column(output) if output is not None else None

    return rewrite(key, change)


def _is_over_row(term: exp.Expr, schema: Schema) -> bool:
    if has_subquery(term) or returns_set(term) or term.find(exp.Window):
        return False
    if next(aggregate_calls(term, frozenset(schema.aggregates)), None) is not None:
        return False
    if any(clock_type(node) is not None for node in term.walk()):
        return False
    return all(is_row_column(c) for c in term.find_all(exp.Column))
