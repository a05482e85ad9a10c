"""reached(ΔB, S) = one row if a row of ΔB sorts before the last of the stored rows S or ties with it, or if S has fewer
than n rows; otherwise none. A query with ORDER BY and LIMIT n over B is computed anew only if its rows are reached.

S is an ordered window of B⁰. If all of ΔB sorts after it, B¹ and B⁰ are the same up to the window's end,
so S is the window of B¹, too. PostgreSQL does the sorting, by the query's own terms; a row that ties with the
last one reaches. ΔB need not be netted, because a superfluous row only makes the window reached more often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import columns_of, render
from airflow_provider_pgtrickle.engine.dvm.node import Column, Node
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter


@dataclass(frozen=True)
class Bounds:
    """ORDER BY and LIMIT, with the relation that they bound."""

    body: Node
    """The relation. Its columns have the names of the stored ones."""
    order: tuple[exp.Expr, ...]
    """Terms over the relation's columns."""
    limit: int


@dataclass(frozen=True, eq=False)
class Reached(Node):
    """Whether a change can reach a full window of ordered rows."""

    change: Node
    stored: Node
    order: tuple[exp.Expr, ...]
    limit: int

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.change, self.stored)

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        change, stored = inputs
        return replace(self, change=change, stored=stored)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("reached", "integer", True),)

    @property
    def weighted(self) -> bool:
        return False

    def select(self, e: Emitter) -> str:
        names = sorted(set().union(*(columns_of(term) for term in self.order)))
        rows, ranked = e.alias(), e.alias()
        both = " UNION ALL ".join(
            self._side(e, node, names, is_stored) for node, is_stored in ((self.stored, True), (self.change, False))
        )
        order = ", ".join(e.expression(term, rows) for term in self.order)
        stored, place = f"{ranked}.{e.name('__pgt_stored')}", f"{ranked}.{e.name('__pgt_place')}"
        return (
            f"SELECT 1 AS {e.name('reached')} FROM ("
            f"SELECT {rows}.{e.name('__pgt_stored')}, rank() OVER (ORDER BY {order}) AS {e.name('__pgt_place')} "
            f"FROM ({both}) AS {rows}) AS {ranked} "
            f"HAVING count(*) FILTER (WHERE NOT {stored}) > 0 AND (count(*) FILTER (WHERE {stored}) < {self.limit} "
            f"OR min({place}) FILTER (WHERE NOT {stored}) <= max({place}) FILTER (WHERE {stored}))"
        )

    def _side(self, e: Emitter, node: Node, names: Sequence[str], is_stored: bool) -> str:
        rows = replace(e.rows(node), weight=None)
        mark = f"{'true' if is_stored else 'false'} AS {e.name('__pgt_stored')}"
        return e.select(rows, [mark, *e.listed(rows, names)])

    def label(self) -> str:
        return f"reached: by [{', '.join(render(t) for t in self.order)}], {self.limit} rows"
