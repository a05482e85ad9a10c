"""Keep everybody but refreshes from writing a stream table.

ALTER TABLE can't be refused without an event trigger, which takes a superuser; the fingerprint notices it.
"""

from __future__ import annotations

from psycopg import Connection, sql

from airflow_provider_pgtrickle.catalog.faults import translating

_TRIGGER = sql.Identifier("pgtrickle_guard")

# Statements that name a partition fire only the partition's triggers.
_MEMBERS = """
    WITH RECURSIVE tree(oid) AS (
        SELECT %s::oid UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid
    )
    SELECT n.nspname, c.relname
    FROM tree
    JOIN pg_catalog.pg_class c ON c.oid = tree.oid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    ORDER BY c.oid
"""


def guard(conn: Connection, relid: int) -> None:
    """Refuse INSERT, UPDATE, DELETE and TRUNCATE unless `pgtrickle.refreshing` is on in the transaction."""
    with translating():
        for schema, name in conn.execute(_MEMBERS, [relid]).fetchall():
            conn.execute(
                sql.SQL(
                    "CREATE OR REPLACE TRIGGER {} BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {}"
                    " FOR EACH STATEMENT EXECUTE FUNCTION pgtrickle.pgt_guard()"
                ).format(_TRIGGER, sql.Identifier(schema, name))
            )
