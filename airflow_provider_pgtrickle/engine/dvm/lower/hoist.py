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
    """The plan with every expression that can be computed below a join computed there."""
    moved_parts = 0

    def down(child: Node, items: tuple[Item, ...]) -> tuple[Node, tuple[Item, ...]]:
        nonlocal moved_parts
        result = []
        for name, expression in items:
            for part in _candidates(expression):
                name_of_part = f"__pgt_x_{moved_parts + 1}" if moved_parts else "__pgt_x"
                moved = child.computing((name_of_part, part))
                if moved is not None:
                    moved_parts += 1
                    child, expression = moved, _swap(expression, part, column(name_of_part))
            result.append((name, expression))
        return child, tuple(result)

    return rewritten(root, lambda _, fresh: fresh.hoisted(down))


def _candidates(expression: exp.Expr) -> list[exp.Expr]:
    """The largest parts without an aggregate that compute something."""
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


def _swap(expression: exp.Expr, part: exp.Expr, by: exp.Expr) -> exp.Expr:
    return rewrite(expression, lambda node: by.copy() if node == part else None)
