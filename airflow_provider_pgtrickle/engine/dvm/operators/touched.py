"""Keys that a relation's change can reach, found without computing that change where a grouping stands in the way:

keys(Δγ(R)) ⊆ groups(ΔR)
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.differ import Differ, expression_keys
from airflow_provider_pgtrickle.engine.dvm.expressions import columns_of, returns_set, substitute
from airflow_provider_pgtrickle.engine.dvm.node import Keys, Node
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project


def touched_keys(d: Differ, relation: Node, pairs: Sequence[tuple[str, exp.Expr]]) -> Keys | None:
    """A superset of the values that expressions over Δrelation take, as keys of the target columns."""
    node, expressions = relation, [x for _, x in pairs]
    while isinstance(node, (Project, Filter)) and not node.parts:
        if isinstance(node, Project):
            items = dict(node.items)
            if any(returns_set(items[n]) for x in expressions for n in columns_of(x)):
                break
            expressions = [substitute(x, items) for x in expressions]
        node = node.child
    grouped = isinstance(node, Aggregate) and all(columns_of(x) <= set(node.group) for x in expressions)
    change = d.delta(node.inputs[0]) if grouped else None
    if change is None:
        change, expressions = d.delta(relation), [x for _, x in pairs]
    if change is None:
        return None
    return expression_keys(change, [(target, x) for (target, _), x in zip(pairs, expressions, strict=True)])
