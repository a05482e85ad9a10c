"""What random queries are made of: relations, scopes, and the small parts that every operator draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.property.expressions import comparable, expressions, predicates
from tests.property.kinds import Column
from tests.property.tables import World

Columns = tuple[Column, ...]


@dataclass(frozen=True)
class Relation:
    """Something to select from: a table's name or a SELECT."""

    text: str
    columns: Columns
    is_table: bool = False
    key: tuple[str, ...] = ()
    """Of a table: the primary key, where other columns follow from it."""

    def aliased(self, alias: str) -> str:
        return f"{self.text} AS {alias}" if self.is_table else f"({self.text}) AS {alias}"

    def of(self, alias: str) -> Columns:
        return tuple(column.of(alias) for column in self.columns)

    @property
    def scalars(self) -> Columns:
        return tuple(column for column in self.columns if comparable(column))


def select(columns: list[Column] | Columns, rest: str, distinct: str = "") -> Relation:
    """`SELECT columns rest`, its columns renamed c0, c1, …"""
    listed = ", ".join(f"{column.name} AS c{number}" for number, column in enumerate(columns))
    return Relation(
        f"SELECT {distinct}{listed} {rest}",
        tuple(Column(f"c{number}", column.kind) for number, column in enumerate(columns)),
    )


Operator = Callable[["Scope"], st.SearchStrategy[Relation]]


@dataclass(frozen=True)
class Scope:
    """What a sub-query may be made of."""

    world: World
    level: int
    operators: tuple[Operator, ...]
    shadows: bool
    """Whether every level has the same aliases, so that those within shadow those without."""

    def alias(self, letter: str) -> str:
        return letter if self.shadows else f"{letter}{self.level}"

    @property
    def below(self) -> Scope:
        return replace(self, level=self.level - 1)


@st.composite
def relations(draw: st.DrawFn, scope: Scope) -> Relation:
    if scope.level == 0:
        table = draw(st.sampled_from(scope.world.tables))
        return Relation(table.name, table.columns, is_table=True, key=() if table.checked_at_end else table.key)
    return draw(draw(st.sampled_from(scope.operators))(scope))


@st.composite
def others(draw: st.DrawFn, scope: Scope) -> Relation:
    """The second operand: as a rule a shallow one, or queries would grow without limit."""
    return draw(relations(replace(scope, level=draw(st.sampled_from((0, 0, 0, min(1, scope.level)))))))


@st.composite
def outputs(draw: st.DrawFn, columns: Columns) -> list[Column]:
    """Some columns and expressions over them, no more than six."""
    chosen = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=5, unique=True))
    if draw(st.integers(0, 9)) == 9:
        chosen.append(chosen[0])
    scalar = tuple(column for column in columns if comparable(column))
    if bool(scalar) and draw(st.booleans()):
        chosen.append(draw(expressions(columns)))
    return chosen


@st.composite
def where(draw: st.DrawFn, columns: Columns) -> str:
    scalar = tuple(column for column in columns if comparable(column))
    return f"WHERE {draw(predicates(scalar))}" if bool(scalar) and draw(st.booleans()) else ""


def pairs(left: Columns, right: Columns) -> list[tuple[Column, Column]]:
    """Columns that can be compared for equality, most telling first."""
    found = [(a, b) for a in left for b in right if comparable(a) and comparable(b) and a.kind.type == b.kind.type]
    return found or [(a, b) for a in left for b in right if a.kind.numeric and b.kind.numeric]


@st.composite
def matching(draw: st.DrawFn, left: Columns, right: Columns) -> str | None:
    found = pairs(left, right)
    if not found:
        return None
    chosen = draw(st.lists(st.sampled_from(found), min_size=1, max_size=2, unique=True))
    return " AND ".join(f"{a.name} = {b.name}" for a, b in chosen)
