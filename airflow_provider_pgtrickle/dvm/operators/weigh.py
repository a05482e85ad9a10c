"""±R: a bag as a weighted relation, or a weighted relation negated."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_pgtrickle.dvm.emit import Emitter
from airflow_provider_pgtrickle.dvm.node import Column, Key, Node


@dataclass(frozen=True, eq=False)
class Weigh(Node):
    """Each row of a bag counts `sign`; a weighted row's weight is multiplied by it."""

    child: Node
    sign: int

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child,)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def unique_keys(self) -> frozenset[Key]:
        return self.child.unique_keys

    @property
    def weighted(self) -> bool:
        return True

    def select(self, e: Emitter) -> str:
        source, alias = e.from_item(self.child)
        weight = f"{alias}.{e.weight}" if self.child.weighted else "1"
        signed = weight if self.sign > 0 else f"-{weight}"
        columns = e.columns(self.child, alias, weight=False)
        return f"SELECT {signed} AS {e.weight}{', ' if columns else ''}{columns} FROM {source}"

    def label(self) -> str:
        return "+" if self.sign > 0 else "−"


def difference(new: Node, old: Node) -> Node:
    """new − old as one weighted relation."""
    from airflow_provider_pgtrickle.dvm.operators.union_all import UnionAll

    return UnionAll.of((Weigh(new, 1), Weigh(old, -1)))


@dataclass(frozen=True, eq=False)
class Expose(Node):
    """A weighted relation as a plain one, its weight an ordinary column."""

    child: Node
    as_name: str

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child,)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column(self.as_name, "bigint", True), *self.child.columns)

    @property
    def weighted(self) -> bool:
        return False

    def select(self, e: Emitter) -> str:
        source, alias = e.from_item(self.child)
        columns = e.columns(self.child, alias, weight=False)
        weight = f"{alias}.{e.weight}::bigint AS {e.name(self.as_name)}"
        return f"SELECT {weight}{', ' if columns else ''}{columns} FROM {source}"

    def label(self) -> str:
        return "weights as a column"
