"""Indexes of ours on a stream table, which differ from users' own by their comment.

They only make refreshes faster, so a table that can't have one does without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.names import QualifiedName

_INDEXES = """
SELECT i.indexrelid::bigint, n.nspname, c.relname, i.indisunique, i.indisreplident,
       (SELECT array_agg(a.attname::text ORDER BY k.ordinal)
          FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, ordinal)
          JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum),
       pg_catalog.obj_description(i.indexrelid, 'pg_class')
  FROM pg_catalog.pg_index i
  JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE i.indrelid = pg_catalog.to_regclass(%s)
"""


@dataclass(frozen=True)
class Index:
    oid: int
    name: sql.Identifier
    bare_name: str
    unique: bool
    is_replica_identity: bool
    columns: tuple[str, ...]
    mark: str | None


def marked(conn: psycopg.Connection, table: QualifiedName, mark: str) -> list[Index]:
    """The table's indexes with this comment."""
    return [index for index in _all(conn, table) if index.mark == mark]


def create(
    conn: psycopg.Connection, table: QualifiedName, columns: Sequence[str], mark: str, *, unique: bool = False
) -> bool:
    """Create an index; whether the table can have it. To a unique one NULL is a value like any other."""
    statement = "CREATE UNIQUE INDEX ON {} ({}) NULLS NOT DISTINCT" if unique else "CREATE INDEX ON {} ({})"
    try:
        with conn.transaction():
            before = {index.oid for index in _all(conn, table)}
            conn.execute(sql.SQL(statement).format(table.sql, sql.SQL(", ").join(map(sql.Identifier, columns))))
            for index in _all(conn, table):
                if index.oid not in before:
                    conn.execute(sql.SQL("COMMENT ON INDEX {} IS {}").format(index.name, sql.Literal(mark)))
    except (
        psycopg.errors.UndefinedObject,
        psycopg.errors.ProgramLimitExceeded,
        psycopg.errors.FeatureNotSupported,
    ):
        # The type has no order, a value is too large for a page, or the partition key is not in it. Refreshes then scan
        # the table.
        return False
    return True


def drop(conn: psycopg.Connection, table: QualifiedName, indexes: Sequence[Index]) -> bool:
    """Drop the indexes; whether there was one."""
    if any(index.is_replica_identity for index in indexes):
        # Without a replica identity PostgreSQL would refuse every update of a published table.
        conn.execute(sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(table.sql))
    dropped = [conn.execute(sql.SQL("DROP INDEX {}").format(index.name)) for index in indexes]
    return bool(dropped)


def _all(conn: psycopg.Connection, table: QualifiedName) -> list[Index]:
    return [
        Index(oid, sql.Identifier(schema, name), name, unique, is_replica_identity, tuple(columns or ()), mark)
        for oid, schema, name, unique, is_replica_identity, columns, mark in conn.execute(
            _INDEXES, [table.quoted]
        ).fetchall()
    ]
