"""Nodes whose rows look the same whenever, and however, PostgreSQL computes them.

Left open elsewhere: the last digits of a sum of floats, which of 1.0 and 1.00 stands for their group, rows that tie.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.exact_types import exact_type
from airflow_provider_pgtrickle.engine.dvm.expressions import plain_column, unparen
from airflow_provider_pgtrickle.engine.dvm.frontend.aggregates import call_name
from airflow_provider_pgtrickle.engine.dvm.node import Column, Node
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.constant import Constant
from airflow_provider_pgtrickle.engine.dvm.operators.distinct import Distinct
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.inner_join import InnerJoin
from airflow_provider_pgtrickle.engine.dvm.operators.outer_join import OuterJoin
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from airflow_provider_pgtrickle.engine.dvm.operators.semi_join import SemiJoin
from airflow_provider_pgtrickle.engine.dvm.operators.set_operation import SetOperation
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.types import base_type, is_its_image

ROW_WISE = (Scan, Constant, Project, Filter, InnerJoin, SemiJoin, OuterJoin, UnionAll)
GROUPING = (Distinct, SetOperation, Aggregate)
_ALWAYS = {"count", "bool_and", "bool_or", "every"}
_SUMS = {"sum", "avg"}
_EXTREMES = {"min", "max"}


def open_column(node: Node) -> Column | None:
    """A column of a grouping that may look otherwise, by whichever of its equal rows is met first, and when."""
    settled = set()
    if isinstance(node, Aggregate):
        below = {c.name: c for c in node.child.columns}
        settled = {n for n, call in node.aggregates if _is_settled(call, below)}
    return next((c for c in node.columns if c.name not in settled and not is_image(c)), None)


def is_image(held: Column) -> bool:
    return held.type is not None and is_its_image(held.type)


def _is_settled(call: exp.Expr, below: Mapping[str, Column]) -> bool:
    bare = call.this if isinstance(call, exp.Filter) else call
    name = call_name(bare)
    if name in _ALWAYS:
        return True
    if name not in _SUMS | _EXTREMES:
        return False
    if exact_type(bare.this, below) is not None:
        return True
    plain = plain_column(unparen(bare.this))
    if plain is None:
        return False
    # A numeric sum has as many digits as the longest of its terms, in whichever order they are added.
    return base_type(below[plain].type or "") == "numeric" if name in _SUMS else is_image(below[plain])
