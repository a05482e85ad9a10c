"""Random schemas, their first rows, and random transactions on them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.property.kinds import BIGINT, INT, MONEY, STORED, TEXT, Column

_NAMES = ("a", "b", "c", '"D e"', '"order"')


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def ddl(self) -> str:
        parts = [f"{column.name} {column.kind.type}" for column in self.columns]
        if self.key:
            parts.append(f"PRIMARY KEY ({', '.join(self.key)})")
        return f"CREATE TABLE {self.name} ({', '.join(parts)})"


@dataclass(frozen=True)
class World:
    tables: tuple[Table, ...]
    rows: tuple[str, ...]

    @property
    def ddl(self) -> tuple[str, ...]:
        return (*(table.ddl for table in self.tables), *self.rows)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Two to four tables, keyed or not, with up to eight rows each."""
    tables = tuple(draw(_tables(f"t{number}")) for number in range(draw(st.integers(2, 4))))
    rows = [draw(inserts(table, least=3, most=8)) for table in tables if draw(st.integers(0, 5)) < 5]
    return World(tables, tuple(rows))


@st.composite
def _tables(draw: st.DrawFn, name: str) -> Table:
    first = draw(st.sampled_from((INT, INT, TEXT, BIGINT)))
    others = draw(st.lists(st.sampled_from(STORED), min_size=1, max_size=4))
    columns = tuple(Column(label, kind) for label, kind in zip(_NAMES, [first, *others], strict=False))
    key_size = draw(st.sampled_from((1, 0, 0, 2)))
    return Table(name, columns, tuple(column.name for column in columns[:key_size]))


@st.composite
def _row(draw: st.DrawFn, table: Table) -> str:
    values = [
        draw(column.kind.literal()) if column.name in table.key else draw(_nullable(column)) for column in table.columns
    ]
    return f"({', '.join(values)})"


def _nullable(column: Column) -> st.SearchStrategy[str]:
    return st.sampled_from((*column.kind.literals, "NULL"))


@st.composite
def inserts(draw: st.DrawFn, table: Table, least: int = 1, most: int = 3) -> str:
    rows = draw(st.lists(_row(table), min_size=least, max_size=most))
    conflict = " ON CONFLICT DO NOTHING" if table.key else ""
    return f"INSERT INTO {table.name} VALUES {', '.join(rows)}{conflict}"


@st.composite
def _wheres(draw: st.DrawFn, table: Table) -> str:
    column = draw(st.sampled_from(table.columns))
    value = draw(_nullable(column))
    comparison = draw(st.sampled_from(("IS NOT DISTINCT FROM", "IS DISTINCT FROM", "<=")))
    return f"{column.name} {comparison} {value}"


@st.composite
def updates(draw: st.DrawFn, table: Table) -> str:
    column = draw(st.sampled_from(table.columns))
    value = draw(column.kind.literal()) if column.name in table.key else draw(_nullable(column))
    where = draw(_wheres(table))
    if column.kind in (INT, MONEY) and draw(st.booleans()):
        value = f"{column.name} + 1"
    return f"UPDATE {table.name} SET {column.name} = {value} WHERE {where}"


@st.composite
def upserts(draw: st.DrawFn, table: Table) -> str:
    """Falls back to doubling a row where there is no key to meet."""
    row = draw(_row(table))
    if not table.key:
        return f"INSERT INTO {table.name} VALUES {row}, {row}"
    column = table.columns[-1].name
    return (
        f"INSERT INTO {table.name} VALUES {row} ON CONFLICT ({', '.join(table.key)})"
        f" DO UPDATE SET {column} = excluded.{column}"
    )


@st.composite
def statements(draw: st.DrawFn, tables: tuple[Table, ...]) -> str:
    table = draw(st.sampled_from(tables))
    what = draw(st.sampled_from(("insert", "delete", "update", "update", "upsert", "insert", "empty", "refill")))
    if what == "insert":
        return draw(inserts(table))
    if what == "delete":
        return f"DELETE FROM {table.name} WHERE {draw(_wheres(table))}"
    if what == "update":
        return draw(updates(table))
    if what == "upsert":
        return draw(upserts(table))
    if what == "empty":
        return f"DELETE FROM {table.name}"
    return draw(inserts(table, most=6))


def histories(world: World, query: str) -> st.SearchStrategy[list[list[str]]]:
    """At least three cycles of changes to what the query reads."""
    read = tuple(table for table in world.tables if re.search(rf"\b{table.name}\b", query))
    transaction = st.lists(statements(read), min_size=1, max_size=4)
    return st.lists(transaction, min_size=3, max_size=4)
