"""The columns a stream table stores, with the types, modifiers and collations PostgreSQL itself gives them."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.database import scalar
from airflow_provider_pgtrickle.engine.catalog.records import StorageColumn
from airflow_provider_pgtrickle.engine.catalog.search_path import pin
from airflow_provider_pgtrickle.engine.dvm import View

_DESCRIBE = """
SELECT a.attname,
       pg_catalog.format_type(a.atttypid, a.atttypmod),
       CASE WHEN a.attcollation <> t.typcollation
            THEN pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.collname) END,
       a.attnotnull
  FROM pg_catalog.pg_attribute a
  JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
  LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
  LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace
 WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum
"""


@dataclass(frozen=True)
class Column:
    """One column as CREATE TABLE needs it."""

    name: str
    type: str
    """The type as `format_type` prints it, which is safe to give back to PostgreSQL."""
    collation: str | None = None
    """The collation, quoted by PostgreSQL; None if it is the type's own."""
    hidden: bool = False
    not_null: bool = False
    """It belongs to an identity that is never NULL, by which a publication can tell rows apart."""

    @property
    def ddl(self) -> sql.Composed:
        """Name, type and collation, for CREATE TABLE and ADD COLUMN."""
        parts = [sql.Identifier(self.name), sql.SQL(self.type)]
        if self.collation:
            parts.append(sql.SQL(f"COLLATE {self.collation}"))
        if self.not_null:
            parts.append(sql.SQL("NOT NULL"))
        return sql.SQL(" ").join(parts)

    @property
    def stored(self) -> StorageColumn:
        """The column as the catalog keeps it."""
        return StorageColumn(self.name, self.type, "hidden" if self.hidden else "visible")


def of_view(conn: psycopg.Connection, view: View) -> tuple[Column, ...]:
    """The storage columns of a view, in order. PostgreSQL types them as a view that is rolled back."""
    probe = sql.Identifier("pgtrickle", f"__pgt_columns_{conn.info.backend_pid}")
    with conn.transaction(force_rollback=True):
        # Types are printed with their schema, so that they mean the same under every search_path.
        pin(conn)
        conn.execute(sql.SQL("CREATE VIEW {} AS {}").format(probe, sql.SQL(view.storage_query())))
        relid = scalar(conn, "SELECT %s::pg_catalog.regclass::oid", (probe.as_string(conn),))
        described = of_relation(conn, relid)
    hidden = frozenset(view.hidden)
    return tuple(Column(c.name, c.type, c.collation, c.name in hidden, c.name in view.never_null) for c in described)


def of_relation(conn: psycopg.Connection, relid: int | None) -> tuple[Column, ...]:
    """The columns that a relation has now; none if it is gone."""
    with conn.transaction(force_rollback=True):
        # Types are printed with their schema, so that they mean the same under every search_path.
        pin(conn)
        rows = conn.execute(_DESCRIBE, (relid,)).fetchall()
    return tuple(
        Column(name, type_, collation, name.startswith("__pgt_"), not_null) for name, type_, collation, not_null in rows
    )
