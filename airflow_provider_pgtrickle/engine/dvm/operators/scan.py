"""ΔT = the new images less the old images of the rows in the window of T's change buffer.

old(T) = T − ΔT. Each row of the buffer counts by itself. The changes of one row telescope, so neither their
order nor a key is needed, and the rule is also exact for duplicates in a table without a key.

Δ(ONLY T) = ΔT − Σ ΔC, C the tables that inherit from T directly, because the buffer of T has the changes of their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from airflow_provider_pgtrickle.engine.dvm.node import Column, Condition, Differ, Key, Keys, Leaf, Node, Slicer
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter, Rows, Weight
from airflow_provider_pgtrickle.engine.dvm.schema import Source


@dataclass(frozen=True, eq=False)
class Scan(Leaf):
    """The rows of one source."""

    source: Source
    mapping: tuple[tuple[str, Column], ...]
    """(column of the source, column of this node)."""
    is_old: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(c for _, c in self.mapping)

    @property
    def own_sources(self) -> frozenset[str]:
        return self.source.reads

    @property
    def unique_keys(self) -> frozenset[Key]:
        names = {origin: c.name for origin, c in self.mapping}
        keys = [k for k in (self.source.primary_key, *self.source.unique_keys) if k]
        return frozenset(frozenset(names[o] for o in k) for k in keys if all(o in names for o in k))

    @property
    def heavy(self) -> bool:
        return self.is_old

    def delta(self, d: Differ) -> Node:
        return DeltaScan(self)

    def old(self, d: Differ) -> Node:
        return Scan(self.source, self.mapping, is_old=True)

    def restrict(self, keys: Keys) -> Node:
        return Restrict(self, keys, exact=False)

    def select(self, e: Emitter) -> str:
        return self._select(e, e.relation(self.source, self.is_old))

    def rows(self, e: Emitter) -> Rows:
        alias = e.alias()
        places = {c.name: (alias, o) for o, c in self.mapping}
        return Rows(f"{e.relation(self.source, self.is_old)} AS {alias}", places)

    def select_where(self, e: Emitter, conditions: Sequence[Condition]) -> str | None:
        """SQL of the rows that meet a condition, if the source is its table and its changes together, else None.

        The table and its changes are then both searched for these rows.
        """
        held = {c.name: o for o, c in self.mapping}

        def on(condition: Condition) -> Callable[[str], str]:
            return lambda alias: condition(lambda name: f"{alias}.{e.name(held[name])}")

        found = [e.relation_where(self.source, self.is_old, on(c)) for c in conditions]
        selects = [self._select(e, relation) for relation in found if relation is not None]
        return " UNION ALL ".join(selects) or None

    def _select(self, e: Emitter, relation: str) -> str:
        alias = e.alias()
        items = ", ".join(f"{alias}.{e.name(o)} AS {e.name(c.name)}" for o, c in self.mapping)
        return f"SELECT {items or 'NULL'} FROM {relation} AS {alias}"

    def narrowed(self, needed: AbstractSet[str]) -> Node:
        """The scan with only the needed columns and the key, by which a changed row is found again.

        A relation whose rows are only counted keeps one column, because capture needs one.
        """
        touch = self.source.primary_key
        kept = tuple(m for m in self.mapping if m[1].name in needed or m[0] in touch)
        narrowest = next(((m,) for m in self.mapping if m[1].has_equality), self.mapping[:1])
        return replace(self, mapping=kept or narrowest)

    def unsettled(self) -> None:
        return None

    def label(self) -> str:
        used = ", ".join(o for o, _ in self.mapping)
        only = "ONLY " if self.source.heirs is not None else ""
        return f"Scan {only}{self.source.schema}.{self.source.name} [{used}]"


@dataclass(frozen=True, eq=False)
class DeltaScan(Leaf):
    """The window of a source's change buffer as a weighted relation, or a slice of it."""

    scan: Scan
    part: str | None = None
    """The condition by which a row of the buffer is in the slice."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.scan.columns

    @property
    def own_sources(self) -> frozenset[str]:
        return self.scan.own_sources

    @property
    def weighted(self) -> bool:
        return True

    @property
    def in_place(self) -> bool:
        return True

    def rows(self, e: Emitter) -> Rows:
        alias = e.alias()
        places = {c.name: (alias, o) for o, c in self.scan.mapping}
        return Rows(f"{e.changes(self.scan.source, self.part)} AS {alias}", places, Weight.of(alias))

    def _whence(self, name: str) -> frozenset[tuple[str, str]]:
        return frozenset((self.scan.source.key, held) for held, c in self.scan.mapping if c.name == name)

    def sliced(self, s: Slicer) -> Node | None:
        conditions = s.cut.get(self.scan.source.key)
        if conditions is None:
            return super().sliced(s)
        return replace(self, part=conditions[s.number]) if s.number < len(conditions) else None

    def label(self) -> str:
        return f"Δ{self.scan.source.schema}.{self.scan.source.name}"
