"""Nodes become a statement here: `Rows` are on their way into a SELECT, and an `Emitter` writes it in a dialect.

An operator that only filters, renames or joins hands its `Rows` on, so that the operators above it write one SELECT
instead of nested ones. `Emitter` puts them together. Its subclasses know a dialect: PostgreSQL's is in `emit.py`,
Spark's in `lower/spark_emit.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.schema import Source

Place = tuple[str, str]
"""The alias of a FROM item, and a column's name in it."""
Pairs = Sequence[tuple[str, str]]
"""(column of the rows, column of the key set) of a semi-join."""


@dataclass(frozen=True)
class Weight:
    """The weight of a row is the product of these factors.

    >>> Weight.of("a").times(Weight.of("b")).negated().factors
    ((-1, 'a'), (1, 'b'))
    """

    factors: tuple[tuple[int, str | None], ...]
    """(sign, alias of the relation whose weight it is); None stands for the number one."""

    @classmethod
    def of(cls, alias: str | None) -> Weight:
        return cls(((1, alias),))

    @property
    def is_column(self) -> bool:
        """Whether it is one relation's weight column, unchanged."""
        (sign, alias), *others = self.factors
        return sign > 0 and alias is not None and not others

    def negated(self) -> Weight:
        (sign, alias), *others = self.factors
        return Weight(((-sign, alias), *others))

    def times(self, other: Weight) -> Weight:
        return Weight(self.factors + other.factors)


ONE = Weight.of(None)


@dataclass(frozen=True)
class Rows:
    """The contents of FROM and WHERE, and how each column is written there."""

    source: str
    """The text after FROM."""
    places: Mapping[str, Place]
    weight: Weight | None = None
    where: tuple[str, ...] = ()
    is_join: bool = False
    """Whether the source is several relations, whose join order PostgreSQL's planner chooses."""

    @property
    def is_item(self) -> bool:
        """Whether the rows may stand as one relation among others in a FROM."""
        return not self.where and not self.is_join

    def that(self, *terms: str) -> Rows:
        """Return the rows that meet further conditions."""
        return replace(self, where=(*self.where, *terms))

    def under(self, names: Mapping[str, str]) -> Rows:
        """Return the same rows with other names; `names` maps each new name to the present one."""
        return replace(self, places={new: self.places[name] for new, name in names.items()})

    @property
    def clauses(self) -> str:
        where = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        return f"FROM {self.source}{where}"


@dataclass(frozen=True)
class SharedSubquery:
    """A subquery of a statement that has a name of its own, because several other subqueries read it."""

    text: str
    materialized: bool | None = None
    """Whether PostgreSQL is told to compute it once, or told not to; None leaves it to PostgreSQL."""

    def __str__(self) -> str:
        word = {True: "MATERIALIZED ", False: "NOT MATERIALIZED ", None: ""}[self.materialized]
        return f"{word}({self.text})"


class Relation(Protocol):
    """The renderer knows a node by these members alone."""

    @property
    def inputs(self) -> Sequence[Relation]: ...
    @property
    def names(self) -> Sequence[str]: ...
    @property
    def all_names(self) -> Sequence[str]: ...
    @property
    def weighted(self) -> bool: ...
    @property
    def combines(self) -> bool: ...
    def is_apart(self, uses: int) -> bool: ...
    def select(self, e: Emitter) -> str: ...
    def rows(self, e: Emitter) -> Rows | None: ...


