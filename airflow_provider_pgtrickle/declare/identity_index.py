"""The index on the columns that identify a keyed stream table's rows.

A difference looks stored rows up by it, and it holds each identity to one row: what the query promises, PostgreSQL
then checks. A table that can't have it goes without, and is checked by a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.names import QualifiedName

#: The index's comment, which tells it from the user's own.
MARK = "pgtrickle: identity of the rows"

#: As many as an index takes.
_MOST_COLUMNS = 32

_MARKED = """
SELECT n.nspname, c.relname, i.indisunique,
       (SELECT array_agg(a.attname::text ORDER BY k.place)
          FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
          JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum)
  FROM pg_catalog.pg_index i
  JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE i.indrelid = pg_catalog.to_regclass(%s)
   AND pg_catalog.obj_description(i.indexrelid, 'pg_class') = %s
"""


@dataclass(frozen=True)
class _Found:
    name: sql.Identifier
    unique: bool
    columns: list[str]


def ensure(conn: psycopg.Connection, table: QualifiedName, identity: Sequence[str], *, keyed: bool) -> bool:
    """Have the index where the identity is a key that an index can hold, and no other of its kind.

    Whether it holds each identity to one row; `UniqueViolation` where one stands twice.
    """
    wanted = list(identity) if keyed and 0 < len(identity) <= _MOST_COLUMNS else []
    there = _marked(conn, table)
    if [found.columns for found in there] != ([wanted] if wanted else []):
        drop(conn, table)
        # A partitioned table takes a unique index only with its partition key in it.
        if wanted and not _create(conn, table, wanted, unique=True):
            _create(conn, table, wanted, unique=False)
        there = _marked(conn, table)
    return any(found.unique for found in there)


def drop(conn: psycopg.Connection, table: QualifiedName) -> bool:
    """Give the index up; whether there was one."""
    there = _marked(conn, table)
    for found in there:
        conn.execute(sql.SQL("DROP INDEX {}").format(found.name))
    return bool(there)


def _create(conn: psycopg.Connection, table: QualifiedName, columns: Sequence[str], *, unique: bool) -> bool:
    statement = "CREATE UNIQUE INDEX ON {} ({}) NULLS NOT DISTINCT" if unique else "CREATE INDEX ON {} ({})"
    try:
        with conn.transaction():
            conn.execute(sql.SQL(statement).format(table.sql, sql.SQL(", ").join(map(sql.Identifier, columns))))
            (name,) = conn.execute(
                "SELECT max(indexrelid)::regclass::text FROM pg_catalog.pg_index"
                " WHERE indrelid = pg_catalog.to_regclass(%s)",
                [table.quoted],
            ).fetchone() or ("",)
            # The name comes from PostgreSQL, quoted where it must be.
            conn.execute(sql.SQL("COMMENT ON INDEX {} IS {}").format(sql.SQL(name), sql.Literal(MARK)))
    except (
        psycopg.errors.UndefinedObject,
        psycopg.errors.ProgramLimitExceeded,
        psycopg.errors.FeatureNotSupported,
    ):
        # A type without an order, or a value too large for a page: looked up by scanning, as any table.
        return False
    return True


def _marked(conn: psycopg.Connection, table: QualifiedName) -> list[_Found]:
    rows = conn.execute(_MARKED, [table.quoted, MARK]).fetchall()
    return [_Found(sql.Identifier(schema, name), unique, columns) for schema, name, unique, columns in rows]
