"""Indexes by which a recursion's change looks its stored rows up: by what its step joins.

They speed refreshes up and decide nothing, so a table that can't have one goes without.
"""

from __future__ import annotations

from collections.abc import Iterable

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.names import QualifiedName

#: The indexes' comment, which tells them from the user's own.
MARK = "pgtrickle: rows are looked up by it"

_MARKED = """
SELECT i.indexrelid::pg_catalog.regclass::text,
       (SELECT array_agg(a.attname::text ORDER BY k.place)
          FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
          JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum)
  FROM pg_catalog.pg_index i
 WHERE i.indrelid = pg_catalog.to_regclass(%s)
   AND pg_catalog.obj_description(i.indexrelid, 'pg_class') = %s
"""

_ALL = (
    "SELECT indexrelid::pg_catalog.regclass::text FROM pg_catalog.pg_index WHERE indrelid = pg_catalog.to_regclass(%s)"
)


def ensure(conn: psycopg.Connection, table: QualifiedName, lookups: Iterable[tuple[str, ...]]) -> None:
    """Have an index for each look-up, and no others of their kind."""
    wanted = {columns for columns in lookups if columns}
    for name, there in _marked(conn, table):
        if tuple(there) in wanted:
            wanted.discard(tuple(there))
        else:
            _drop(conn, name)
    for columns in sorted(wanted):
        _create(conn, table, columns)


def drop(conn: psycopg.Connection, table: QualifiedName) -> bool:
    """Give the indexes up; whether there was one."""
    there = _marked(conn, table)
    for name, _ in there:
        _drop(conn, name)
    return bool(there)


def _create(conn: psycopg.Connection, table: QualifiedName, columns: tuple[str, ...]) -> None:
    listed = sql.SQL(", ").join(map(sql.Identifier, columns))
    try:
        with conn.transaction():
            before = {name for (name,) in conn.execute(_ALL, [table.quoted])}
            conn.execute(sql.SQL("CREATE INDEX ON {} ({})").format(table.sql, listed))
            for (name,) in conn.execute(_ALL, [table.quoted]).fetchall():
                if name not in before:
                    # The name comes from PostgreSQL, quoted where it must be.
                    conn.execute(sql.SQL("COMMENT ON INDEX {} IS {}").format(sql.SQL(name), sql.Literal(MARK)))
    except (psycopg.errors.UndefinedObject, psycopg.errors.ProgramLimitExceeded):
        # A type without an order, or a value too large for a page: looked up by scanning, as any table.
        return


def _drop(conn: psycopg.Connection, name: str) -> None:
    conn.execute(sql.SQL("DROP INDEX {}").format(sql.SQL(name)))


def _marked(conn: psycopg.Connection, table: QualifiedName) -> list[tuple[str, list[str]]]:
    return conn.execute(_MARKED, [table.quoted, MARK]).fetchall()