class Emitter(ABC):
    """An emitter writes one statement."""

    weight: str
    """The name of the weight column, as the dialect writes it."""
    has_indexes = True
    """Whether the dialect has indexes, so that a join may look rows up instead of reading all."""

    def __init__(self) -> None:
        self._shared_subqueries: dict[str, SharedSubquery] = {}
        self._shared: dict[int, str] = {}
        self._uses: dict[int, int] = {}
        self._aliases = 0

    # -- what a dialect says -------------------------------------------------------------------------

    @abstractmethod
    def name(self, name: str) -> str:
        """Return a name in quotes."""

    @abstractmethod
    def expression(self, expression: exp.Expr, alias: str | Mapping[str, Place], is_old: bool = False) -> str:
        """Return an expression with its row's columns qualified, and the tables inside it at the right version."""

    @abstractmethod
    def shared_name(self, number: int, node: Relation) -> str:
        """The name of a node that is computed apart."""

    def is_distinct(self, is_delta: bool) -> bool:
        """Whether a key set says DISTINCT."""
        return True

    def semi_join(self, child: Relation, keys: Relation, pairs: Pairs, null_matches: bool) -> str | None:
        """Return the dialect's own spelling of a semi-join; None where it has none."""
        return None

    # -- what only PostgreSQL has: in Spark's plan every node that calls these is inside a leaf ---------

    def record_semi_join(self, child: Relation, keys: Relation, pairs: Pairs) -> str:
        """Return a semi-join that compares rows as records."""
        raise NotImplementedError

    def stored(self) -> str:
        """Return the name of the stream table itself."""
        raise NotImplementedError

    def cut_by(self) -> str | None:
        """Return the column by whose ranges the stream table is partitioned; None if it isn't."""
        return None

    @property
    def knows_least(self) -> bool:
        """Whether the least value of any column in the changes is known."""
        return False

    def least(self, columns: Collection[tuple[str, str]], compared: str | None, *, most: bool = False) -> str | None:
        """Return the least value, or the greatest, that the changes of these columns have, by (source key, column).

        None if it isn't known, or not comparable with a value of the type `compared`.
        """
        return None

    def relation(self, source: Source, is_old: bool) -> str:
        """Return the FROM item for a source at one version."""
        raise NotImplementedError

    def relation_where(self, source: Source, is_old: bool, condition: Callable[[str], str]) -> str | None:
        """Return a FROM item for a source's rows that meet a condition; None where filtering the source is as good."""
        raise NotImplementedError

    def is_table(self, source: Source, is_old: bool) -> bool:
        """Whether a source at one version is simply its table."""
        raise NotImplementedError

    def changes(self, source: Source, part: str | None = None) -> str:
        """Return the FROM item for a source's change, or for a slice of it."""
        raise NotImplementedError

    # -- the statement -------------------------------------------------------------------------------

    def count(self, root: Relation) -> None:
        """Count how often each node is read, because that decides which nodes are computed apart."""
        stack = [root]
        while stack:
            node = stack.pop()
            self._uses[id(node)] = self._uses.get(id(node), 0) + 1
            if self._uses[id(node)] == 1:
                stack.extend(node.inputs)

    def from_item(self, node: Relation) -> tuple[str, str]:
        """Return (`item AS alias`, alias) of a node as it stands in FROM."""
        alias = self.alias()
        return f"{self.named(node) or f'({node.select(self)})'} AS {alias}", alias

    def named(self, node: Relation) -> str | None:
        """Return the name of a node that is computed apart; None for any other."""
        return self._apart(node) if node.is_apart(self._uses.get(id(node), 0)) else None

    def rows(self, node: Relation) -> Rows:
        """Return a node as part of the SELECT around it if it can be, else as a derived table in that SELECT."""
        own = node.rows(self) if self.named(node) is None else None
        return own or self._derived(node, *self.from_item(node))

    def item(self, node: Relation) -> Rows:
        """Return a node as one relation of a FROM."""
        rows = self.rows(node)
        if rows.is_item:
            return rows
        alias = self.alias()
        return self._derived(node, f"({self.select(rows, self.listed(rows, node.names))}) AS {alias}", alias)

    def _derived(self, node: Relation, item: str, alias: str) -> Rows:
        return Rows(item, {n: (alias, n) for n in node.names}, Weight.of(alias) if node.weighted else None)

    def select(self, rows: Rows, items: Iterable[str], word: str = "SELECT") -> str:
        """Return one SELECT of rows, with their weight first."""
        weight = []
        if rows.weight is not None:
            named = "" if rows.weight.is_column else f" AS {self.weight}"
            weight = [self.weighed(rows.weight) + named]
        return f"{word} {', '.join([*weight, *items]) or 'NULL'} {rows.clauses}"

    def weighed(self, weight: Weight) -> str:
        """Return a weight as an expression."""
        return " * ".join(
            f"{'-' if sign < 0 else ''}{'1' if alias is None else f'{alias}.{self.weight}'}"
            for sign, alias in weight.factors
        )

    def listed(self, rows: Rows, names: Iterable[str]) -> list[str]:
        """Return the columns for a SELECT's list, each under its own name."""
        listed = []
        for name in names:
            alias, held = rows.places[name]
            listed.append(f"{alias}.{self.name(held)}" + ("" if held == name else f" AS {self.name(name)}"))
        return listed

    def column_of(self, rows: Rows, name: str) -> str:
        alias, held = rows.places[name]
        return f"{alias}.{self.name(held)}"

    def columns(self, node: Relation, alias: str, weight: bool = True) -> str:
        names = node.all_names if weight else node.names
        return ", ".join(f"{alias}.{self.name(n)}" for n in names)

    def body(self, node: Relation) -> str:
        """Return the SELECT of a node that another node uses as its own."""
        return node.select(self)

    def apart(self, node: Relation) -> Rows:
        """Return a node that is computed once, however PostgreSQL plans the SELECT around it."""
        alias = self.alias()
        return self._derived(node, f"{self._apart(node)} AS {alias}", alias)

    def _apart(self, node: Relation) -> str:
        if id(node) not in self._shared:
            definition = node.select(self)
            name = self.shared_name(len(self._shared) + 1, node)
            self._shared_subqueries[name] = SharedSubquery(definition, materialized=True)
            self._shared[id(node)] = name
        return self._shared[id(node)]

    def alias(self) -> str:
        self._aliases += 1
        return f"__pgt_q{self._aliases}"


def placed(reference: exp.Column, where: str | Mapping[str, Place]) -> exp.Column:
    """Return a column of the row at hand as a SELECT writes it: qualified by one alias, or as its `Place` says."""
    alias, name = (where, reference.name) if isinstance(where, str) else where[reference.name]
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(alias))
