"""ΔF(L; S) = F(ΔL; S¹) + F(A; S¹) − F(A; S⁰), A = the rows of L⁰ that a change of S can touch.
F is a filter, a projection or a lateral item whose expressions hold subqueries S.

F's result for a row is a function of the row and of the tables inside S. PostgreSQL evaluates S as it is written
(EXISTS, IN, NOT IN, ALL, scalar subqueries, under OR, in CASE), so none of their NULL rules is
repeated here. A is found from the equalities that tie S to the row; if there are none, A is all of
L⁰ as soon as S has a change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import columns_of, plain_column
from airflow_provider_pgtrickle.engine.dvm.node import Column, Differ, Key, Keys, Node, Unary
from airflow_provider_pgtrickle.engine.dvm.operators.keys import DistinctKeys
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import Weigh, before
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter, Rows


@dataclass(frozen=True, eq=False)
class Subquery:
    """The sources that a subquery reads, and the ties by which a change in it finds the rows that it touches."""

    sources: frozenset[str]
    core: Node | None
    """The subquery's rows before grouping, without the terms that tie it to the outer row.

    If it is None, any change touches every row."""
    ties: tuple[tuple[exp.Expr, exp.Expr], ...] = ()
    """(expression over the outer row, expression over the core); they are equal if the core's row matters."""


@dataclass(frozen=True, eq=False)
class Touched(Node):
    """The rows of a relation that at least one of several changes can touch."""

    child: Node
    changes: tuple[tuple[Node | None, tuple[tuple[exp.Expr, str], ...]], ...]
    """(key set, pairs (expression over the row, key column)). Without pairs, any row in the set touches every row."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child, *(k for k, _ in self.changes if k is not None))

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        child, *keys = inputs
        rest = iter(keys)
        return Touched(child, tuple((next(rest) if k is not None else None, pairs) for k, pairs in self.changes))

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def weighted(self) -> bool:
        return self.child.weighted

    def rows(self, e: Emitter) -> Rows:
        rows = e.rows(self.child)
        terms = []
        for relation, pairs in self.changes:
            if relation is None:
                terms.append("TRUE")
                continue
            item, key = e.from_item(relation)
            where = " AND ".join(f"({e.expression(x, rows.places)}) = {key}.{e.name(k)}" for x, k in pairs)
            terms.append(f"EXISTS (SELECT 1 FROM {item}{' WHERE ' + where if where else ''})")
        return rows.that(f"({' OR '.join(terms)})")

    def label(self) -> str:
        return "rows touched by the subqueries' changes"


def touched(d: Differ, child: Node, subqueries: tuple[Subquery, ...]) -> Node | None:
    """A: rows of child⁰ that the changed subqueries can touch; None if there are none."""
    changes: list[tuple[Node | None, tuple[tuple[exp.Expr, str], ...]]] = []
    for subquery in subqueries:
        if d.changed.isdisjoint(subquery.sources):
            continue
        if subquery.core is None:
            changes.append((None, ()))
            continue
        change = d.delta(subquery.core)
        if change is None:
            continue
        named = tuple((f"k{n}", inner) for n, (_, inner) in enumerate(subquery.ties, 1))
        keys = DistinctKeys(change, named or (("k0", exp.true()),), keep_nulls=not named)
        changes.append((keys, tuple((outer, f"k{n}") for n, (outer, _) in enumerate(subquery.ties, 1))))
    if not changes:
        return None
    relation, pairs = changes[0]
    if len(changes) == 1 and relation is not None and pairs:
        plain = [(plain_column(x), k) for x, k in pairs]
        if all(name is not None for name, _ in plain):
            tied = Keys(relation, tuple((str(name), k) for name, k in plain), null_matches=False)
            return before(d, child, tied)
    return Touched(before(d, child, None), tuple(changes))


def dependent_delta(
    d: Differ,
    child: Node,
    subqueries: tuple[Subquery, ...],
    apply: Callable[[Node, bool], Node],
) -> Node | None:
    """The module's rule. `apply(relation, is_old)` is F over a relation, with S in its old or its new state."""
    terms: list[Node] = []
    change = d.delta(child)
    if change is not None:
        terms.append(apply(change, False))
    rows = touched(d, child, subqueries)
    if rows is not None:
        terms.append(Weigh(apply(rows, False), 1))
        terms.append(Weigh(apply(rows, True), -1))
    return UnionAll.of(terms) if terms else None


class Dependent(Unary):
    """F(L; S), for the operators that may hold subqueries."""

    if TYPE_CHECKING:
        subqueries: tuple[Subquery, ...]
        is_old: bool
        """Whether the subqueries read the old state."""

    @property
    def inner(self) -> tuple[Node, ...]:
        return tuple(s.core for s in self.subqueries if s.core is not None)

    def mapped(self, change: Callable[[Node], Node]) -> Node:
        subqueries = tuple(replace(s, core=change(s.core)) if s.core is not None else s for s in self.subqueries)
        return replace(super().mapped(change), subqueries=subqueries)  # type: ignore[call-arg]

    @property
    def own_sources(self) -> frozenset[str]:
        return frozenset().union(*(s.sources for s in self.subqueries))

    def delta(self, d: Differ) -> Node | None:
        return dependent_delta(d, self.child, self.subqueries, lambda n, old: replace(self, child=n, is_old=old))  # type: ignore[call-arg]

    def old(self, d: Differ) -> Node:
        return replace(self, child=d.old(self.child), is_old=True)  # type: ignore[call-arg]

    def reads(self, needed: AbstractSet[str]) -> set[str]:
        """The columns in the subqueries' ties; an operator adds those of its own expressions."""
        sides = (x for s in self.subqueries for tie in s.ties for x in tie)
        return set().union(*map(columns_of, sides))

    def unsettled(self) -> str | None:
        """The reason, if it has a subquery: a subquery in an expression is text, in which an order may be open."""
        return f"it holds a subquery that is no join: {self.label()}" if self.subqueries else None


def unique_keys_through(child: Node, names: dict[str, str]) -> frozenset[Key]:
    """The child's keys whose columns all have a name in `names`, under these names."""
    return frozenset(frozenset(names[c] for c in key) for key in child.unique_keys if all(c in names for c in key))
