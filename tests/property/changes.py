"""Random transactions: every statement that writes, by values, by other tables, and by what follows from them."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.property.kinds import BIGINT, INT, MONEY, TEXT, Column
from tests.property.tables import Table, World


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
def wheres(draw: st.DrawFn, table: Table) -> str:
    column = draw(st.sampled_from([c for c in table.columns if c.kind.comparable]))
    value = draw(_nullable(column))
    comparison = draw(st.sampled_from(("IS NOT DISTINCT FROM", "IS DISTINCT FROM", "<=")))
    return f"{column.name} {comparison} {value}"


@st.composite
def updates(draw: st.DrawFn, table: Table) -> str:
    column = draw(st.sampled_from(table.columns))
    value = draw(column.kind.literal()) if column.name in table.key else draw(_nullable(column))
    condition = draw(wheres(table))
    if column.kind in (INT, MONEY) and draw(st.booleans()):
        value = f"{column.name} + 1"
    return f"UPDATE {table.name} SET {column.name} = {value} WHERE {condition}"


@st.composite
def upserts(draw: st.DrawFn, table: Table) -> str:
    """Falls back to doubling a row where there is no key to meet."""
    row = draw(_row(table))
    if not table.key:
        return f"INSERT INTO {table.name} VALUES {row}, {row}"
    changed = draw(st.sampled_from((table.columns[-1].name, table.columns[0].name)))
    return (
        f"INSERT INTO {table.name} VALUES {row}, {draw(_row(table))} ON CONFLICT ({', '.join(table.key)})"
        f" DO UPDATE SET {changed} = excluded.{changed}"
    )


@st.composite
def rekeyings(draw: st.DrawFn, table: Table) -> str:
    """Every row gets another first column: the key, where there is one."""
    first = table.columns[0]
    if first.kind in (INT, BIGINT):
        value = draw(st.sampled_from((f"{first.name} + 10", f"100 - {first.name}", f"{first.name} + 1")))
    elif first.kind is TEXT:
        value = f"{first.name} || 'x'"
    else:
        return draw(updates(table))
    return f"UPDATE {table.name} SET {first.name} = {value}"


@st.composite
def merges(draw: st.DrawFn, table: Table) -> str:
    """Updates, deletes and inserts in one statement."""
    names = [column.name for column in table.columns]
    rows = draw(st.lists(_row(table), min_size=1, max_size=3))
    by = " AND ".join(f"m.{name} IS NOT DISTINCT FROM s.{name}" for name in table.key or (names[0],))
    typed = ", ".join(f"{c.name}::{c.kind.type} AS {c.name}" for c in table.columns)
    matched = draw(
        st.sampled_from(
            (
                f"UPDATE SET {names[-1]} = s.{names[-1]}",
                "DELETE",
                "DO NOTHING",
                f"UPDATE SET {names[0]} = s.{names[0]}, {names[-1]} = NULL",
            )
        )
    )
    condition = draw(st.sampled_from(("", f" AND m.{names[-1]} IS NOT NULL")))
    source = f"(SELECT {typed} FROM (VALUES {', '.join(rows)}) AS v({', '.join(names)})) AS s"
    return (
        f"MERGE INTO {table.name} AS m USING {source} ON {by} WHEN MATCHED{condition} THEN {matched}"
        f" WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES ({', '.join(f's.{n}' for n in names)})"
    )


@st.composite
def chains(draw: st.DrawFn, tables: tuple[Table, ...]) -> str:
    """Statements in WITH: all of them are one, and see the same rows."""
    one, two = draw(st.sampled_from(tables)), draw(st.sampled_from(tables))
    first = draw(st.sampled_from((f"DELETE FROM {one.name} WHERE {draw(wheres(one))}", draw(updates(one)))))
    if one == two and first.startswith("DELETE"):
        # What was taken comes back.
        return f"WITH gone AS ({first} RETURNING *) INSERT INTO {one.name} SELECT * FROM gone"
    second = draw(
        st.sampled_from((draw(inserts(two)), draw(updates(two)), f"DELETE FROM {two.name} WHERE {draw(wheres(two))}"))
    )
    return f"WITH gone AS ({first} RETURNING 1) {second}"


@st.composite
def copies(draw: st.DrawFn, table: Table) -> str:
    conflict = (
        f" ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {table.columns[-1].name} = NULL" if table.key else ""
    )
    few = f"(SELECT count(*) FROM {table.name}) < 20"
    return f"INSERT INTO {table.name} SELECT * FROM {table.name} WHERE {draw(wheres(table))} AND {few}{conflict}"


@st.composite
def statements(draw: st.DrawFn, tables: tuple[Table, ...]) -> str:
    table = draw(st.sampled_from(tables))
    kinds = "insert delete update update upsert insert empty refill rekey merge chain copy"
    # What others refer to has more that follows from it.
    refers = any(t.reference is not None and t.reference[1].startswith(f"{table.name} ") for t in tables)
    what = draw(st.sampled_from(kinds.split() + ["rekey"] * 3 * refers))
    if what == "delete":
        return f"DELETE FROM {table.name} WHERE {draw(wheres(table))}"
    if what == "empty":
        return f"DELETE FROM {table.name}"
    if what == "refill":
        return draw(inserts(table, most=6))
    if what == "chain":
        return draw(chains(tables))
    made = {
        "insert": inserts,
        "update": updates,
        "upsert": upserts,
        "rekey": rekeyings,
        "merge": merges,
        "copy": copies,
    }
    return draw(made[what](table))


def histories(world: World, query: str) -> st.SearchStrategy[list[list[str]]]:
    """At least three cycles of changes to what the query reads, or what that refers to."""
    transaction = st.lists(statements(world.concerned(query)), min_size=1, max_size=4)
    return st.lists(transaction, min_size=3, max_size=4)
