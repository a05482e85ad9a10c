"""The index on a stream table's row ids, by which a difference finds the rows to delete or replace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.names import QualifiedName

_INDEXES = """
SELECT n.nspname, c.relname
  FROM pg_catalog.pg_index i
  JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND i.indkey::text = a.attnum::text
 WHERE i.indrelid = pg_catalog.to_regclass(%s) AND a.attname = %s
"""


def create(conn: psycopg.Connection, table: QualifiedName) -> None:
    """Create the index. It isn't unique, because the id is a hash; a match is confirmed on the identity columns."""
    conn.execute(sql.SQL("CREATE INDEX ON {} ({})").format(table.sql, sql.Identifier(ROW_ID)))


@contextmanager
def built_afterwards(conn: psycopg.Connection, table: QualifiedName) -> Iterator[None]:
    """Drop the index while many rows are inserted and build it afterwards, which costs a fraction."""
    for schema, name in conn.execute(_INDEXES, [table.quoted, ROW_ID]).fetchall():
        conn.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(schema, name)))
    yield
    create(conn, table)
