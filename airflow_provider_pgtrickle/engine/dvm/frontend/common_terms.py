"""What every branch of an OR says is said once beside it: joins are made by it."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import equality, unparen
from airflow_provider_pgtrickle.engine.dvm.schema import Schema


def common_terms(query: exp.Query, schema: Schema) -> exp.Query:
    """
    WHERE (a = b AND p) OR (a = b AND q)  →  WHERE a = b AND ((a = b AND p) OR (a = b AND q))

    A row for which the OR isn't true is dropped in any case. PostgreSQL finds such equalities when it plans the whole
    query; in a difference the inputs would be combined before the OR is asked.
    """
    for place in list(query.find_all(exp.Where, exp.Join)):
        clause = "this" if isinstance(place, exp.Where) else "on"
        condition = place.args.get(clause)
        if condition is None or (isinstance(place, exp.Join) and place.side):
            continue
        known = list(_parts(condition, exp.And))
        found: list[exp.Expr] = []
        for term in known:
            branches = [list(_parts(branch, exp.And)) for branch in _parts(term, exp.Or)]
            if len(branches) > 1:
                shared = [t for t in branches[0] if all(t in branch for branch in branches[1:])]
                found += [t for t in shared if _is_of_columns(t) and t not in known and t not in found]
        if found:
            place.set(clause, exp.and_(*(term.copy() for term in found), condition))
    return query


def _parts(condition: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """Yield the operands of a chain of ANDs or ORs."""
    bare = unparen(condition)
    if isinstance(bare, kind):
        yield from _parts(bare.this, kind)
        yield from _parts(bare.expression, kind)
    else:
        yield bare


def _is_of_columns(term: exp.Expr) -> bool:
    sides = equality(term)
    return sides is not None and all(isinstance(side, exp.Column) for side in sides)
