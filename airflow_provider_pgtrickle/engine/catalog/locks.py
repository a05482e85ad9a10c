"""Locks that keep refreshes and declarations apart.

Refreshes take advisory locks, which anybody who may connect can take. These locks only save work, because the commit
checks the lease and the frontier by itself; so a holder without the right to refresh is ignored, with a warning.
Declarations take a lock on a table of the catalog.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from psycopg import Connection, sql

_log = logging.getLogger(__name__)

#: First half of a refresh lock's key, "pgtr" in ASCII.
LOCK_SPACE = int.from_bytes(b"pgtr")


def second_half(pgt_id: sql.Composable) -> sql.Composed:
    """Second half of a lock's key: a stream table's id, made to fit because the catalog's ids are wider than a key."""
    return sql.SQL("({}::bigint %% 2147483647)::int").format(pgt_id)


#: The refresh locks that are held in this database, as `l (pid, key)`; `key` is the second half.
HELD = sql.SQL(
    "(SELECT pid, objid::bigint AS key FROM pg_catalog.pg_locks"
    " WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = {}"
    " AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())) AS l"
).format(sql.Literal(LOCK_SPACE))

# A lock without a session belongs to a prepared transaction, which a refresh never is. A refresh that had to ignore the
# lock's holder has no lock; its lease shows it.
_HOLDERS = sql.SQL("""
    SELECT t.id, l.pid, a.usename::text,
           coalesce(pg_catalog.has_any_column_privilege(a.usesysid, 'pgtrickle.pgt_stream_tables', 'UPDATE'), false)
    FROM unnest(%(ids)s::bigint[]) AS t(id)
    JOIN {held} ON l.key = {key}
    LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
    WHERE l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
    UNION
    SELECT s.pgt_id, a.pid, a.usename::text, true
    FROM pgtrickle.pgt_stream_tables s JOIN pg_catalog.pg_stat_activity a ON a.pid = s.lease_pid
    WHERE s.pgt_id = ANY(%(ids)s::bigint[]) AND s.lease_token IS NOT NULL
      AND s.lease_expires > pg_catalog.clock_timestamp() AND a.pid <> pg_catalog.pg_backend_pid()
      AND pg_catalog.has_any_column_privilege(a.usesysid, 'pgtrickle.pgt_stream_tables', 'UPDATE')
    ORDER BY 1
""").format(held=HELD, key=second_half(sql.Identifier("t", "id")))

_KEY = sql.SQL("{}, {}").format(sql.Literal(LOCK_SPACE), second_half(sql.Placeholder()))


@dataclass(frozen=True)
class Holder:
    """Who has a stream table's lock."""

    pgt_id: int
    pid: int | None
    role: str | None
    rightful: bool
    """The role may refresh the table, so this may be a refresh."""

    def __str__(self) -> str:
        return f"session {self.pid} of role {self.role}" if self.pid is not None else "a prepared transaction"


def holders(conn: Connection, ids: Iterable[int]) -> list[Holder]:
    """Other sessions that hold these tables' locks, or refresh them without the lock."""
    return [Holder(*row) for row in conn.execute(_HOLDERS, {"ids": list(ids)}).fetchall()]


def refreshed_elsewhere(conn: Connection, ids: Iterable[int]) -> list[int]:
    """Those of `ids`, whose locks this session didn't get, that another session may be refreshing."""
    wanted = list(ids)
    found = holders(conn, wanted) if wanted else []
    for holder in found:
        if not holder.rightful:
            _log.warning(
                "%s holds the refresh lock of stream table %s without a right to refresh it; it is overlooked",
                str(holder).capitalize(),
                holder.pgt_id,
            )
    # A lock without a visible holder was released just now. The table counts as busy; the next refresh gets the lock.
    seen = {holder.pgt_id for holder in found}
    return [i for i in wanted if i not in seen or any(h.rightful for h in found if h.pgt_id == i)]


def try_lock_for_transaction(conn: Connection, pgt_id: int) -> bool:
    """Try to take the refresh lock until the transaction ends; whether nobody refreshes the stream table."""
    row = conn.execute(sql.SQL("SELECT pg_catalog.pg_try_advisory_xact_lock({})").format(_KEY), (pgt_id,)).fetchone()
    return bool(row and row[0]) or not refreshed_elsewhere(conn, [pgt_id])


def lock_declarations(conn: Connection) -> None:
    """Let one declaration run at a time: two that each look fine could close a circle together.

    The lock lasts until the transaction ends, and no refresh runs within that. It is a table lock because anybody can
    take an advisory one, and on a table that declarations neither read nor write.
    """
    conn.execute("LOCK TABLE pgtrickle.pgt_migrations IN SHARE UPDATE EXCLUSIVE MODE")


def lock_rows(conn: Connection, ids: Iterable[int]) -> None:
    """Lock stream tables' rows in the catalog, as a refresh does before it writes.

    Declarations lock these first, so that a declaration and a refresh can't wait for each other.
    """
    conn.execute(
        "SELECT FROM pgtrickle.pgt_stream_tables WHERE pgt_id = ANY(%s) ORDER BY pgt_id FOR UPDATE", (sorted(ids),)
    )


def wait_for_refreshes(conn: Connection, ids: Iterable[int]) -> None:
    """Wait until nobody refreshes these tables, and let no refresh of them begin.

    DROP TABLE would wait for a running refresh's readers anyway. But further readers of that refresh, in other
    sessions, would wait behind the DROP: a deadlock that PostgreSQL can't see.
    """
    for pgt_id in sorted(ids):
        if try_lock_for_transaction(conn, pgt_id):
            continue
        conn.execute(sql.SQL("SELECT pg_catalog.pg_advisory_xact_lock({})").format(_KEY), (pgt_id,))
