"""The rows of a recursion are found again among the rows that the stream table stores.

Two rows are the same if they look the same: `ROW(…)::text` is never NULL, and it is exact for every type.
A stored row is identified by its pointer (tableoid, ctid), so that equal rows are told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_pgtrickle.engine.dvm.node import Column, Keys, Leaf, Node, Unary
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict
from airflow_provider_pgtrickle.engine.dvm.operators.stored import Stored
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter

ROW_TABLE, ROW_CTID, IMAGE = "__pgt_place", "__pgt_spot", "__pgt_image"
POINTER_TYPES = ((ROW_TABLE, "oid"), (ROW_CTID, "tid"))
POINTER_COLUMNS = tuple(Column(*pointer) for pointer in POINTER_TYPES)
ITERATION = '"__pgt_walk"'


@dataclass(frozen=True, eq=False)
class Lookup:
    """The conditions by which rows of R⁰ are found in the stream table."""

    stored: Stored
    """The stored rows with R's columns only, under the storage's names."""
    matched: tuple[str, ...]
    """The columns by which rows are looked up in an index."""

    def image(self, e: Emitter, alias: str) -> str:
        return f'ROW({e.columns(self.stored, alias)})::text COLLATE "C"'

    def match(self, e: Emitter, alias: str, row: str) -> str:
        """The condition that a stored row is the same as `row`, whose image is a column."""
        terms = []
        for name in self.matched:
            held, wanted = f"{alias}.{e.name(name)}", f"{row}.{e.name(name)}"
            same = f"{held} = {wanted}"
            if not self.stored.column(name).not_null:
                same = f"({same} OR ({held} IS NOT DISTINCT FROM NULL AND {wanted} IS NOT DISTINCT FROM NULL))"
            terms.append(same)
        terms.append(f"{self.image(e, alias)} = {row}.{e.name(IMAGE)}")
        return " AND ".join(terms)


@dataclass(frozen=True, eq=False)
class Located(Leaf):
    """The stored rows, each with its pointer."""

    stored: Stored

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.stored.columns, *POINTER_COLUMNS)

    def restrict(self, keys: Keys) -> Node:
        return Restrict(self, keys, exact=False)

    def select(self, e: Emitter) -> str:
        alias = e.alias()
        columns = e.columns(self.stored, alias)
        return f"SELECT {columns}, {pointer(e, alias, named=True)} FROM {e.stored()} AS {alias}"

    def label(self) -> str:
        return "R⁰: stored rows, and where each is"


@dataclass(frozen=True, eq=False)
class LastReached(Leaf):
    """The stored rows that the last iteration over D has reached."""

    stored: Stored

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.stored.columns

    def select(self, e: Emitter) -> str:
        alias, iteration = e.alias(), e.alias()
        return f"SELECT {e.columns(self, alias)} {pointed_at(e, alias, iteration)}"

    def label(self) -> str:
        return "the rows reached last, as they are stored"


@dataclass(frozen=True, eq=False)
class Derived(Leaf):
    """The rows that the last iteration of a recursion has made; under UNION ALL, with a weight."""

    stored: Stored
    is_all: bool

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.stored.columns

    @property
    def weighted(self) -> bool:
        return self.is_all

    def select(self, e: Emitter) -> str:
        alias = e.alias()
        return f"SELECT {e.columns(self, alias)} FROM {ITERATION} AS {alias}"

    def label(self) -> str:
        return "the rows made last"


@dataclass(frozen=True, eq=False)
class Imaged(Unary):
    """Rows of R with R's own types, each with its image."""

    lookup: Lookup

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.lookup.stored.columns, *self._extra, Column(IMAGE, "text", True))

    @property
    def _extra(self) -> tuple[Column, ...]:
        return self.child.columns[len(self.lookup.stored.columns) :]

    @property
    def shared(self) -> bool:
        return self.weighted

    def select(self, e: Emitter) -> str:
        # The branch without rows gives the types, which PostgreSQL resolves as it did for the query's own UNION.
        stored, typed = e.alias(), e.alias()
        source, alias = e.from_item(self.child)
        own = self.lookup.stored.names
        types = [f"0 AS {e.weight}"] if self.weighted else []
        types += [f"{stored}.{e.name(n)}" for n in own]
        types += [f"{stored}.{'tableoid' if c.name == ROW_TABLE else 'ctid'} AS {e.name(c.name)}" for c in self._extra]
        weight = [f"{alias}.{e.weight}"] if self.weighted else []
        items = weight + [f"{alias}.{e.name(n)}" for n in self.child.names]
        return (
            f"SELECT {typed}.*, {self.lookup.image(e, typed)} AS {e.name(IMAGE)} FROM ("
            f"SELECT {', '.join(types)} FROM {e.stored()} AS {stored} WHERE FALSE "
            f"UNION ALL SELECT {', '.join(items)} FROM {source}) AS {typed}"
        )

    def label(self) -> str:
        return "the change of one step" if self.weighted else "rows as they look"


def pointer(e: Emitter, alias: str, *, named: bool = False) -> str:
    table, ctid = f"{alias}.tableoid", f"{alias}.ctid"
    return f"{table} AS {e.name(ROW_TABLE)}, {ctid} AS {e.name(ROW_CTID)}" if named else f"{table}, {ctid}"


def pointed_at(e: Emitter, alias: str, iteration: str) -> str:
    """The stored rows whose pointers the iteration has, as a FROM."""
    same = f"{alias}.tableoid = {iteration}.{e.name(ROW_TABLE)} AND {alias}.ctid = {iteration}.{e.name(ROW_CTID)}"
    return f"FROM {ITERATION} AS {iteration} JOIN {e.stored()} AS {alias} ON {same}"


def iterated(names: Sequence[str], begin: str, step: str, result: str, *, is_all: bool = False) -> str:
    """`result`, a SELECT over the iteration: the least relation that has the rows of `begin` and of `step`.

    `step` reads, as the iteration, the rows that came last.
    """
    union = "UNION ALL" if is_all else "UNION"
    return f"WITH RECURSIVE {ITERATION}({', '.join(names)}) AS ({begin} {union} {step}) {result}"
