"""Δτ(R) = τ⁰(ΔR) + (τ¹ − τ⁰)(moved(R¹)), τ the comparisons of each row of R with the clock, as columns.
moved(R) are the rows that compare otherwise with the clock as it is now: those between the two values of a reading.

Rows are looked for among the new ones, where PostgreSQL has statistics and an index of what is compared.
A comparison may be NULL, and becomes true or false only if what it compares changes.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.clock import CLOCK
from airflow_provider_pgtrickle.engine.dvm.dialect import Reading
from airflow_provider_pgtrickle.engine.dvm.expressions import columns_of, plain_column, render, unparen
from airflow_provider_pgtrickle.engine.dvm.node import Column, Differ, Item, Key, Keys, Node, Open, Slicer, Unary
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.operators.weigh import Weigh
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter, Rows

COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)


@dataclass(frozen=True, eq=False)
class Clocked(Unary):
    """The child's columns, and comparisons of its rows with readings of the clock."""

    items: tuple[Item, ...]
    is_old: bool = False
    """Whether the clock is at the stored content's data timestamp."""
    is_local: bool = False
    """See `Schema`."""

    @property
    def own_sources(self) -> frozenset[str]:
        return frozenset((CLOCK,))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.child.columns, *(Column(name, "boolean") for name, _ in self.items))

    @property
    def unique_keys(self) -> frozenset[Key]:
        return self.child.unique_keys

    @property
    def in_place(self) -> bool:
        return self.child.in_place

    @property
    def moved(self) -> Moved:
        """The rows for which one of the comparisons comes out otherwise now."""
        return Moved(self.child, tuple(x for _, x in self.items), self.is_local)

    def delta(self, d: Differ) -> Node | None:
        terms: list[Node] = []
        change = d.delta(self.child)
        if change is not None:
            terms.append(replace(self, child=change, is_old=True))
        if CLOCK in d.changed:
            moved = self.moved
            terms.append(Weigh(replace(self, child=moved), 1))
            terms.append(Weigh(replace(self, child=moved, is_old=True), -1))
        return UnionAll.of(terms) if terms else None

    def old(self, d: Differ) -> Node:
        return replace(self, child=d.old(self.child), is_old=True)

    def sliced(self, s: Slicer) -> Node | None:
        part = s.slice(self.child)
        return None if part is None else replace(self, child=part)

    def restrict(self, keys: Keys) -> Node:
        mapped = keys.only(self.child.names)
        return replace(self, child=self.child.restrict(mapped)) if mapped else self

    def select(self, e: Emitter) -> str:
        rows = e.rows(self.child)
        items = [f"{e.expression(x, rows.places, is_old=self.is_old)} AS {e.name(n)}" for n, x in self.items]
        return e.select(rows, [*e.listed(rows, self.child.names), *items])

    def reads(self, needed: AbstractSet[str]) -> set[str]:
        return set().union(*(columns_of(x) for n, x in self.items if n in needed))

    def narrowed(self, needed: AbstractSet[str]) -> Node:
        items = tuple(item for item in self.items if item[0] in needed)
        return replace(self, items=items) if items else self.child

    def left_open(self, of: Callable[[Node], Open]) -> Open:
        below = of(self.child)
        return below.of(self.child.names).also(below.through(self.items))

    def unsettled(self) -> None:
        return None

    def label(self) -> str:
        return "Clock " + ", ".join(f"{render(x)} AS {n}" for n, x in self.items)

    @property
    def lookups(self) -> list[tuple[str, str]]:
        """(source key, column) of each value that is compared and is a column of a table."""
        found = []
        for _, comparison in self.items:
            name = plain_column(compared(comparison)[0])
            of_table = origin(self.child, name) if name is not None else None
            if of_table is not None:
                found.append(of_table)
        return found


@dataclass(frozen=True, eq=False)
class Moved(Unary):
    """The rows for which a comparison with the clock comes out otherwise now."""

    comparisons: tuple[exp.Expr, ...]
    is_local: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def unique_keys(self) -> frozenset[Key]:
        return self.child.unique_keys

    def rows(self, e: Emitter) -> Rows:
        rows = e.rows(self.child)

        def at(x: exp.Expr, *, is_old: bool) -> str:
            return e.expression(x, rows.places, is_old=is_old)

        terms = []
        for comparison in dict.fromkeys(self.comparisons):
            value, reading = compared(comparison)
            held, old, new = at(value, is_old=False), at(reading, is_old=True), at(reading, is_old=False)
            low, high = f"LEAST({old}, {new})", f"GREATEST({old}, {new})"
            between = f"({held}) >= {low} AND ({held}) <= {high}"
            if self.is_local:
                # Of two local times the later one may mean the earlier instant, if the zone skips the other.
                between = f"({between} OR ({held}) >= {high} AND ({held}) <= {low})"
            terms.append(
                f"({between} AND ({at(comparison, is_old=True)}) IS DISTINCT FROM ({at(comparison, is_old=False)}))"
            )
        return rows.that(f"({' OR '.join(terms)})")

    def reads(self, needed: AbstractSet[str]) -> set[str]:
        return set().union(*map(columns_of, self.comparisons))

    @property
    def row_wise(self) -> bool:
        return True

    @property
    def shared(self) -> bool:
        return True

    def label(self) -> str:
        return f"Moved {' OR '.join(map(render, self.comparisons))}"


def compared(comparison: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Return the value and the reading of a comparison."""
    sides = unparen(comparison.this), unparen(comparison.expression)
    return sides if isinstance(sides[1], Reading) else (sides[1], sides[0])


def origin(node: Node, name: str) -> tuple[str, str] | None:
    """Return the source's key and column that a column comes from, if it comes from one table unchanged."""
    if isinstance(node, Scan):
        return next(((node.source.table, held) for held, c in node.mapping if c.name == name), None)
    if isinstance(node, Project):
        below = plain_column(dict(node.items)[name])
        return origin(node.child, below) if below is not None else None
    if isinstance(node, (Clocked, Filter)):
        return origin(node.child, name) if name in node.child.names else None
    found = [child for child in node.inputs if name in child.names]
    return origin(found[0], name) if len(found) == 1 and name in node.names else None
