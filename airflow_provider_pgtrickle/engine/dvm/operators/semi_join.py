"""Δ(L ⋉ R) = ΔL ⋉ R¹ + A ⋉ R¹ − A ⋉ R⁰, A = the rows of L⁰ that ΔR can match.
The anti-join ▷ follows the same rule.

The rule holds for every condition. The equalities in it bound A, and restrict R to the rows that A and ΔL can match.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import columns_of, conjuncts, equality, plain_column, render
from airflow_provider_pgtrickle.engine.dvm.node import Binary, Column, Differ, Key, Keys, Node, descendants
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Touched
from airflow_provider_pgtrickle.engine.dvm.operators.keys import DistinctKeys, expression_keys
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import Weigh, before
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter, Rows


@dataclass(frozen=True, eq=False)
class SemiJoin(Binary):
    """The left rows that have a match on the right (SEMI), or none (ANTI)."""

    condition: exp.Expr

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
                keys = self._met(change_left)
                right = right.restrict(keys) if keys else right
            terms.append(replace(self, left=change_left, right=right))
        if change_right is not None:
            rows, right_new, right_old = self._matched(d, change_right)
            terms.append(Weigh(replace(self, left=rows, right=right_new), 1))
            terms.append(Weigh(replace(self, left=rows, right=right_old), -1))
        return UnionAll.of(terms) if terms else None

    def _matched(self, d: Differ, change: Node) -> tuple[Node, Node, Node]:
        """A, and the rows of the right side's new and old states that A can match."""
        new, old = self.right, d.old(self.right)
        ties = self.ties
        if not ties:
            return before(d, self.left, None), new, old
        keys = DistinctKeys(change, tuple((f"k{n}", far) for n, (_, far) in enumerate(ties, 1)), keep_nulls=False)
        named = [(near, far, f"k{n}") for n, (near, far) in enumerate(ties, 1)]
        on_left = tuple((str(plain_column(near)), k) for near, _, k in named if plain_column(near))
        if len(on_left) == len(named):
            left_keys = Keys(keys, on_left, null_matches=False)
            rows = before(d, self.left, left_keys)
        else:
            rows = Touched(before(d, self.left, None), ((keys, tuple((near, k) for near, _, k in named)),))
        # The rows of A are few if the left side is selective, and then the right side is restricted to few rows.
        met = self._met(rows)
        if met is not None:
            new, old = new.restrict(met), old.restrict(met)
        return rows, new, old

    def restrict(self, keys: Keys) -> Node:
        equal = {}
        for near, far in self.ties:
            names = plain_column(near), plain_column(far)
            if None not in names:
                equal[str(names[0])] = str(names[1])
        left, over_right = self.left.restrict(keys), keys.mapped(equal)
        if over_right is not None:
            over_right = replace(over_right, null_matches=False)
        elif self.right.heavy:
            over_right = self._met(left)
        return replace(self, left=left, right=self.right.restrict(over_right) if over_right else self.right)

    def _met(self, left: Node) -> Keys | None:
        """The keys of the right rows that rows of `left` can match."""
        return expression_keys(left, [(str(plain_column(far)), near) for near, far in self.ties if plain_column(far)])

    def rows(self, e: Emitter) -> Rows:
        left, right = e.rows(self.left), self._right_rows(e)
        matched = right.that(f"({e.expression(self.condition, {**left.places, **right.places})})")
        exists = "EXISTS" if self.kind == "SEMI" else "NOT EXISTS"
        return left.that(f"{exists} (SELECT 1 {matched.clauses})")

    def _right_rows(self, e: Emitter) -> Rows:
        """The right side as PostgreSQL plans it best.

        Tables are looked up by the ties. Keys would be one more condition, by which PostgreSQL expects fewer rows than
        come. PostgreSQL can't look up old rows, and if it expected one left row, it would compute them anew for each.
        """
        if not e.has_indexes:
            return e.rows(self.right)
        is_old = any(isinstance(n, Scan) and n.is_old for n in descendants(self.right))
        return e.apart(self.right) if is_old else e.rows(_without_hints(self.right, e))

    def reads(self, needed: AbstractSet[str]) -> set[str]:
        return columns_of(self.condition)

    def unsettled(self) -> None:
        return None

    def steps_from(self, child: Node) -> bool:
        return child is self.left

    @property
    def joined_on(self) -> Sequence[exp.Expr]:
        return conjuncts(self.condition)

    def label(self) -> str:
        return f"{self.kind.title()}Join on {render(self.condition)}"


def _without_hints(node: Node, e: Emitter) -> Node:
    """The tree without the hints on tables that PostgreSQL's planner looks up by itself."""
    if node.heavy or node.shared:
        return node
    if isinstance(node, Restrict):
        scan = node.child
        return scan if not node.exact and isinstance(scan, Scan) and e.is_table(scan.source, scan.is_old) else node
    return node.with_inputs([_without_hints(i, e) for i in node.inputs])
