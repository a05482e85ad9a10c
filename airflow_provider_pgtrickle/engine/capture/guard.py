"""Keep everybody but refreshes from writing a stream table.

Only an event trigger could refuse ALTER TABLE, and that needs a superuser; the fingerprint notices it instead.
"""

from __future__ import annotations

from psycopg import Connection, sql

from airflow_provider_pgtrickle.engine.catalog.faults import translating

TRIGGER = "pgtrickle_guard"
#: The trigger on a partitioned table. PostgreSQL copies it to each partition, to those that users add later too.
ROW_TRIGGER = "pgtrickle_guard_rows"

# A statement that names a partition fires only the partition's own statement triggers.
_MEMBERS = """
    WITH RECURSIVE tree(oid) AS (
        SELECT %s::oid UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid
    )
    SELECT n.nspname, c.relname, c.relkind = 'p' AND c.oid = %s
    FROM tree
    JOIN pg_catalog.pg_class c ON c.oid = tree.oid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    ORDER BY c.oid
"""


_UNGUARDED = """
    WITH RECURSIVE tree(oid) AS (
        SELECT %(relid)s::oid UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid
    )
    SELECT FROM tree
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_trigger g
                      WHERE g.tgrelid = tree.oid AND g.tgname = %(statement)s AND g.tgenabled <> 'D')
       OR NOT EXISTS (SELECT FROM pg_catalog.pg_trigger g
                      WHERE g.tgrelid = tree.oid AND g.tgname = %(row)s AND g.tgenabled <> 'D')
    LIMIT 1
"""


#: The statement that switches the guards of all stream tables off, in this transaction only.
LET_THROUGH = "SELECT pg_catalog.set_config('pgtrickle.refreshing', 'on', true)"


def let_through(conn: Connection) -> None:
    """Switch the guards of all stream tables off, in this transaction only."""
    conn.execute(LET_THROUGH)


def guard_added_partitions(conn: Connection, relid: int) -> None:
    """Guard what a user added to a partitioned stream table since its last refresh."""
    found = conn.execute(_UNGUARDED, {"relid": relid, "statement": TRIGGER, "row": ROW_TRIGGER}).fetchone()
    if found is not None:
        guard(conn, relid)


def guard(conn: Connection, relid: int) -> None:
    """Refuse INSERT, UPDATE, DELETE and TRUNCATE unless `pgtrickle.refreshing` is on in the transaction."""
    with translating():
        for schema, name, is_root in conn.execute(_MEMBERS, [relid, relid]).fetchall():
            table = sql.Identifier(schema, name)
            guard_alone(conn, table)
            if is_root:
                conn.execute(
                    sql.SQL(
                        "CREATE OR REPLACE TRIGGER {} BEFORE INSERT OR UPDATE OR DELETE ON {} FOR EACH ROW"
                        " WHEN (pg_catalog.current_setting('pgtrickle.refreshing', true) IS DISTINCT FROM 'on')"
                        " EXECUTE FUNCTION pgtrickle.pgt_guard()"
                    ).format(sql.Identifier(ROW_TRIGGER), table)
                )


def guard_alone(conn: Connection, table: sql.Composable) -> None:
    """Guard a table against statements that name it; a partition gets the trigger for rows when it is attached."""
    conn.execute(
        sql.SQL(
            "CREATE OR REPLACE TRIGGER {} BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {}"
            " FOR EACH STATEMENT EXECUTE FUNCTION pgtrickle.pgt_guard()"
        ).format(sql.Identifier(TRIGGER), table)
    )
