"""The triggers that capture a table.

PostgreSQL fires statement triggers only on the relation that a statement names, so every partition and child has its
own. It fires none for rows that logical replication applies, so for that role a row trigger stands beside them:

    origin, local   statement triggers (enabled by default), each change once
    replica         row trigger (ENABLE REPLICA), each change once
    both            TRUNCATE (ENABLE ALWAYS)

A table that is itself a partition or a child of a table that isn't captured can be changed by statements that name the
other: there a row trigger (ENABLE ALWAYS) captures everything.

A table that is captured from the log has the trigger for TRUNCATE alone. One with frozen rows has another one, which
looks for them before they are gone.

A new partition has no statement triggers before the next refresh, but PostgreSQL copies row triggers to it. So where
changes are refused, a partitioned table has two (origin, local) that fire in partitions which aren't known yet.
"""

from __future__ import annotations

from psycopg import Connection, sql

from airflow_provider_pgtrickle.engine.capture.layout import Layout, Member
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES
from airflow_provider_pgtrickle.engine.names import QualifiedName

_STATEMENT_EVENTS = {
    "insert": "AFTER INSERT ON {table} REFERENCING NEW TABLE AS new_rows",
    "update": "AFTER UPDATE ON {table} REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows",
    "delete": "AFTER DELETE ON {table} REFERENCING OLD TABLE AS old_rows",
}

# A MERGE that inserts into a partitioned table and then updates shows the inserted row to the update's trigger, too
# (PostgreSQL 15 to 18), unless the table has a BEFORE INSERT trigger. So it has this one, which never runs.
_ROUTING = "BEFORE INSERT ON {table} FOR EACH ROW WHEN (false)"

#: By suffix. They only refuse: that there is a new partition is noticed by the next refresh.
_IN_NEW_PARTITIONS = {
    "came": "AFTER INSERT OR UPDATE ON {table} FOR EACH ROW WHEN (NEW.tableoid <> ALL (ARRAY[{known}]::oid[]))",
    "left": "AFTER DELETE ON {table} FOR EACH ROW WHEN (OLD.tableoid <> ALL (ARRAY[{known}]::oid[]))",
}

_FIRING = {"O": "", "R": "REPLICA", "A": "ALWAYS"}


def attach(conn: Connection, layout: Layout, *, anew: bool) -> None:
    """Create the triggers that are missing, drop those that no longer belong; `anew` puts every one right."""
    wanted = _wanted(layout)
    present = _present(conn, layout.relid)
    for relid, schema, table, trigger, _, inherited in present:
        if (relid, trigger) not in wanted and not inherited:
            conn.execute(
                sql.SQL("DROP TRIGGER {} ON {}").format(sql.Identifier(trigger), sql.Identifier(schema, table))
            )
    there = {(relid, trigger) for relid, _, _, trigger, _, _ in present}
    for (relid, trigger), (member, event, firing, called) in wanted.items():
        if (relid, trigger) in there and not anew:
            continue
        conn.execute(
            sql.SQL("CREATE OR REPLACE TRIGGER {} {} EXECUTE FUNCTION {}()").format(
                sql.Identifier(trigger), sql.SQL(event).format(table=member.name.sql), called.sql
            )
        )
        # Replacing a trigger leaves it disabled if somebody had disabled it.
        conn.execute(
            sql.SQL("ALTER TABLE {} ENABLE {} TRIGGER {}").format(
                member.name.sql, sql.SQL(_FIRING[firing]), sql.Identifier(trigger)
            )
        )


def is_attached(conn: Connection, layout: Layout) -> bool:
    """Whether every trigger is there and fires when it should."""
    present = {(relid, trigger): firing for relid, _, _, trigger, firing, _ in _present(conn, layout.relid)}
    return all(present.get(wanted) == firing for wanted, (_, _, firing, _) in _wanted(layout).items())


def detach(conn: Connection, relid: int) -> None:
    """Drop the triggers and their function, wherever they are; the table itself may be gone already."""
    function = sql.Identifier(CHANGES, f"capture_{relid}")
    row = conn.execute(
        "SELECT n.nspname, c.relname FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s",
        [relid],
    ).fetchone()
    if row is not None:
        # Lock the table first and then its members, in the order of writers, so that there is no deadlock with them.
        conn.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(sql.Identifier(*row)))
    for dropped in (function, sql.Identifier(CHANGES, f"begin_{relid}")):
        conn.execute(sql.SQL("DROP FUNCTION IF EXISTS {}() CASCADE").format(dropped))


def _wanted(layout: Layout) -> dict[tuple[int, str], tuple[Member, str, str, QualifiedName]]:
    """The triggers that should exist, by relation and name: member, event, `pg_trigger.tgenabled`, and function."""
    wanted: dict[tuple[int, str], tuple[Member, str, str, QualifiedName]] = {}
    for member in layout.members:

        def want(
            suffix: str, event: str, firing: str, called: QualifiedName = layout.function, member: Member = member
        ) -> None:
            wanted[member.relid, f"{layout.trigger}_{suffix}"] = (member, event, firing, called)

        if layout.is_counted:
            # Both ends of each statement are counted. Where replication or a replica session writes, rows are captured
            # one by one, so that the end has a trigger of its own.
            event = "BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table} FOR EACH STATEMENT"
            want("begin", event, "A", layout.begin_function)
            want("end", "AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH STATEMENT", "R")
        want("truncate", "AFTER TRUNCATE ON {table} FOR EACH STATEMENT", "A")
        if layout.frozen:
            want("frozen", "BEFORE TRUNCATE ON {table} FOR EACH STATEMENT", "A")
        if layout.by_wal:
            continue
        if not layout.row_wise:
            for suffix, event in _STATEMENT_EVENTS.items():
                want(suffix, event + " FOR EACH STATEMENT", "O")
        if member.routes and not layout.row_wise:
            want("routing", _ROUTING, "O")
        if member.routes and layout.refuses_in_partitions:
            known = ",".join(str(m.relid) for m in layout.members)
            for suffix, event in _IN_NEW_PARTITIONS.items():
                want(suffix, event.replace("{known}", known), "O")
        if member.gets_row_trigger:
            suffix, firing = ("row", "A") if layout.row_wise else ("replica", "R")
            want(suffix, "AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW", firing)
    return wanted


def _present(conn: Connection, relid: int) -> list[tuple[int, str, str, str, str, bool]]:
    return conn.execute(
        """
        SELECT c.oid::bigint, n.nspname, c.relname, t.tgname, t.tgenabled::text, t.tgparentid <> 0
        FROM pg_catalog.pg_trigger t
        JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE t.tgfoid IN (to_regprocedure(%s), to_regprocedure(%s))
        """,
        [f"{CHANGES}.capture_{relid}()", f"{CHANGES}.begin_{relid}()"],
    ).fetchall()
