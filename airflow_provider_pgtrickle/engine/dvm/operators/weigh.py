"""±R: a bag becomes a weighted relation, or each row of a weighted relation changes its sign."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_provider_pgtrickle.engine.dvm.node import Column, Differ, Key, Keys, Node, Unary
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.rendering import ONE, Emitter, Rows


@dataclass(frozen=True, eq=False)
class Weigh(Unary):
    """Each row of a bag gets the weight `sign`; a weighted row's weight is multiplied by `sign`."""

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
        weight = rows.weight or ONE
        return replace(rows, weight=weight if self.sign > 0 else weight.negated())

    @property
    def row_wise(self) -> bool:
        return True

    def _whence(self, name: str) -> frozenset[tuple[str, str]]:
        return self.child.whence(name)

    def label(self) -> str:
        return "+" if self.sign > 0 else "−"


def difference(new: Node, old: Node) -> Node:
    """new − old as one weighted relation."""
    return UnionAll.of((Weigh(new, 1), Weigh(old, -1)))


def before(d: Differ, node: Node, keys: Keys | None) -> Node:
    """old(node) ⋉ keys as new(node) ⋉ keys − Δnode ⋉ keys, weighted: for an operator that is linear in `node`.

    PostgreSQL plans it with the tables' own statistics, which a union of old rows doesn't have.
    """
    change = d.delta(node)
    new = Restrict(node.restrict(keys), keys) if keys is not None else node
    if change is None:
        return new
    gone = Restrict(change, keys) if keys is not None else change
    return difference(new, gone)


@dataclass(frozen=True, eq=False)
class Expose(Unary):
    """A weighted relation as a plain one, in which the weight is an ordinary column."""

    as_name: str

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column(self.as_name, "bigint", True), *self.child.columns)

    @property
    def weighted(self) -> bool:
        return False

    def _whence(self, name: str) -> frozenset[tuple[str, str]]:
        return self.child.whence(name) if name != self.as_name else frozenset()

    def select(self, e: Emitter) -> str:
        rows = e.rows(self.child)
        weight = f"({e.weighed(rows.weight or ONE)})::bigint AS {e.name(self.as_name)}"
        return e.select(replace(rows, weight=None), [weight, *e.listed(rows, self.child.names)])

    def label(self) -> str:
        return "weights as a column"
