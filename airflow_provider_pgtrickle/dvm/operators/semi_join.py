"""Δ(L ⋉ R) = ΔL ⋉ R¹ + A ⋉ R¹ − A ⋉ R⁰, A = rows of L⁰ that ΔR can match; ▷ (anti) alike.

It holds for every condition; the equalities in it bound A, and R to what A and ΔL can match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.dvm.differ import Differ, expression_keys
from airflow_provider_pgtrickle.dvm.emit import Emitter
from airflow_provider_pgtrickle.dvm.expressions import columns_of, conjuncts, equality, plain_column
from airflow_provider_pgtrickle.dvm.node import Column, Key, Keys, Node
from airflow_provider_pgtrickle.dvm.operators.dependent import Touched
from airflow_provider_pgtrickle.dvm.operators.keys import DistinctKeys
from airflow_provider_pgtrickle.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.dvm.operators.weigh import Weigh
from airflow_provider_pgtrickle.dvm.rows import Rows


@dataclass(frozen=True, eq=False)
class SemiJoin(Node):
    """The left rows that have a match on the right (SEMI), or none (ANTI)."""

    kind: str
    left: Node
    right: Node
    condition: exp.Expr

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        return replace(self, left=inputs[0], right=inputs[1])

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns

    @property
    def unique_keys(self) -> frozenset[Key]:
        return self.left.unique_keys

    @property
    def weighted(self) -> bool:
        return self.left.weighted

    @property
    def ties(self) -> list[tuple[exp.Expr, exp.Expr]]:
        """(expression over the left, expression over the right) that the condition equates."""
        left, right = set(self.left.names), set(self.right.names)
        found = []
        for term in conjuncts(self.condition):
            sides = equality(term)
            for near, far in (sides, sides[::-1]) if sides else ():
                if columns_of(near) and columns_of(far) and columns_of(near) <= left and columns_of(far) <= right:
                    found.append((near, far))
        return found

    def delta(self, d: Differ) -> Node | None:
        change_left, change_right = d.delta(self.left), d.delta(self.right)
        terms: list[Node] = []
        if change_left is not None:
            right = self.right
            if d.narrow_all or right.heavy:
                pairs = [(plain_column(far), near) for near, far in self.ties]
                keys = expression_keys(change_left, [(str(n), x) for n, x in pairs if n is not None])
                right = right.restrict(keys) if keys else right
            terms.append(replace(self, left=change_left, right=right))
        if change_right is not None:
            before, right_new, right_old = self._matched(d, change_right)
            terms.append(Weigh(replace(self, left=before, right=right_new), 1))
            terms.append(Weigh(replace(self, left=before, right=right_old), -1))
        return UnionAll.of(terms) if terms else None

    def _matched(self, d: Differ, change: Node) -> tuple[Node, Node, Node]:
        """A, and both states of the right as far as A can match them."""
        new, old = self.right, d.old(self.right)
        ties = self.ties
        if not ties:
            return d.before(self.left, None), new, old
        keys = DistinctKeys(change, tuple((f"k{n}", far) for n, (_, far) in enumerate(ties, 1)), keep_nulls=False)
        named = [(near, far, f"k{n}") for n, (near, far) in enumerate(ties, 1)]
        on_left = tuple((str(plain_column(near)), k) for near, _, k in named if plain_column(near))
        if len(on_left) == len(named):
            left_keys = Keys(keys, on_left, null_matches=False)
            rows = d.before(self.left, left_keys)
        else:
            rows = Touched(d.before(self.left, None), ((keys, tuple((near, k) for near, _, k in named)),))
        on_right = tuple((str(plain_column(far)), k) for _, far, k in named if plain_column(far))
        if on_right:
            right_keys = Keys(keys, on_right, null_matches=False)
            new, old = new.restrict(right_keys), old.restrict(right_keys)
        return rows, new, old

    def restrict(self, keys: Keys) -> Node:
        equal = {}
        for near, far in self.ties:
            names = plain_column(near), plain_column(far)
            if None not in names:
                equal[str(names[0])] = str(names[1])
        over_right = keys.mapped(equal)
        right = self.right.restrict(replace(over_right, null_matches=False)) if over_right else self.right
        return replace(self, left=self.left.restrict(keys), right=right)

    def rows(self, e: Emitter) -> Rows:
        left, right = e.rows(self.left), e.rows(self.right)
        matched = right.that(f"({e.expression(self.condition, {**left.places, **right.places})})")
        exists = "EXISTS" if self.kind == "SEMI" else "NOT EXISTS"
        return left.that(f"{exists} (SELECT 1 {matched.clauses})")

    def label(self) -> str:
        return f"{self.kind.title()}Join on {self.condition.sql('postgres')}"
