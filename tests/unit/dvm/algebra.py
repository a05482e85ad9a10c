"""A plan in the letters of its docstrings, so that a test reads as the rule: `(Δa ⋈ b) + (a ⋈ Δb) − (Δa ⋈ Δb)`."""

from __future__ import annotations

from airflow_provider_pgtrickle.engine.dvm.expressions import plain_column
from airflow_provider_pgtrickle.engine.dvm.node import Differ, Node, walk
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.constant import Constant
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Dependent, Touched
from airflow_provider_pgtrickle.engine.dvm.operators.distinct import Distinct
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.inner_join import InnerJoin
from airflow_provider_pgtrickle.engine.dvm.operators.lateral import Lateral
from airflow_provider_pgtrickle.engine.dvm.operators.native import Native
from airflow_provider_pgtrickle.engine.dvm.operators.once import Once
from airflow_provider_pgtrickle.engine.dvm.operators.outer_join import OuterJoin
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.operators.scan import DeltaScan, Scan
from airflow_provider_pgtrickle.engine.dvm.operators.semi_join import SemiJoin
from airflow_provider_pgtrickle.engine.dvm.operators.set_operation import SetOperation
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import Weigh
from airflow_provider_pgtrickle.engine.dvm.operators.window import Window
from tests.unit.dvm.shop import view

_LETTERS: dict[type[Node], str] = {
    Aggregate: "γ", Distinct: "δ", Filter: "σ", Lateral: "λ", Project: "π", Touched: "touched", Window: "ω",
}  # fmt: skip
_SIGNS = {"LEFT": "⟕", "FULL": "⟗", "SEMI": "⋉", "ANTI": "▷", "INTERSECT": "∩", "EXCEPT": "∖"}


def first(query: str, kind: type[Node]) -> Node:
    """The uppermost operator of a kind in a query's tree."""
    tree = view(query).tree
    assert tree is not None
    return next(n for n in walk(tree) if isinstance(n, kind))


def change(query: str, kind: type[Node], changed: str = "1 2") -> str | None:
    """Its change when some sources changed, written down."""
    delta = Differ(changed.split()).delta(first(query, kind))
    return None if delta is None else written(delta)


def written(node: Node) -> str:
    """Old states are ⁰; x[K] is x restricted to the keys that matter; renaming and hints go unsaid."""
    if isinstance(node, Scan):
        return node.source.name + ("⁰" if node.is_old else "")
    if isinstance(node, DeltaScan):
        return "Δ" + node.scan.source.name
    if isinstance(node, Native):
        return "μ⁰" if node.is_old else "μ"
    if isinstance(node, Constant):
        return "c"
    if isinstance(node, Weigh):
        return written(node.child) if node.sign > 0 else "−" + _grouped(node.child)
    if isinstance(node, UnionAll):
        return " + ".join(map(written, node.branches)).replace("+ −", "− ")
    if isinstance(node, InnerJoin):
        return f"({' ⋈ '.join(map(_grouped, node.relations))})"
    if isinstance(node, (OuterJoin, SemiJoin, SetOperation)):
        return f"({_grouped(node.left)} {_SIGNS[node.kind]} {_grouped(node.right)})"
    if isinstance(node, Restrict):
        return f"{_grouped(node.child)}[K]" if node.exact else written(node.child)
    if isinstance(node, Once) or (isinstance(node, Project) and all(plain_column(x) for _, x in node.items)):
        return written(node.inputs[0])
    old = "⁰" if isinstance(node, Dependent) and node.parts and node.is_old else ""
    return f"{_LETTERS[type(node)]}{old}({written(node.inputs[0])})"


def _grouped(node: Node) -> str:
    while isinstance(node, (Once, Project)) and written(node) == written(node.inputs[0]):
        node = node.inputs[0]
    return f"({written(node)})" if isinstance(node, UnionAll) else written(node)
