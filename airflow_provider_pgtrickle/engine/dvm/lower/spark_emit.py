"""The Spark emitter renders the nodes above a plan's leaves as Spark SQL over these leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import ROW, WEIGHT, rewrite
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter, Place, Relation, placed


def quote(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql("spark")


class SparkEmitter(Emitter):
    """It renders the nodes' own SELECTs, with Spark's spelling of names and expressions."""

    weight = quote(WEIGHT)
    has_indexes = False

    def __init__(self, leaves: Mapping[int, str], closed: Mapping[int, exp.Expr], prefix: str) -> None:
        super().__init__()
        self._leaves = leaves
        self._closed = closed
        """The Spark form of each expression in the nodes that Spark computes, by the expression's object identity."""
        self._prefix = prefix
        self.reads: Counter[str] = Counter()
        """How often each leaf is read."""

    def name(self, name: str) -> str:
        return quote(name)

    def named(self, node: Relation) -> str | None:
        return self._leaves.get(id(node)) or super().named(node)

    def from_item(self, node: Relation) -> tuple[str, str]:
        self._note(node)
        return super().from_item(node)

    def body(self, node: Relation) -> str:
        self._note(node)
        leaf = self._leaves.get(id(node))
        return f"SELECT * FROM {leaf}" if leaf is not None else node.select(self)

    def _note(self, node: Relation) -> None:
        if (leaf := self._leaves.get(id(node))) is not None:
            self.reads[leaf] += 1

    def shared_name(self, number: int, node: Relation) -> str:
        return f"{self._prefix}_shared_{number}"

    def expression(self, expression: exp.Expr, alias: str | Mapping[str, Place], is_old: bool = False) -> str:
        def change(node: exp.Expr) -> exp.Expr | None:
            if isinstance(node, exp.Column) and node.table == ROW:
                return placed(node, alias)
            return None

        return rewrite(self._closed[id(expression)], change).sql("spark")

    def views(self, root: Relation) -> tuple[tuple[tuple[str, str], ...], str]:
        """Return the shared subqueries in order, and the root's SELECT."""
        self.count(root)
        body = self.body(root)
        return tuple((name, shared.text) for name, shared in self._shared_subqueries.items()), body
