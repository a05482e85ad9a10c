"""A subquery that no operator differentiates is refused, because its changes would go unnoticed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import READS_META
from airflow_provider_pgtrickle.engine.dvm.node import Node, descendants
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused


def refuse_unwatched(root: Node) -> Node:
    """Return the tree itself after checking that each table in a node's expressions is a source of that node."""
    for node in descendants(root):
        for expression in expressions_of(node):
            for table in expression.find_all(exp.Table):
                if not node.own_sources.issuperset(table.meta.get(READS_META, ())):
                    raise Refused(
                        Reason.UNSUPPORTED_SYNTAX,
                        f"a subquery over {table.name} in this place",
                        "Move it into a derived table; until then it runs FULL.",
                    )
    return root


def expressions_of(node: Node) -> Iterator[exp.Expr]:
    """Yield the expressions that a node itself holds."""
    return _expressions([getattr(node, f.name) for f in fields(node)])


def _expressions(values: object) -> Iterator[exp.Expr]:
    if isinstance(values, exp.Expr):
        yield values
    elif not isinstance(values, (str, Node)) and hasattr(values, "__iter__"):
        for value in values:
            yield from _expressions(value)
