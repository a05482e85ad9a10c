"""The replication slot and the publication of a database, and how far the log has been read.

The row of `pgt_wal` is the truth: its position moves in the commit that holds the rows, and the slot follows. A slot
that is ahead of it, or gone, has dropped changes that no buffer holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import Connection, sql

from airflow_provider_pgtrickle.engine.capture.layout import Layout
from airflow_provider_pgtrickle.engine.capture.pgoutput import parse_lsn
from airflow_provider_pgtrickle.engine.catalog.capabilities import Capabilities
from airflow_provider_pgtrickle.engine.errors import TransientFault

PUBLICATION = "pgtrickle"
SLOT_PREFIX = "pgtrickle_"

#: Key of the lock by which sessions take turns at the slot, "pgtw" in ASCII. Nothing but time depends on it.
_TURN = int.from_bytes(b"pgtw")

_STATE = """
    SELECT w.slot_name, w.publication, w.position::text, s.slot_name IS NOT NULL,
           EXISTS (SELECT FROM pg_catalog.pg_publication p WHERE p.pubname = w.publication
                   AND p.pubinsert AND p.pubupdate AND p.pubdelete),
           s.confirmed_flush_lsn::text, s.wal_status,
           pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), w.position)::bigint,
           coalesce(pg_catalog.pg_wal_lsn_diff(w.position, s.restart_lsn) >= 1048576
                    AND w.pumped_at < pg_catalog.clock_timestamp() - interval '5 seconds', false)
    FROM pgtrickle.pgt_wal w
    LEFT JOIN pg_catalog.pg_replication_slots s
        ON s.slot_name = w.slot_name AND s.slot_type = 'logical' AND s.database = pg_catalog.current_database()
"""

# A partitioned table is published with its partitions. A child that inherits is published by itself.
_PUBLISHED = """
    WITH RECURSIVE of_others(oid, root) AS (
        SELECT c.source_relid, c.source_relid FROM pgtrickle.pgt_change_tracking c
        WHERE c.mode = 'WAL' AND c.source_relid <> %(relid)s
        UNION
        SELECT i.inhrelid, o.root FROM pg_catalog.pg_inherits i JOIN of_others o ON i.inhparent = o.oid
    )
    SELECT c.oid::bigint, n.nspname, c.relname,
           EXISTS (SELECT FROM pg_catalog.pg_publication_rel r JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid
                   WHERE p.pubname = %(publication)s AND r.prrelid = c.oid),
           EXISTS (SELECT FROM of_others o WHERE o.oid = c.oid AND (o.root = c.oid OR NOT c.relispartition))
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = ANY(%(members)s::oid[]) AND (c.oid = %(relid)s OR NOT c.relispartition)
    ORDER BY c.oid
"""


@dataclass(frozen=True)
class State:
    """The slot as the catalog and the server know it."""

    slot: str
    publication: str
    position: str
    exists: bool
    is_published: bool
    confirmed: str | None
    wal_status: str | None
    lag_bytes: int
    """How much log was written since."""
    begins_far_back: bool
    """Each reading begins far before the position. Advancing the slot may move that, but not more often than the server
    writes down which transactions run."""

    @property
    def lost(self) -> str | None:
        """Why changes may be missing that no buffer holds; None where none is."""
        if not self.exists:
            return "the replication slot is gone"
        if self.wal_status == "lost" or self.confirmed is None:
            return "the server has removed log that the replication slot needs"
        if parse_lsn(self.confirmed) > parse_lsn(self.position):
            return "the replication slot was advanced by somebody else"
        if not self.is_published:
            return "the publication is gone, or publishes less"
        if self.lag_bytes < 0:
            return "the log is not the one that was read so far"
        return None


def state(conn: Connection) -> State | None:
    """The slot's state; None where nothing is captured from the WAL."""
    row = conn.execute(_STATE).fetchone()
    return State(*row) if row is not None else None


@contextmanager
def turn(conn: Connection, seconds: int) -> Iterator[None]:
    """Wait for other sessions that read the slot. Whoever holds the lock for longer is overlooked."""
    taken = True
    try:
        with conn.transaction():
            conn.execute("SELECT pg_catalog.set_config('lock_timeout', %s, true)", (f"{seconds}s",))
            conn.execute(
                "SELECT pg_catalog.pg_advisory_lock(%s, (SELECT oid::int FROM pg_catalog.pg_database"
                " WHERE datname = pg_catalog.current_database()))",
                (_TURN,),
            )
    except psycopg.errors.LockNotAvailable:
        taken = False
    try:
        yield
    finally:
        if taken and not conn.broken and conn.info.transaction_status != psycopg.pq.TransactionStatus.INERROR:
            conn.execute(
                "SELECT pg_catalog.pg_advisory_unlock(%s, (SELECT oid::int FROM pg_catalog.pg_database"
                " WHERE datname = pg_catalog.current_database()))",
                (_TURN,),
            )


def slot_name(conn: Connection) -> str:
    """The name of this database's slot; slots of all databases share their names."""
    row = conn.execute(
        "SELECT oid::text FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()"
    ).fetchone()
    assert row is not None
    return SLOT_PREFIX + str(row[0])


