"""Δc = 0, c a constant relation: VALUES, a function of constants or a SELECT without FROM reads no source, so it
never changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import render
from airflow_provider_pgtrickle.engine.dvm.node import Column, Differ, Leaf
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter, Rows


@dataclass(frozen=True, eq=False)
class Constant(Leaf):
    """A FROM item that reads no relation. If `item` is None, the relation is one row without columns."""

    item: exp.Expr | None
    outputs: tuple[str, ...]
    ordinality: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(n) for n in self.outputs)

    def rows(self, e: Emitter) -> Rows | None:
        if self.item is None:
            return None
        alias = e.alias()
        item = e.expression(self.item, alias)
        names = ", ".join(e.name(n) for n in self.outputs)
        ordinality = " WITH ORDINALITY" if self.ordinality else ""
        return Rows(f"{item}{ordinality} AS {alias}({names})", {n: (alias, n) for n in self.outputs})

    def select(self, e: Emitter) -> str:
        return f"SELECT 1 AS {e.name(self.outputs[0])}" if self.item is None else super().select(e)

    def delta(self, d: Differ) -> None:
        return None

    def unsettled(self) -> None:
        return None

    def label(self) -> str:
        return f"Constant {render(self.item) if self.item is not None else ''}".rstrip()
