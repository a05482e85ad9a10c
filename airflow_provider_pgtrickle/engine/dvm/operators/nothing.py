"""Δ∅ = ∅, ∅ a relation with columns and no rows. GROUPING SETS are outer-joined with it, because that gives a column
that a set leaves out NULLs of the column's own type.
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_pgtrickle.engine.dvm.node import Column, Differ, Leaf, Node
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter


@dataclass(frozen=True, eq=False)
class Nothing(Leaf):
    """An empty relation with the columns of `like` under other names. PostgreSQL reads nothing for it."""

    like: Node
    items: tuple[tuple[str, str], ...]
    """(column here, column of `like`)."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(name, self.like.column(origin).type) for name, origin in self.items)

    def select(self, e: Emitter) -> str:
        rows = e.rows(self.like).that("FALSE")
        return e.select(rows, [f"{e.column_of(rows, origin)} AS {e.name(name)}" for name, origin in self.items])

    def delta(self, d: Differ) -> None:
        return None

    def label(self) -> str:
        return f"Nothing [{', '.join(name for name, _ in self.items)}]"
