"""An index on the columns that identify a keyed stream table's rows, by which a difference looks stored rows up.

It speeds refreshes up and decides nothing, so a table that can't have it goes without.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.names import QualifiedName

#: The index's comment, which tells it from the user's own.
MARK = "pgtrickle: identity of the rows"

#: As many as an index takes.
_MOST_COLUMNS = 32

_MARKED = """
SELECT n.nspname, c.relname,
       (SELECT array_agg(a.attname::text ORDER BY k.place)
          FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
          JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum)
  FROM pg_catalog.pg_index i
  JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE i.indrelid = pg_catalog.to_regclass(%s)
   AND pg_catalog.obj_description(i.indexrelid, 'pg_class') = %s
"""


def ensure(conn: psycopg.Connection, table: QualifiedName, identity: Sequence[str], *, keyed: bool) -> None:
    """Have the index where the identity is a key that an index can hold, and no other of its kind."""
    wanted = list(identity) if keyed and 0 < len(identity) <= _MOST_COLUMNS else None
    there = [columns for _, _, columns in _marked(conn, table)]
    if there == ([wanted] if wanted else []):
        return
    drop(conn, table)
    if wanted is None:
        return
    try:
        with conn.transaction():
            conn.execute(
                sql.SQL("CREATE INDEX ON {} ({})").format(table.sql, sql.SQL(", ").join(map(sql.Identifier, wanted)))
            )
            (name,) = conn.execute(
                "SELECT max(indexrelid)::regclass::text FROM pg_catalog.pg_index"
                " WHERE indrelid = pg_catalog.to_regclass(%s)",
                [table.quoted],
            ).fetchone() or ("",)
            # The name comes from PostgreSQL, quoted where it must be.
            conn.execute(sql.SQL("COMMENT ON INDEX {} IS {}").format(sql.SQL(name), sql.Literal(MARK)))
    except (psycopg.errors.UndefinedObject, psycopg.errors.ProgramLimitExceeded):
        # A type without an order, or a value too large for a page: looked up by scanning, as any table.
        return


def drop(conn: psycopg.Connection, table: QualifiedName) -> bool:
    """Give the index up; whether there was one."""
    found = _marked(conn, table)
    for schema, name, _ in found:
        conn.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(schema, name)))
    return bool(found)


def _marked(conn: psycopg.Connection, table: QualifiedName) -> list[tuple[str, str, list[str]]]:
    return conn.execute(_MARKED, [table.quoted, MARK]).fetchall()
