"""`frozen_before`: rows of a source don't change any more once a column of theirs is below a bound.

    frozen_before={"orders.placed": "90 days"}     placed < (now() AT TIME ZONE 'UTC' - interval '90 days')::date
    frozen_before={"orders.placed": "2026-01-01"}  placed < date '2026-01-01'

The columns are found by their names when the option is declared, and kept by their numbers: a table or column that gets
another name stays the one that was meant. The function that captures the source refuses changes of such rows; where
they are ignored, a copy of the source keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.declare import capturing
from airflow_provider_pgtrickle.engine.declare.options import as_length, frozen_bounds
from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.names import QualifiedName

#: Types whose values have an order that everybody understands, and how an age becomes a value of them.
_NUMBERS = ("smallint", "integer", "bigint", "numeric")
_AGES = {
    "date": "({})::date",
    "timestamp without time zone": "({})",
    "timestamp with time zone": "(({}) AT TIME ZONE 'UTC')",
}

# What a table reads may be captured under several of its parts.
_CAPTURED = """
    SELECT DISTINCT d.source_relid::bigint, n.nspname, c.relname
    FROM pgtrickle.pgt_dependencies d
    JOIN pgtrickle.pgt_change_tracking t USING (source_relid)
    JOIN pg_catalog.pg_class c ON c.oid = d.source_relid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE d.pgt_id = ANY(%s) AND d.source_pgt_id IS NULL AND NOT (d.pgt_id = %s AND d.source_relid = ANY(%s))
    ORDER BY 2, 3
"""
_COLUMN = """
    WITH RECURSIVE step(oid) AS (
        SELECT a.atttypid FROM pg_catalog.pg_attribute a WHERE a.attrelid = %(relid)s AND a.attnum = %(number)s
        UNION ALL
        SELECT t.typbasetype FROM pg_catalog.pg_type t JOIN step ON t.oid = step.oid WHERE t.typtype = 'd'
    )
    SELECT a.attname, a.atttypid::bigint, t.oid::bigint, pg_catalog.format_type(t.oid, NULL)
    FROM pg_catalog.pg_attribute a, step JOIN pg_catalog.pg_type t ON t.oid = step.oid AND t.typtype <> 'd'
    WHERE a.attrelid = %(relid)s AND a.attnum = %(number)s AND NOT a.attisdropped
"""


@dataclass(frozen=True)
class _Found:
    """A column that the option names, as it is in the catalog."""

    declared: str
    relid: int
    number: int
    column_type: int
    base_type: int
    bound: str


def hold(conn: psycopg.Connection, st: StreamTable, leaving: Iterable[int] = ()) -> None:
    """Let the sources of the stream table refuse what its option says, from now on.

    `leaving`: the sources that it reads itself until an altered query is carried out.
    """
    before = {found.declared: found for found in _stored(conn, st.id)}
    refused = None if st.ignores_breaches else st.frozen_before
    wanted = frozen_bounds(refused) if refused is not None else {}
    if not wanted and not before:
        return
    read = records.with_parts(conn, [st.id])
    captured = {relid: QualifiedName(*name) for relid, *name in conn.execute(_CAPTURED, [read, st.id, list(leaving)])}
    after = [_find(conn, captured, declared, bound, before.get(declared)) for declared, bound in wanted.items()]
    if set(after) != set(before.values()):
        conn.execute("DELETE FROM pgtrickle.pgt_frozen WHERE pgt_id = %s", [st.id])
        for found in after:
            conn.execute(
                "INSERT INTO pgtrickle.pgt_frozen"
                " (pgt_id, declared, source_relid, attnum, column_type, base_type, bound)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s)",
                [st.id, *astuple(found)],
            )
    capturing.settle(conn, read)


def conditions(conn: psycopg.Connection, captured: Mapping[int, QualifiedName], frozen_before: str) -> dict[int, str]:
    """SQL of which rows of each table are frozen, over its columns and `now()`, by the table's oid."""
    terms: dict[int, list[str]] = {}
    for declared, bound in frozen_bounds(frozen_before).items():
        found = _find(conn, captured, declared, bound, None)
        column = _column(conn, (found.relid, found.number))
        assert column is not None  # it was just found
        terms.setdefault(found.relid, []).append(f"{sql.Identifier(column[0]).as_string(conn)} < {found.bound}")
    return {relid: " OR ".join(of_table) for relid, of_table in terms.items()}


