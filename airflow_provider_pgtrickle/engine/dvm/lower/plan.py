"""A lowered plan is data: the rows that PostgreSQL hands over, and what Spark computes from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from airflow_provider_pgtrickle.engine.dvm.node import Node
from airflow_provider_pgtrickle.engine.dvm.operators.clocked import Clocked
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from airflow_provider_pgtrickle.engine.dvm.schema import Source

Describe = Callable[[str], Sequence[tuple[str, str]]]
"""A function that returns the names and types of a PostgreSQL statement's columns."""
Slices = Callable[[Source], Sequence[str]]
"""A function that returns WHERE fragments that divide a source's rows; there are none for a small source."""


@dataclass(frozen=True)
class LeafPlan:
    """One read: PostgreSQL statements whose rows Spark gets as text and casts."""

    name: str
    statements: tuple[str, ...]
    """The statements whose bag union is the leaf; each of them is one parallel read."""
    columns: tuple[tuple[str, str], ...]
    """(column, the Spark type to which its text is cast)."""


@dataclass(frozen=True)
class SparkPlan:
    leaves: tuple[LeafPlan, ...]
    views: tuple[tuple[str, str], ...]
    """(name, Spark SQL) of the subqueries that are read more than once, in order."""
    sql: str
    """The Spark SQL that yields `__pgt_w, __pgt_key` and the storage columns as text."""
    late: tuple[tuple[str, str], ...] = ()
    """(storage column, PostgreSQL expression over the others), which is computed on the stage for incoming rows."""
    reads_twice: bool = False
    """Whether a leaf, or a shared subquery, is used more than once."""

    @property
    def pays(self) -> bool:
        """Whether Spark does more than read a single statement in one piece."""
        return len(self.leaves) > 1 or any(len(leaf.statements) > 1 for leaf in self.leaves)

    def __str__(self) -> str:
        lines = [f"leaf {leaf.name} ({len(leaf.statements)} reads):\n  {leaf.statements[0]}" for leaf in self.leaves]
        lines += [f"view {name}:\n  {text}" for name, text in self.views]
        lines.append(f"spark:\n  {self.sql}")
        lines += [f"late {name} = {text}" for name, text in self.late]
        return "\n".join(lines)


def is_single(node: Node) -> bool:
    """Whether a subtree reads one relation row by row, so that all of it belongs in that relation's statement."""
    while node.row_wise or isinstance(node, Clocked):
        (node,) = node.inputs
    return isinstance(node, Scan)


def row_wise_scan(node: Node) -> Scan | None:
    """Return the plain scan below a chain of row-wise nodes; None where something else stands there."""
    while node.row_wise or isinstance(node, Clocked):
        (node,) = node.inputs
    return node if isinstance(node, Scan) and node.source.kind == "TABLE" else None
