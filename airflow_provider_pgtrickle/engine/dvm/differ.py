"""One differentiation: which sources changed, and every delta computed once."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import column
from airflow_provider_pgtrickle.engine.dvm.node import Keys, Node


class Differ:
    """`delta(node)` and `old(node)` with what did not change pruned before anything is read."""

    def __init__(self, changed: Iterable[str], narrow_all: bool = False) -> None:
        self.changed = frozenset(changed)
        self.narrow_all = narrow_all
        self._deltas: dict[int, Node | None] = {}
        self._olds: dict[int, Node] = {}
        self._alive: list[Node] = []

    def is_changed(self, node: Node) -> bool:
        return not self.changed.isdisjoint(node.sources)

    def delta(self, node: Node) -> Node | None:
        if not self.is_changed(node):
            return None
        if id(node) not in self._deltas:
            self._alive.append(node)
            self._deltas[id(node)] = node.delta(self)
        return self._deltas[id(node)]

    def old(self, node: Node) -> Node:
        if not self.is_changed(node):
            return node
        if id(node) not in self._olds:
            self._alive.append(node)
            self._olds[id(node)] = node.old(self)
        return self._olds[id(node)]

    def before(self, node: Node, keys: Keys | None) -> Node:
        """old(node) ⋉ keys as new(node) ⋉ keys − Δnode ⋉ keys, weighted: for what is linear in it.

        PostgreSQL plans it with the tables' own statistics, which a union of old rows has not.
        """
        from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
        from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
        from airflow_provider_pgtrickle.engine.dvm.operators.weigh import Weigh

        change = self.delta(node)
        new = Restrict(node.restrict(keys), keys) if keys is not None else node
        if change is None:
            return new
        gone = Restrict(change, keys) if keys is not None else change
        return UnionAll.of((Weigh(new, 1), Weigh(gone, -1)))


def keys_from(relation: Node, columns: Iterable[str], *, null_matches: bool = True) -> Keys | None:
    """The distinct values of some columns of `relation` as keys of the same columns."""
    from airflow_provider_pgtrickle.engine.dvm.operators.keys import DistinctKeys

    usable = tuple(n for n in columns if relation.column(n).has_equality)
    if not usable:
        return None
    distinct = DistinctKeys(relation, tuple((n, column(n)) for n in usable), null_matches)
    return Keys(distinct, tuple((n, n) for n in usable), null_matches)


def expression_keys(
    relation: Node, pairs: Iterable[tuple[str, exp.Expr]], *, null_matches: bool = False
) -> Keys | None:
    """Keys of target columns, each the distinct value of an expression over `relation`."""
    from airflow_provider_pgtrickle.engine.dvm.operators.keys import DistinctKeys

    items = tuple((target, expression) for target, expression in pairs)
    if not items:
        return None
    named = tuple((f"k{n}", expression) for n, (_, expression) in enumerate(items, 1))
    distinct = DistinctKeys(relation, named, null_matches)
    return Keys(distinct, tuple((items[n][0], f"k{n + 1}") for n in range(len(items))), null_matches)
