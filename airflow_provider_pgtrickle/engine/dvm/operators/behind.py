"""R ⋈ K: each row of R at or behind the first changed place of its partition, with what the rows before carry there.

    K = for each partition that ΔR touches: m, the least place in an order that a row of ΔR has, and c
    c = what the rows before m add up to, as the last of the stored rows before m tell it

Places are values of one column. Rows that tie with m are behind it, and rows that tie with the last place before m tell
together what is carried, so nothing depends on the order of rows that tie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from airflow_provider_pgtrickle.engine.dvm.node import Column, Key, Keys, Node, Onward
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import of_nulls
from airflow_provider_pgtrickle.engine.dvm.rendering import Emitter, Rows


@dataclass(frozen=True)
class Carried:
    """A column of K: the aggregate of a stored column over the last rows before m."""

    name: str
    by: str
    of: str


@dataclass(frozen=True, eq=False)
class Firsts(Node):
    """K: by partition the first changed place, and what the stored rows before it carry."""

    change: Node
    stored: Node
    pairs: tuple[tuple[str, str], ...]
    """Each column of the partition in the change → the stored one."""
    onward: Onward
    """From the stored rows' order to the change's column."""
    carried: tuple[Carried, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.change, self.stored)

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        change, stored = inputs
        return replace(self, change=change, stored=stored)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*map(self.change.column, self._own), *(Column(c.name) for c in self.carried))

    @property
    def _own(self) -> tuple[str, ...]:
        return (*(name for name, _ in self.pairs), self.onward.key)

    @property
    def weighted(self) -> bool:
        return False

    @property
    def shared(self) -> bool:
        return True

    def _whence(self, name: str) -> frozenset[tuple[str, str]]:
        return self.change.whence(name) if name in self._own else frozenset()

    def select(self, e: Emitter) -> str:
        first, last = e.alias(), e.alias()
        items = [f"{first}.{e.name(name)}" for name in self._own]
        items += [f"{last}.{e.name(c.name)}" for c in self.carried]
        source = f"({self._first(e)}) AS {first} CROSS JOIN LATERAL ({self._last(e, first)}) AS {last}"
        return f"SELECT {', '.join(items)} FROM {source}"

    def _first(self, e: Emitter) -> str:
        """SQL of the first changed row of each partition."""
        rows = replace(e.rows(self.change), weight=None)
        partition = [e.column_of(rows, name) for name, _ in self.pairs]
        way = "DESC" if self.onward.descending else "ASC"
        nulls = "FIRST" if self.onward.nulls_first else "LAST"
        order = [*partition, f"{e.column_of(rows, self.onward.key)} {way} NULLS {nulls}"]
        word = f"SELECT DISTINCT ON ({', '.join(partition)})" if partition else "SELECT"
        limit = "" if partition else " LIMIT 1"
        return f"{e.select(rows, e.listed(rows, self._own), word)} ORDER BY {', '.join(order)}{limit}"

    def _last(self, e: Emitter, first: str) -> str:
        """SQL of what the last stored rows before a first one carry, each kind of rows looked up by an index."""
        back = "ASC" if self.onward.descending else "DESC"
        found = list(self._before(e, first, f"ORDER BY {{}} {back} FETCH FIRST 1 ROW WITH TIES"))
        rows, place = e.alias(), e.name(self.onward.target)
        source = found[0]
        if len(found) > 1:
            nulls = "LAST" if self.onward.nulls_first else "FIRST"
            source = (
                f"SELECT {rows}.* FROM ({' UNION ALL '.join(f'({each})' for each in found)}) AS {rows}"
                f" ORDER BY {rows}.{place} {back} NULLS {nulls} FETCH FIRST 1 ROW WITH TIES"
            )
        last = e.alias()
        items = ", ".join(f"{c.by}({last}.{e.name(c.of)}) AS {e.name(c.name)}" for c in self.carried)
        return f"SELECT {items} FROM ({source}) AS {last}"

    def _before(self, e: Emitter, first: str, last: str) -> Iterator[str]:
        """SQL of the last stored rows before a first one: of a kind for each choice of columns that are NULL."""
        target, m = self.onward.target, f"{first}.{e.name(self.onward.key)}"
        is_nullable = not self.stored.column(target).not_null
        places = ["compared", "null"] if is_nullable else ["compared"]
        unsafe = [
            (n, s) for n, s in self.pairs if not (self.change.column(n).not_null or self.stored.column(s).not_null)
        ]
        for nulls, place in product(of_nulls(unsafe), places):
            rows = e.rows(self.stored)
            held = e.column_of(rows, target)
            terms = [f"{e.column_of(rows, s)} = {first}.{e.name(n)}" for n, s in self.pairs if (n, s) not in nulls]
            terms += [_are_null(e.column_of(rows, s), f"{first}.{e.name(n)}") for n, s in nulls]
            order = last.format(held)
            if place == "compared":
                terms.append(f"{held} {'>' if self.onward.descending else '<'} {m}")
            elif self.onward.nulls_first:
                # These rows all tie.
                terms += [_is_null(held), f"{m} IS DISTINCT FROM NULL"]
                order = ""
            else:
                terms += [f"{held} IS DISTINCT FROM NULL", _is_null(m)]
            names = dict.fromkeys([target, *(c.of for c in self.carried)])
            yield f"{e.select(rows.that(*terms), e.listed(rows, names))} {order}".rstrip()

    def label(self) -> str:
        pairs = ", ".join(name for name, _ in self.pairs)
        return f"Firsts by [{pairs}] of {self.onward.key}, carrying [{', '.join(c.name for c in self.carried)}]"


@dataclass(frozen=True, eq=False)
class Behind(Node):
    """A relation's rows at or behind the first place of their partition, each with columns of its key."""

    child: Node
    keys: Keys
    carried: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.child, self.keys.relation)

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        child, relation = inputs
        return replace(self, child=child, keys=replace(self.keys, relation=relation))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.child.columns, *map(self.keys.relation.column, self.carried))

    @property
    def unique_keys(self) -> frozenset[Key]:
        return self.child.unique_keys

    def rows(self, e: Emitter) -> Rows:
        rows, (relation, key) = e.item(self.child), e.from_item(self.keys.relation)
        onward = self.keys.onward
        assert onward is not None
        held, m = e.column_of(rows, onward.target), f"{key}.{e.name(onward.key)}"
        behind = f"{held} {'<=' if onward.descending else '>='} {m}"
        if not self.child.column(onward.target).not_null:
            behind = f"({behind} OR {_is_null(m if onward.nulls_first else held)})"
        same = [self._are_same(e, rows, key, *pair) for pair in self.keys.pairs]
        places = {**rows.places, **{name: (key, name) for name in self.carried}}
        source = f"{relation} CROSS JOIN {rows.source}"
        return Rows(source, places, where=(*rows.where, *same, behind), is_join=True)

    def _are_same(self, e: Emitter, rows: Rows, key: str, target: str, name: str) -> str:
        """SQL of whether a row and a key are of one partition. In arrays NULLs are equal, and arrays can be hashed."""
        one, two = e.column_of(rows, target), f"{key}.{e.name(name)}"
        if self.child.column(target).not_null or self.keys.relation.column(name).not_null:
            return f"{one} = {two}"
        return f"ARRAY[{one}] = ARRAY[{two}]"

    def label(self) -> str:
        onward = self.keys.onward
        return f"Behind the first {onward.target if onward else ''} by [{', '.join(t for t, _ in self.keys.pairs)}]"


def _is_null(value: str) -> str:
    return f"{value} IS NOT DISTINCT FROM NULL"


def _are_null(one: str, two: str) -> str:
    return f"{_is_null(one)} AND {_is_null(two)}"
