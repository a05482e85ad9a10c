"""Columns nobody reads are not captured, read or carried."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import columns_of, returns_set
from airflow_provider_pgtrickle.engine.dvm.node import Node, walk
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Dependent
from airflow_provider_pgtrickle.engine.dvm.operators.distinct import Distinct
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.inner_join import InnerJoin
from airflow_provider_pgtrickle.engine.dvm.operators.lateral import Lateral
from airflow_provider_pgtrickle.engine.dvm.operators.outer_join import OuterJoin
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.recursion import Recursion
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from airflow_provider_pgtrickle.engine.dvm.operators.semi_join import SemiJoin
from airflow_provider_pgtrickle.engine.dvm.operators.set_operation import SetOperation
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.operators.window import Window


def prune(root: Node) -> Node:
    """The tree with scans and projections cut to what is read above them."""
    needed = set(root.names)
    size = -1
    while size != len(needed):
        size = len(needed)
        for node in walk(root):
            needed |= _reads(node, needed)
    return _Cutter(needed).cut(root)


def _reads(node: Node, needed: set[str]) -> set[str]:
    """Columns of its inputs that a node reads by itself."""
    found: set[str] = set()
    if isinstance(node, Project):
        for name, expression in node.items:
            if name in needed or returns_set(expression):
                found |= columns_of(expression) | {name}
    elif isinstance(node, Filter):
        found |= columns_of(node.predicate)
    elif isinstance(node, InnerJoin):
        for term in node.terms:
            found |= columns_of(term)
    elif isinstance(node, (OuterJoin, SemiJoin)):
        found |= columns_of(node.condition)
    elif isinstance(node, Aggregate):
        found |= set(node.group)
        for _, call in node.aggregates:
            found |= columns_of(call)
    elif isinstance(node, Window):
        found |= set(node.partition)
        for _, call in node.functions:
            found |= columns_of(call)
    elif isinstance(node, Lateral):
        found |= columns_of(node.item)
        found |= columns_of(node.condition) if node.condition is not None else set()
    elif isinstance(node, (UnionAll, SetOperation, Distinct, Recursion)):
        for branch in node.inputs:
            found |= set(branch.names)
    for part in node.parts if isinstance(node, Dependent) else ():
        for outer, inner in part.ties:
            found |= columns_of(outer) | columns_of(inner)
    return found


class _Cutter:
    def __init__(self, needed: set[str]) -> None:
        self._needed = needed
        self._done: dict[int, Node] = {}
        self._alive: list[Node] = []

    def cut(self, node: Node) -> Node:
        if id(node) not in self._done:
            self._alive.append(node)
            self._done[id(node)] = self._cut(node)
        return self._done[id(node)]

    def _cut(self, node: Node) -> Node:
        if isinstance(node, Scan):
            touch = node.source.primary_key
            mapping = tuple(m for m in node.mapping if m[1].name in self._needed or m[0] in touch)
            return replace(node, mapping=mapping or _narrowest(node))
        node = node.mapped(self.cut)
        if isinstance(node, Project):
            items = tuple(i for i in node.items if i[0] in self._needed)
            node = replace(node, items=items or ((node.items[0][0], exp.true()),))
        return node


def _narrowest(scan: Scan) -> tuple:  # type: ignore[type-arg]
    """A relation that is only counted still needs a column to be captured by."""
    return next(((m,) for m in scan.mapping if m[1].has_equality), scan.mapping[:1])
