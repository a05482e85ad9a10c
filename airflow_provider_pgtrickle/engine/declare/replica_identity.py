"""The replica identity of a stream table: without one PostgreSQL refuses to update a published table.

The unique index on the identity serves if its columns can't be NULL; otherwise the whole old row is sent.
"""

from __future__ import annotations

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.capture.wal import PUBLICATION
from airflow_provider_pgtrickle.engine.declare import identity_index, marked_index
from airflow_provider_pgtrickle.engine.names import QualifiedName

# Where a partitioned table is published as one, its own identity is what subscribers are told.
# A replica identity that a user has set stays. FULL, left behind by a dropped index, is replaced on the first fill.
_UNSET = """
    WITH RECURSIVE tree(oid) AS (
        SELECT pg_catalog.to_regclass(%s)::oid
        UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid
    )
    SELECT n.nspname, c.relname, c.relispartition OR c.relkind = 'p'
      FROM tree
      JOIN pg_catalog.pg_class c ON c.oid = tree.oid
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'p') AND (c.relreplident = 'd' OR c.relreplident = 'f' AND %s)
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
     ORDER BY c.oid
"""
_NEVER_NULL = """
    SELECT bool_and(a.attnotnull)
      FROM pg_catalog.pg_index i
      CROSS JOIN LATERAL unnest(i.indkey::int2[]) AS k(attnum)
      JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
     WHERE i.indexrelid = %s
"""


def settle(conn: psycopg.Connection, table: QualifiedName, *, first: bool = False) -> bool:
    """Give the table a replica identity if it has none; whether that was necessary.

    `first` says that it is being filled; then FULL gives way to an index, too.
    """
    unset = conn.execute(_UNSET, [table.quoted, first]).fetchall()
    for schema, name, is_partitioned in unset:
        index = None if is_partitioned else _index(conn, table)
        identity = sql.SQL("USING INDEX {}").format(sql.Identifier(index)) if index else sql.SQL("FULL")
        conn.execute(sql.SQL("ALTER TABLE {} REPLICA IDENTITY {}").format(sql.Identifier(schema, name), identity))
    return bool(unset)


def notice(conn: psycopg.Connection, table: QualifiedName, *, keyed: bool, never_null: bool) -> tuple[str, ...]:
    """A warning for databases with publications if this table needs the whole old row."""
    # Our own publication has sources only.
    published = conn.execute(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_publication WHERE pubname <> %s)", [PUBLICATION]
    ).fetchone()
    if (keyed and never_null) or not (published and published[0]):
        return ()
    return (
        f"{table} has no key that is never NULL: a publication sends the whole old row of each change "
        "(REPLICA IDENTITY FULL)",
    )


def _index(conn: psycopg.Connection, table: QualifiedName) -> str | None:
    for index in marked_index.marked(conn, table, identity_index.MARK):
        never_null = conn.execute(_NEVER_NULL, [index.oid]).fetchone()
        if index.unique and never_null and never_null[0]:
            return index.bare_name
    return None