def begin(conn: Connection, patience_seconds: int) -> State:
    """Make the slot and the publication where they are missing. `conn` is in autocommit and idle.

    A new slot waits until all transactions that run now have ended: not longer than that many seconds.
    """
    found = state(conn)
    if found is not None:
        return found
    name = slot_name(conn)
    drop_orphan(conn, name)
    # A slot fails on a transaction that was written before its publication was there, so that comes first.
    with conn.transaction():
        _publication(conn)
    failover = ", failover => true" if Capabilities.of(conn).failover_slots else ""
    try:
        with conn.transaction():
            conn.execute("SELECT pg_catalog.set_config('statement_timeout', %s, true)", (f"{patience_seconds}s",))
            row = conn.execute(
                sql.SQL("SELECT lsn::text FROM pg_catalog.pg_create_logical_replication_slot(%s, 'pgoutput'{})").format(
                    sql.SQL(failover)
                ),
                (name,),
            ).fetchone()
    except psycopg.errors.QueryCanceled as error:
        raise TransientFault(
            f"A replication slot can't begin while transactions run that are older than {patience_seconds} s",
            remedy="Try again when they have ended, or raise wal_transition_timeout_seconds.",
        ) from error
    assert row is not None
    try:
        conn.execute(
            "INSERT INTO pgtrickle.pgt_wal (slot_name, publication, position) VALUES (%s, %s, %s)",
            (name, PUBLICATION, row[0]),
        )
    except BaseException:
        if not conn.broken:
            drop_orphan(conn, name)
        raise
    made = state(conn)
    assert made is not None
    return made


def _publication(conn: Connection) -> None:
    generated = ", publish_generated_columns = stored" if Capabilities.of(conn).publishes_generated else ""
    found = conn.execute("SELECT FROM pg_catalog.pg_publication WHERE pubname = %s", (PUBLICATION,)).fetchone()
    if found is not None:
        conn.execute(sql.SQL("DROP PUBLICATION {}").format(sql.Identifier(PUBLICATION)))
    conn.execute(
        sql.SQL("CREATE PUBLICATION {} WITH (publish = 'insert, update, delete'{})").format(
            sql.Identifier(PUBLICATION), sql.SQL(generated)
        )
    )


def publish(conn: Connection, plan: Layout) -> None:
    """Publish what is captured from the WAL now, and nothing else. Nobody writes the table meanwhile."""
    members = conn.execute(
        _PUBLISHED,
        {"relid": plan.relid, "members": [member.relid for member in plan.members], "publication": PUBLICATION},
    ).fetchall()
    if plan.by_wal:
        _alter(conn, "ADD", [(s, n) for _, s, n, is_in, _ in members if not is_in])
    else:
        _alter(conn, "DROP", [(s, n) for _, s, n, is_in, others in members if is_in and not others])


def _alter(conn: Connection, verb: LiteralString, tables: list[tuple[str, str]]) -> None:
    if tables:
        conn.execute(
            sql.SQL("ALTER PUBLICATION {} {} TABLE {}").format(
                sql.Identifier(PUBLICATION),
                sql.SQL(verb),
                sql.SQL(", ").join(sql.SQL("ONLY {}").format(sql.Identifier(s, n)) for s, n in tables),
            )
        )


def withdraw(conn: Connection, relid: int) -> None:
    """Publish a table no longer that nobody reads, nor its children, unless another source needs them."""
    found = conn.execute(
        sql.SQL(_PUBLISHED),
        {"relid": relid, "members": [*_members(conn, relid)], "publication": PUBLICATION},
    ).fetchall()
    _alter(conn, "DROP", [(s, n) for _, s, n, is_in, others in found if is_in and not others])


def _members(conn: Connection, relid: int) -> list[int]:
    found = conn.execute(
        "WITH RECURSIVE tree(oid) AS (SELECT %s::oid UNION"
        " SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid)"
        " SELECT oid::bigint FROM tree",
        (relid,),
    )
    return [member for (member,) in found]


def end(conn: Connection) -> bool:
    """Drop slot and publication if no source is captured from the WAL any more; whether they went.

    `conn` is in autocommit and idle. What was captured from the WAL until now has to be in the buffers.
    """
    with conn.transaction():
        row = conn.execute(
            "SELECT slot_name FROM pgtrickle.pgt_wal w WHERE NOT EXISTS"
            " (SELECT FROM pgtrickle.pgt_change_tracking c WHERE c.mode = 'WAL'"
            " OR c.wal_until > w.position) FOR UPDATE SKIP LOCKED"
        ).fetchone()
        if row is None:
            return False
        conn.execute("DELETE FROM pgtrickle.pgt_wal")
        conn.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(PUBLICATION)))
    drop_orphan(conn, row[0])
    return True


def orphans(conn: Connection) -> list[str]:
    """Our slots in this database that nothing reads: they keep the server's log until its disk is full."""
    found = conn.execute(
        "SELECT s.slot_name FROM pg_catalog.pg_replication_slots s WHERE s.slot_type = 'logical'"
        " AND s.database = pg_catalog.current_database() AND pg_catalog.starts_with(s.slot_name, %s)"
        " AND s.plugin = 'pgoutput' AND s.slot_name NOT IN (SELECT w.slot_name FROM pgtrickle.pgt_wal w) ORDER BY 1",
        (SLOT_PREFIX,),
    )
    return [name for (name,) in found]


def leave(conn: Connection) -> None:
    """Drop the database's slot when its catalog is gone."""
    conn.execute(
        "SELECT pg_catalog.pg_drop_replication_slot(s.slot_name) FROM pg_catalog.pg_replication_slots s"
        " WHERE s.slot_name = %s AND s.database = pg_catalog.current_database() AND NOT s.active",
        (slot_name(conn),),
    )


def drop_orphan(conn: Connection, name: str) -> None:
    """Drop a slot of ours to which the catalog has no row, unless a session reads it."""
    conn.execute(
        "SELECT pg_catalog.pg_drop_replication_slot(s.slot_name) FROM pg_catalog.pg_replication_slots s"
        " WHERE s.slot_name = %s AND s.database = pg_catalog.current_database() AND NOT s.active"
        " AND NOT EXISTS (SELECT FROM pgtrickle.pgt_wal w WHERE w.slot_name = s.slot_name)",
        (name,),
    )
