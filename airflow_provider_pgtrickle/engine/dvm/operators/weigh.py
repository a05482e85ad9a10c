"""±R: a bag as a weighted relation, or a weighted relation negated."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_provider_pgtrickle.engine.dvm.emit import Emitter
from airflow_provider_pgtrickle.engine.dvm.node import Column, Key, Node, Unary
from airflow_provider_pgtrickle.engine.dvm.rows import Rows


@dataclass(frozen=True, eq=False)
class Weigh(Unary):
    """Each row of a bag counts `sign`; a weighted row's weight is multiplied by it."""

    sign: int

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def unique_keys(self) -> frozenset[Key]:
        return self.child.unique_keys

    @property
    def weighted(self) -> bool:
        return True

    def rows(self, e: Emitter) -> Rows:
        rows = e.rows(self.child)
        weight = rows.weight or "1"
        if self.sign < 0:
            weight = weight.removeprefix("-") if weight.startswith("-") else f"-{weight}"
        return replace(rows, weight=weight)

    def label(self) -> str:
        return "+" if self.sign > 0 else "−"


def difference(new: Node, old: Node) -> Node:
    """new − old as one weighted relation."""
    from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll

    return UnionAll.of((Weigh(new, 1), Weigh(old, -1)))


@dataclass(frozen=True, eq=False)
class Expose(Unary):
    """A weighted relation as a plain one, its weight an ordinary column."""

    as_name: str

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column(self.as_name, "bigint", True), *self.child.columns)

    @property
    def weighted(self) -> bool:
        return False

    def select(self, e: Emitter) -> str:
        rows = e.rows(self.child)
        weight = f"({rows.weight})::bigint AS {e.name(self.as_name)}"
        return e.select(replace(rows, weight=None), [weight, *e.listed(rows, self.child.names)])

    def label(self) -> str:
        return "weights as a column"
