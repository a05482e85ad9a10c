"""Expressions over one relation's columns move down to that relation, where PostgreSQL computes them.

γ[sum(l.price * (1 - l.discount))](l ⋈ o)  →  γ[sum(x)](π[…, l.price * (1 - l.discount) AS x](l) ⋈ o)
"""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import is_aggregate
from airflow_provider_pgtrickle.engine.dvm.expressions import (
    column,
    columns_of,
    has_subquery,
    is_row_column,
    rewrite,
    unparen,
)
from airflow_provider_pgtrickle.engine.dvm.node import Item, Node, rewritten


def hoist(root: Node) -> Node:
    """Return the plan with every expression that can be computed below a join computed there."""
    hoisted = 0

    def down(child: Node, items: tuple[Item, ...]) -> tuple[Node, tuple[Item, ...]]:
        nonlocal hoisted
        result = []
        for name, expression in items:
            for inner in _candidates(expression):
                inner_name = f"__pgt_x_{hoisted + 1}" if hoisted else "__pgt_x"
                moved = child.computing((inner_name, inner))
                if moved is not None:
                    hoisted += 1
                    child, expression = moved, _swap(expression, inner, column(inner_name))
            result.append((name, expression))
        return child, tuple(result)

    return rewritten(root, lambda _, fresh: fresh.hoisted(down))


def _candidates(expression: exp.Expr) -> list[exp.Expr]:
    """Return the largest subexpressions that compute something and hold no aggregate."""
    found: list[exp.Expr] = []
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, (exp.Select, exp.SetOperation, exp.Window, exp.Where, exp.Order)):
            if isinstance(node, exp.Where):
                stack.append(node.this)
            continue
        wraps = isinstance(node, (exp.Filter, exp.WithinGroup, exp.Distinct, exp.Paren)) or is_aggregate(node)
        if wraps or next((x for x in node.walk() if x is not node and is_aggregate(x)), None) is not None:
            stack.extend(node.iter_expressions())
        elif not is_row_column(unparen(node)) and columns_of(node) and not has_subquery(node):
            found.append(node)
    return found


def _swap(expression: exp.Expr, inner: exp.Expr, by: exp.Expr) -> exp.Expr:
    return rewrite(expression, lambda node: by.copy() if node == inner else None)