def _stored(conn: psycopg.Connection, pgt_id: int) -> list[_Found]:
    rows = conn.execute(
        "SELECT declared, source_relid::bigint, attnum, column_type::bigint, base_type::bigint, bound"
        " FROM pgtrickle.pgt_frozen"
        " WHERE pgt_id = %s",
        [pgt_id],
    ).fetchall()
    return [_Found(*row) for row in rows]


def _find(
    conn: psycopg.Connection,
    captured: Mapping[int, QualifiedName],
    declared: str,
    bound: str,
    before: _Found | None,
) -> _Found:
    """The column, by its number if it was found before and is still there, else by its name."""
    table, _, name = declared.rpartition(".")
    place = (before.relid, before.number) if before is not None and before.relid in captured else None
    column = _column(conn, place) if place is not None else None
    if place is None or column is None:
        place = _named(conn, captured, declared, table, name)
        column = _column(conn, place)
    assert column is not None
    where, column_type, base_type, spoken = column
    return _Found(
        declared, *place, column_type, base_type, _bound(conn, f"{captured[place[0]]}.{where}", spoken, bound)
    )


def _named(
    conn: psycopg.Connection, captured: Mapping[int, QualifiedName], declared: str, table: str, name: str
) -> tuple[int, int]:
    meant = QualifiedName.parse(table, "")
    relids = [relid for relid, own in captured.items() if meant.name == own.name and meant.schema in ("", own.schema)]
    if len(relids) != 1:
        listed = ", ".join(map(str, captured.values())) or "none"
        said = "several captured tables" if relids else "no captured table"
        raise UsageError(
            f"frozen_before names {declared}, and the stream table reads {said} of that name",
            remedy=f"Name the table as one of these: {listed}; what refreshes write, or what isn't captured, has no"
            " writers who could be refused.",
        )
    row = conn.execute(
        "SELECT attnum FROM pg_catalog.pg_attribute"
        " WHERE attrelid = %s AND attname = %s AND attnum > 0 AND NOT attisdropped",
        [relids[0], QualifiedName.parse(name, "").name],
    ).fetchone()
    if row is None:
        raise UsageError(
            f"frozen_before names {declared}, and {captured[relids[0]]} has no such column",
            remedy="Name a column of the table, or alter the stream table: frozen_before 'none'.",
        )
    return relids[0], row[0]


def _column(conn: psycopg.Connection, place: tuple[int, int]) -> tuple[str, int, int, str] | None:
    """Its name and type, and the type in which it is compared."""
    return conn.execute(_COLUMN, {"relid": place[0], "number": place[1]}).fetchone()


def _bound(conn: psycopg.Connection, column: str, spoken: str, bound: str) -> str:
    """SQL of the bound, as a value of the column's type."""
    if as_length(bound) is not None and spoken in _AGES:
        return _AGES[spoken].format(f"now() AT TIME ZONE 'UTC' - '{bound}'::interval")
    literal = f"'{bound}+00'" if spoken == "timestamp with time zone" else f"'{bound}'"
    written = f"{literal}::{spoken}"
    if spoken in (*_NUMBERS, *_AGES):
        try:
            with conn.transaction():
                conn.execute(f"SELECT {written}".encode())
            return written
        except psycopg.errors.DataError:
            pass
    raise UsageError(
        f"frozen_before can't compare {column}, which is {spoken}, with {bound!r}",
        remedy="Use a date or time with an age or an instant in UTC, or a whole number or numeric with a number.",
    )
