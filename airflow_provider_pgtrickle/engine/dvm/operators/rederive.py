"""ΔR = N − R⁰ ⋉ D for a recursion R = B ⊎ S(R), D the stored rows that may have lost a derivation, N the rows that are
then derived again or anew. If nothing is lost, D is empty, and N follows from the new rows alone.

    D    = least D ⊇ (neg ΔB ∪ neg ΔS(R⁰)) ∩ R⁰ with D ⊇ S¹(D) ∩ R⁰           what may have lost a derivation
    K    = R⁰ ▷ D                                                             what is kept as it is
    seed = (B¹ ⊎ S¹(K)) ⋉ D  ⊎  net⁺(ΔB + ΔS(K)) ▷ D                          derived otherwise, and newly derived
    N    = least N = seed ⊎ S¹(N)                 UNION: the set of them, ▷ K   what is to be stored

R⁰ is stored. neg ΔX are the rows of negative weight before anything is netted, because a lost derivation may be
masked by a gained one, even from the row that goes. D ⊆ R⁰ and N ⊆ R¹, so both iterations end if the query's does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import column
from airflow_provider_pgtrickle.engine.dvm.node import Column, Differ, Keys, Node
from airflow_provider_pgtrickle.engine.dvm.operators.keys import keys_from
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.recursion import Recursion, graft
from airflow_provider_pgtrickle.engine.dvm.operators.stored_rows import (
    IMAGE,
    ITERATION,
    POINTER_COLUMNS,
    POINTER_TYPES,
    ROW_CTID,
    ROW_TABLE,
    Derived,
    Imaged,
    LastReached,
    Located,
    Lookup,
    iterated,
    pointed_at,
    pointer,
)
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter


@dataclass(frozen=True, eq=False)
class Lost(Node):
    """D: the stored rows that may have lost a derivation."""

    changes: Node
    step: Imaged
    lookup: Lookup

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.changes, self.step)

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        step = inputs[1]
        assert isinstance(step, Imaged)
        return replace(self, changes=inputs[0], step=step)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.lookup.stored.columns, *POINTER_COLUMNS, Column(IMAGE, "text", True))

    @property
    def weighted(self) -> bool:
        return False

    @property
    def shared(self) -> bool:
        return True

    def select(self, e: Emitter) -> str:
        first, begun = e.from_item(self.changes)
        then, reached = e.from_item(self.step)
        one, two, iteration, held = e.alias(), e.alias(), e.alias(), e.alias()
        begin = (
            f"SELECT {pointer(e, one)} FROM {first} JOIN {e.stored()} AS {one} "
            f"ON {self.lookup.match(e, one, begun)} WHERE {begun}.{e.weight} < 0"
        )
        step = (
            f"SELECT {pointer(e, two)} FROM {then} JOIN {e.stored()} AS {two} ON {self.lookup.match(e, two, reached)}"
        )
        result = (
            f"SELECT {e.columns(self.lookup.stored, held)}, {pointer(e, held, named=True)}, "
            f"{self.lookup.image(e, held)} AS {e.name(IMAGE)} {pointed_at(e, held, iteration)}"
        )
        return iterated([e.name(ROW_TABLE), e.name(ROW_CTID)], begin, step, result)

    def label(self) -> str:
        return "D: stored rows that may have lost a derivation"


@dataclass(frozen=True, eq=False)
class Kept(Node):
    """K: the rows of `child` that are not in D. They carry pointers to their stored rows."""

    child: Node
    lost: Lost

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child, self.lost)

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        lost = inputs[1]
        assert isinstance(lost, Lost)
        return Kept(inputs[0], lost)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def weighted(self) -> bool:
        return self.child.weighted

    def restrict(self, keys: Keys) -> Node:
        return replace(self, child=self.child.restrict(keys))

    def select(self, e: Emitter) -> str:
        source, alias = e.from_item(self.child)
        return f"SELECT {e.columns(self.child, alias)} FROM {source} WHERE {_is_kept(e, alias, self.lost)}"

    def label(self) -> str:
        return "K: the others"


@dataclass(frozen=True, eq=False)
class Grown(Node):
    """N: the rows that are derived anew, from the kept rows and from N itself."""

    rederived: tuple[Imaged, ...]
    """B¹ and S¹(K), of which only rows that look like one of D count."""
    changes: Node
    lost: Lost
    step: Node
    lookup: Lookup
    is_all: bool

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (*self.rederived, self.changes, self.lost, self.step)

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        *rederived, changes, lost, step = inputs
        assert isinstance(lost, Lost)
        again = tuple(r for r in rederived if isinstance(r, Imaged))
        return replace(self, rederived=again, changes=changes, lost=lost, step=step)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.lookup.stored.columns

    @property
    def weighted(self) -> bool:
        return self.is_all

    def select(self, e: Emitter) -> str:
        seeds = [self._again(e, relation) for relation in self.rederived]
        seeds.append(self._anew(e))
        source, alias = e.from_item(self.step)
        where = "" if self.is_all else f" WHERE {self._is_new(e, alias)}"
        step = f"SELECT {e.columns(self, alias)} FROM {source}{where}"
        first, iteration = e.alias(), e.alias()
        begin = f"SELECT {e.columns(self, first)} FROM ({' UNION ALL '.join(seeds)}) AS {first}"
        result = f"SELECT {e.columns(self, iteration)} FROM {ITERATION} AS {iteration}"
        return iterated([e.name(n) for n in self.all_names], begin, step, result, is_all=self.is_all)

    def _again(self, e: Emitter, relation: Imaged) -> str:
        source, alias = e.from_item(relation)
        lost, key = e.from_item(self.lost)
        weight = f"1::bigint AS {e.weight}, " if self.is_all else ""
        return (
            f"SELECT {weight}{e.columns(self, alias, weight=False)} FROM {source} "
            f"WHERE {alias}.{e.name(IMAGE)} IN (SELECT {key}.{e.name(IMAGE)} FROM {lost})"
        )

    def _anew(self, e: Emitter) -> str:
        """net⁺(ΔB + ΔS(K)) ▷ D: rows that look the same are summed, since not every type can be grouped by."""
        source, alias = e.from_item(self.changes)
        lost, key = e.from_item(self.lost)
        net, image = e.alias(), f"{alias}.{e.name(IMAGE)}"
        where = (
            f"{image} NOT IN (SELECT {key}.{e.name(IMAGE)} FROM {lost}) "
            f"AND ({alias}.{e.name(ROW_CTID)} IS NULL OR {_is_kept(e, alias, self.lost)})"
        )
        if not self.is_all:
            where += f" AND {self._is_new(e, alias)}"
        return (
            f"SELECT {e.columns(self, net)} FROM ("
            f"SELECT (sum({alias}.{e.weight}) OVER same)::bigint AS {e.weight}, row_number() OVER same AS __pgt_nth, "
            f"{e.columns(self, alias, weight=False)} FROM {source} WHERE {where} "
            f"WINDOW same AS (PARTITION BY {image})) AS {net} "
            f"WHERE {net}.__pgt_nth = 1 AND {net}.{e.weight} > 0"
        )

    def _is_new(self, e: Emitter, row: str) -> str:
        """The condition that no kept row looks like `row`: ▷ K.

        OFFSET keeps PostgreSQL from a join that reads all stored rows in each iteration: it expects many new rows.
        """
        held = e.alias()
        each = " OFFSET 0" if self.lookup.matched else ""
        return (
            f"NOT EXISTS (SELECT 1 FROM {e.stored()} AS {held} "
            f"WHERE {self.lookup.match(e, held, row)} AND {_is_kept(e, held, self.lost, stored=True)}{each})"
        )

    def label(self) -> str:
        return f"N: rows derived anew, by {'UNION ALL' if self.is_all else 'UNION'}"


@dataclass(frozen=True, eq=False)
class Rederived(Node):
    """ΔR = N − R⁰ ⋉ D, as one relation, which only PostgreSQL computes, like the recursion itself."""

    grown: Grown
    lost: Lost
    out: tuple[str, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.grown, self.lost)

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        grown, lost = inputs
        assert isinstance(grown, Grown)
        assert isinstance(lost, Lost)
        return replace(self, grown=grown, lost=lost)

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(replace(c, name=n) for c, n in zip(self.grown.columns, self.out, strict=True))

    @property
    def weighted(self) -> bool:
        return True

    def select(self, e: Emitter) -> str:
        selects = []
        for each, node in ((-1, self.lost), (1, self.grown)):
            source, alias = e.from_item(node)
            weight = f"{alias}.{e.weight}" if node.weighted else str(each)
            items = ", ".join(
                f"{alias}.{e.name(n)} AS {e.name(out)}" for n, out in zip(self.grown.names, self.out, strict=True)
            )
            selects.append(f"SELECT {weight} AS {e.weight}, {items} FROM {source}")
        return " UNION ALL ".join(selects)

    def label(self) -> str:
        return "Rederived: N − D"


def rederived(d: Differ, recursion: Recursion, lookup: Lookup) -> Node | None:
    """The change of a recursion whose rows are stored, under the recursion's own names."""
    stored, itself, step = lookup.stored, recursion.itself, recursion.step
    located = Located(stored)
    branches = []
    base_change = d.delta(recursion.base)
    if base_change is not None:
        nowhere = tuple((n, exp.Cast(this=exp.null(), to=exp.DataType.build(t, udt=True))) for n, t in POINTER_TYPES)
        named = tuple((n, column(c)) for n, c in zip(stored.names, base_change.names, strict=True))
        branches.append(Project(base_change, named + nowhere))
    step_change = d.delta(graft(step, itself, _as(located, itself.names, keep=(ROW_TABLE, ROW_CTID))))
    if step_change is not None:
        branches.append(_as(step_change, stored.names, keep=(ROW_TABLE, ROW_CTID)))
    if not branches:
        return None
    changes = Imaged(UnionAll.of(branches), lookup)

    def stepped(over: Node) -> Node:
        return _as(graft(step, itself, _as(over, itself.names)), stored.names)

    lost = Lost(changes, Imaged(stepped(LastReached(stored)), lookup), lookup)
    again: list[Node] = [_as(recursion.base, stored.names), stepped(Kept(located, lost))]
    keys = keys_from(lost, [c.name for c in stored.columns if c.type is not None])
    if keys is not None:
        again = [node.restrict(keys) for node in again]
    onward = stepped(Derived(stored, recursion.is_all))
    grown = Grown(
        tuple(Imaged(node, lookup) for node in again),
        changes,
        lost,
        onward if recursion.is_all else Imaged(onward, lookup),
        lookup,
        recursion.is_all,
    )
    return Rederived(grown, lost, recursion.names)


def _as(node: Node, names: Sequence[str], keep: Sequence[str] = ()) -> Project:
    """The node's columns under other names, beside the columns `keep`, which keep their names."""
    own = [n for n in node.names if n not in (ROW_TABLE, ROW_CTID)]
    items = [(name, column(held)) for name, held in zip(names, own, strict=True)]
    return Project(node, (*items, *((n, column(n)) for n in keep)))


def _is_kept(e: Emitter, alias: str, lost: Lost, *, stored: bool = False) -> str:
    """The condition that a stored row is not in D. The row's pointer decides it."""
    source, key = e.from_item(lost)
    own = pointer(e, alias) if stored else f"{alias}.{e.name(ROW_TABLE)}, {alias}.{e.name(ROW_CTID)}"
    return f"({own}) NOT IN (SELECT {key}.{e.name(ROW_TABLE)}, {key}.{e.name(ROW_CTID)} FROM {source})"
