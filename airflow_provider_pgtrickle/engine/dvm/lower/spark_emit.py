"""Rendering the upper part of a plan as Spark SQL over its leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.emit import Emitter, placed
from airflow_provider_pgtrickle.engine.dvm.expressions import ROW, WEIGHT, rewrite
from airflow_provider_pgtrickle.engine.dvm.node import Node
from airflow_provider_pgtrickle.engine.dvm.rows import Place

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict


def quote(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql("spark")


class SparkEmitter(Emitter):
    """The nodes' own SELECTs, with Spark's spelling of names and expressions."""

    weight = quote(WEIGHT)
    has_indexes = False

    def __init__(self, leaves: Mapping[int, str], closed: Mapping[int, exp.Expr], prefix: str) -> None:
        super().__init__(None, {}, {})  # type: ignore[arg-type]
        self._leaves = leaves
        self._closed = closed
        """Each expression of a placed node, by identity, as Spark is to compute it."""
        self._prefix = prefix

    def name(self, name: str) -> str:
        return quote(name)

    def columns(self, node: Node, alias: str, weight: bool = True) -> str:
        names = node.all_names if weight else node.names
        return ", ".join(f"{alias}.{quote(n)}" for n in names)

    def named(self, node: Node) -> str | None:
        return self._leaves.get(id(node)) or super().named(node)

    def is_distinct(self, is_delta: bool) -> bool:
        return True

    def body(self, node: Node) -> str:
        leaf = self._leaves.get(id(node))
        return f"SELECT * FROM {leaf}" if leaf is not None else node.select(self)

    def shared_name(self, number: int, node: Node) -> str:
        return f"{self._prefix}_shared_{number}"

    def expression(self, expression: exp.Expr, alias: str | Mapping[str, Place], is_old: bool = False) -> str:
        def change(node: exp.Expr) -> exp.Expr | None:
            if isinstance(node, exp.Column) and node.table == ROW:
                return placed(node, alias)
            return None

        return rewrite(self._closed[id(expression)], change).sql("spark")

    def semi_join(self, node: Restrict) -> str:
        source, alias = self.from_item(node.child)
        relation, key = self.from_item(node.keys.relation)
        same = "<=>" if node.keys.null_matches else "="
        terms = " AND ".join(f"{alias}.{quote(t)} {same} {key}.{quote(k)}" for t, k in node.keys.pairs)
        return f"SELECT {self.columns(node.child, alias)} FROM {source} LEFT SEMI JOIN {relation} ON {terms}"

    def views(self, root: Node) -> tuple[tuple[tuple[str, str], ...], str]:
        """The shared parts in order, and the root's SELECT."""
        self._count(root)
        body = self.body(root)
        return tuple((n, t.removeprefix("MATERIALIZED (")[:-1]) for n, t in self._ctes.items()), body
