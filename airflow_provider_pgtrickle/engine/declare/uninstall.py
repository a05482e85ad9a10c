"""UNINSTALL: all stream tables, all capture and the catalog; the sources are as if nothing had been."""

from __future__ import annotations

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.capture.wal import PUBLICATION
from airflow_provider_pgtrickle.engine.catalog.locks import lock_declarations
from airflow_provider_pgtrickle.engine.errors import UsageError, spoken
from airflow_provider_pgtrickle.engine.names import QualifiedName

_SCHEMAS = ("pgtrickle_changes", "pgtrickle")
# A table that was dropped by hand, or replaced by one of the user's under its name, isn't ours to drop.
_OURS = """
SELECT t.pgt_schema, t.pgt_name FROM pgtrickle.pgt_stream_tables t
  JOIN pg_catalog.pg_attribute a ON a.attrelid = pg_catalog.to_regclass(
       pg_catalog.format('%I.%I', t.pgt_schema, t.pgt_name)) AND a.attname = '__pgt_row_id' AND NOT a.attisdropped
 ORDER BY t.pgt_id DESC
"""


def uninstall(conn: psycopg.Connection, *, cascade: bool = False) -> tuple[str, ...]:
    """Drop everything; the names of the stream tables that were dropped. Objects of users that read them stop it."""
    lock_declarations(conn)
    tables = [QualifiedName(schema, name) for schema, name in conn.execute(_OURS).fetchall()]
    try:
        # All in one statement, because foreign keys may refer from one to another.
        if tables:
            names = sql.SQL(", ").join(table.sql for table in tables)
            conn.execute(sql.SQL("DROP TABLE {} {}").format(names, sql.SQL("CASCADE" if cascade else "RESTRICT")))
    except psycopg.errors.DependentObjectsStillExist as error:
        detail = (error.diag.message_detail or "").splitlines()
        raise UsageError(
            f"Something of yours reads a stream table: {detail[0] if detail else 'PostgreSQL does not say what'}",
            remedy=spoken(
                cli="Drop that first, or let it go too: --cascade.", python="Pass cascade=True to drop it too."
            ),
        ) from None
    conn.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(PUBLICATION)))
    # With the schemas go their functions, and with those the triggers on the sources.
    for schema in _SCHEMAS:
        conn.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))
    return tuple(map(str, tables))
