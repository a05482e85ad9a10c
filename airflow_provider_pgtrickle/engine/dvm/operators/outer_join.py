"""Left:  Δ(L ⟕ R) = ΔL ⟕ R¹ + A ⟕ R¹ − A ⟕ R⁰,  A = the rows of L⁰ that ΔR can match.
Full:  Δ(L ⟗ R) = (L¹ ⋉ K ⟗ R¹ ⋉ K) − (L⁰ ⋉ K ⟗ R⁰ ⋉ K),  K = keys(ΔL) ∪ keys(ΔR). NULL is a key, too.

Both rules hold for every condition; if no equality bounds A or K, they are whole relations.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import (
    column,
    columns_of,
    conjuncts,
    equality,
    plain_column,
    render,
)
from airflow_provider_pgtrickle.engine.dvm.node import Binary, Column, Differ, Item, Key, Keys, Node, computed_over
from airflow_provider_pgtrickle.engine.dvm.operators.keys import DistinctKeys, expression_keys
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import Weigh, before, difference
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter, Rows


@dataclass(frozen=True, eq=False)
class OuterJoin(Binary):
    """LEFT or FULL JOIN. A RIGHT JOIN becomes a left join with its sides exchanged."""

    condition: exp.Expr

    @property
    def columns(self) -> tuple[Column, ...]:
        left = self.left.columns if self.kind == "LEFT" else tuple(c.as_nullable() for c in self.left.columns)
        return left + tuple(c.as_nullable() for c in self.right.columns)

    @property
    def unique_keys(self) -> frozenset[Key]:
        if self.kind == "LEFT":
            bound = {r for _, r in self.pairs}
            if any(key <= bound for key in self.right.unique_keys):
                return self.left.unique_keys
        both = [(a, b) for a in self.left.unique_keys for b in self.right.unique_keys]
        if self.kind == "FULL":
            # In a key that is all NULL, a left row without a partner and a right row without a partner look alike.
            both = [(a, b) for a, b in both if _never_all_null(self.left, a) or _never_all_null(self.right, b)]
        return frozenset(a | b for a, b in both)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """(left column, right column) that the condition equates."""
        left, right = set(self.left.names), set(self.right.names)
        found = []
        for term in conjuncts(self.condition):
            sides = equality(term)
            names = [plain_column(s) for s in sides] if sides else [None]
            if None in names:
                continue
            a, b = (str(n) for n in names)
            if a in left and b in right:
                found.append((a, b))
            elif b in left and a in right:
                found.append((b, a))
        return found

    @property
    def reach(self) -> list[tuple[str, exp.Expr]]:
        """(left column, expression over the right) that the condition equates."""
        left, right = set(self.left.names), set(self.right.names)
        found = []
        for term in conjuncts(self.condition):
            sides = equality(term) or ()
            for near, far in (sides, sides[::-1]) if sides else ():
                name = plain_column(near)
                if name in left and columns_of(far) and columns_of(far) <= right:
                    found.append((str(name), far))
        return found

    def delta(self, d: Differ) -> Node | None:
        return self._left_delta(d) if self.kind == "LEFT" else self._full_delta(d)

    def _left_delta(self, d: Differ) -> Node | None:
        change_left, change_right = d.delta(self.left), d.delta(self.right)
        terms: list[Node] = []
        if change_left is not None:
            terms.append(replace(self, left=change_left, right=self._reached(d, change_left, self.right)))
        if change_right is not None:
            rows = before(d, self.left, self._touched_keys(d))
            right_new, right_old = self.right, d.old(self.right)
            # The right side is restricted to the rows that these can match: they are few if the left side is selective.
            met = expression_keys(rows, [(r, column(left)) for left, r in self.pairs])
            if met is not None:
                right_new, right_old = right_new.restrict(met), right_old.restrict(met)
            terms.append(Weigh(replace(self, left=rows, right=right_new), 1))
            terms.append(Weigh(replace(self, left=rows, right=right_old), -1))
        return UnionAll.of(terms) if terms else None

    def _touched_keys(self, d: Differ) -> Keys | None:
        """A superset of the keys of left rows that ΔR can match."""
        targets, values = [t for t, _ in self.reach], [x for _, x in self.reach]
        change, values = self.right.touching(d, values) or (d.delta(self.right), values)
        return None if change is None else expression_keys(change, zip(targets, values, strict=True))

    def _reached(self, d: Differ, change: Node, right: Node) -> Node:
        if not (d.narrow_all or right.heavy):
            return right
        keys = expression_keys(change, [(r, column(left)) for left, r in self.pairs])
        return right.restrict(keys) if keys else right

    def _full_delta(self, d: Differ) -> Node | None:
        change_left, change_right = d.delta(self.left), d.delta(self.right)
        if change_left is None and change_right is None:
            return None
        pairs = self._key_pairs()
        sides = (self.left, self.right, d.old(self.left), d.old(self.right))
        if pairs:
            relation = self._full_keys(change_left, change_right, pairs)
            over_left = Keys(relation, tuple((a, f"k{n}") for n, (a, _) in enumerate(pairs, 1)))
            over_right = Keys(relation, tuple((b, f"k{n}") for n, (_, b) in enumerate(pairs, 1)))
            keys = (over_left, over_right, over_left, over_right)
            sides = tuple(Restrict(s.restrict(k), k) for s, k in zip(sides, keys, strict=True))  # type: ignore[assignment]
        left_new, right_new, left_old, right_old = sides
        return difference(replace(self, left=left_new, right=right_new), replace(self, left=left_old, right=right_old))

    def _key_pairs(self) -> list[tuple[str, str]]:
        """The pairs that make one key.

        NULL-safe keys of several columns are compared as records, so both columns of a pair need the same type.
        """
        pairs = self.pairs
        alike = [(a, b) for a, b in pairs if self.left.column(a).type == self.right.column(b).type is not None]
        return alike or pairs[:1]

    def _full_keys(self, left: Node | None, right: Node | None, pairs: list[tuple[str, str]]) -> Node:
        branches: list[Node] = []
        for change, side in ((left, 0), (right, 1)):
            if change is not None:
                items = tuple((f"k{n}", column(pair[side])) for n, pair in enumerate(pairs, 1))
                branches.append(Project(change, items))
        union = branches[0] if len(branches) == 1 else UnionAll(tuple(branches), branches[0].names)
        return DistinctKeys(union, tuple((n, column(n)) for n in branches[0].names), keep_nulls=True)

    def restrict(self, keys: Keys) -> Node:
        if self.kind != "LEFT":
            return self
        over_left = keys.only(list(self.left.names))
        if over_left is None:
            return self
        partners = dict(self.pairs)
        over_right = over_left.mapped(dict(partners))
        right = self.right.restrict(replace(over_right, null_matches=False)) if over_right else self.right
        return replace(self, left=self.left.restrict(over_left), right=right)

    def rows(self, e: Emitter) -> Rows:
        left, right = e.item(self.left), e.item(self.right)
        places = {**left.places, **right.places}
        source = f"{left.source} {self.kind} JOIN {right.source} ON {e.expression(self.condition, places)}"
        return Rows(source, places, left.weight, is_join=True)

    def reads(self, needed: AbstractSet[str]) -> set[str]:
        return columns_of(self.condition)

    def unsettled(self) -> None:
        return None

    def steps_from(self, child: Node) -> bool:
        return self.kind == "LEFT" and child is self.left

    @property
    def joined_on(self) -> Sequence[exp.Expr]:
        return conjuncts(self.condition)

    def computing(self, item: Item) -> Node | None:
        if self.kind != "LEFT" or not columns_of(item[1]) <= set(self.left.names):
            return None
        return replace(self, left=self.left.computing(item) or Project(self.left, computed_over(self.left, item)))

    def label(self) -> str:
        return f"{self.kind.title()}Join on {render(self.condition)}"


def _never_all_null(node: Node, key: Key) -> bool:
    return any(node.column(name).not_null for name in key)
