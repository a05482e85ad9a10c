"""Equalities that all branches of an OR have in common are said once, so that joins have keys.

PostgreSQL does that by itself when it plans the plain query. A delta joins tables one after the other, and finds no
key for the first of them inside an OR.
"""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import conjunction, conjuncts, equality, render, unparen
from airflow_provider_pgtrickle.engine.dvm.schema import Schema


def common_equalities(query: exp.Query, schema: Schema) -> exp.Query:
    """
    WHERE (a.k = b.k AND p) OR (a.k = b.k AND q)  →  WHERE a.k = b.k AND (p OR q)
    """
    for clause, key in [
        *((where, "this") for where in query.find_all(exp.Where, exp.Having)),
        *((join, "on") for join in query.find_all(exp.Join)),
    ]:
        condition = clause.args.get(key)
        if condition is None:
            continue
        terms = conjuncts(condition)
        factored = [part for term in terms for part in _factored(term)]
        if len(factored) > len(terms) or any(a is not b for a, b in zip(factored, terms, strict=False)):
            clause.set(key, conjunction(factored))
    return query


def _factored(term: exp.Expr) -> list[exp.Expr]:
    """Return the terms that an OR stands for; the term itself where its branches have no equality in common."""
    branches = [conjuncts(branch) for branch in _branches(term)]
    if len(branches) < 2:
        return [term]
    common = {_text(t): t for t in branches[0] if _is_plain(t)}
    for branch in branches[1:]:
        common = {text: t for text, t in common.items() if text in {_text(other) for other in branch}}
    if not common:
        return [term]
    rest = [[t for t in branch if _text(t) not in common] for branch in branches]
    if not all(rest):
        # A branch says nothing else, so the others add nothing.
        return list(common.values())
    left: exp.Expr = exp.Paren(this=conjunction(rest[0]))
    for branch in rest[1:]:
        left = exp.Or(this=left, expression=exp.Paren(this=conjunction(branch)))
    return [*common.values(), left]


def _branches(term: exp.Expr) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    stack = [term]
    while stack:
        node = unparen(stack.pop())
        if isinstance(node, exp.Or):
            stack.extend((node.expression, node.this))
        else:
            found.append(node)
    return found


def _is_plain(term: exp.Expr) -> bool:
    """Whether the term is an equality of columns, or of a column and a constant: what each evaluation says alike."""
    sides = equality(term)
    return sides is not None and all(isinstance(side, (exp.Column, exp.Literal)) for side in sides)


def _text(term: exp.Expr) -> str:
    return render(unparen(term))
