"""Expressions over one relation's columns move down to that relation, where PostgreSQL computes them.

γ[sum(l.price * (1 - l.discount))](l ⋈ o)  →  γ[sum(x)](π[…, l.price * (1 - l.discount) AS x](l) ⋈ o)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import (
    column,
    columns_of,
    has_subquery,
    is_row_column,
    rewrite,
    unparen,
)
from airflow_provider_pgtrickle.engine.dvm.frontend.aggregates import is_aggregate
from airflow_provider_pgtrickle.engine.dvm.names import Namer
from airflow_provider_pgtrickle.engine.dvm.node import Node
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.inner_join import InnerJoin
from airflow_provider_pgtrickle.engine.dvm.operators.outer_join import OuterJoin
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project

Items = tuple[tuple[str, exp.Expr], ...]


def hoist(root: Node) -> Node:
    return _Hoist().visit(root)


class _Hoist:
    def __init__(self) -> None:
        self._done: dict[int, Node] = {}
        self._alive: list[Node] = []
        self._name = Namer()

    def visit(self, node: Node) -> Node:
        if id(node) not in self._done:
            self._alive.append(node)
            fresh = node
            inputs = [self.visit(i) for i in node.inputs]
            if any(a is not b for a, b in zip(inputs, node.inputs, strict=True)):
                fresh = rebuilt(node, inputs)
            if isinstance(fresh, Aggregate) and _is_join(fresh.child):
                child, items = self._down(fresh.child, fresh.aggregates)
                fresh = replace(fresh, child=child, aggregates=items)
            elif isinstance(fresh, Project) and not fresh.parts and _is_join(fresh.child):
                child, items = self._down(fresh.child, fresh.items)
                fresh = replace(fresh, child=child, items=items)
            self._done[id(node)] = fresh
        return self._done[id(node)]

    def _down(self, child: Node, items: Items) -> tuple[Node, Items]:
        result = []
        for name, expression in items:
            for part in _candidates(expression):
                moved = self._into(child, part)
                if moved is not None:
                    child, reference = moved
                    expression = _swap(expression, part, reference)
            result.append((name, expression))
        return child, tuple(result)

    def _into(self, node: Node, expression: exp.Expr) -> tuple[Node, exp.Expr] | None:
        """The node with the expression computed at the relation that owns its columns."""
        used = columns_of(expression)
        if isinstance(node, Filter) and not node.parts:
            below = self._into(node.child, expression)
            return (replace(node, child=below[0]), below[1]) if below else None
        if isinstance(node, InnerJoin):
            for index, relation in enumerate(node.relations):
                if used <= set(relation.names):
                    fresh, reference = self._into(relation, expression) or self._computed(relation, expression)
                    relations = list(node.relations)
                    relations[index] = fresh
                    return replace(node, relations=tuple(relations)), reference
        if isinstance(node, OuterJoin) and node.kind == "LEFT" and used <= set(node.left.names):
            fresh, reference = self._into(node.left, expression) or self._computed(node.left, expression)
            return replace(node, left=fresh), reference
        return None

    def _computed(self, relation: Node, expression: exp.Expr) -> tuple[Node, exp.Expr]:
        name = self._name("__pgt_x")
        items = tuple((n, column(n)) for n in relation.names)
        return Project(relation, (*items, (name, expression))), column(name)


def rebuilt(node: Node, inputs: Sequence[Node]) -> Node:
    """A plan node over other inputs; nodes that hold theirs elsewhere know how themselves."""
    from airflow_provider_pgtrickle.engine.dvm.operators.keys import DistinctKeys
    from airflow_provider_pgtrickle.engine.dvm.operators.once import Once
    from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
    from airflow_provider_pgtrickle.engine.dvm.operators.weigh import Expose, Weigh

    if isinstance(node, Restrict):
        return replace(node, child=inputs[0], keys=replace(node.keys, relation=inputs[1]))
    if isinstance(node, (DistinctKeys, Once, Weigh, Expose)):
        return replace(node, child=inputs[0])
    return node.with_inputs(inputs)


def _is_join(node: Node) -> bool:
    while isinstance(node, Filter) and not node.parts:
        node = node.child
    return isinstance(node, (InnerJoin, OuterJoin))


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
