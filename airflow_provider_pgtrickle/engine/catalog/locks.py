"""Locks that keep refreshes and declarations apart.

Refreshes take advisory locks, which anybody who may connect can take. These locks only save work, because the commit
checks the lease and the frontier by itself; so a holder without the right to refresh is ignored, with a warning.
Declarations take a lock on a table of the catalog.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from psycopg import Connection

_log = logging.getLogger(__name__)

#: First half of the key, "pgtr" in ASCII; the second is the stream table's id.
LOCK_SPACE = int.from_bytes(b"pgtr")

# A lock without a session is of a prepared transaction, which no refresh is. The lease stands for a refresh that had
# to overlook the lock's holder.
_HOLDERS = """
    SELECT t.id, l.pid, a.usename::text,
           coalesce(pg_catalog.has_any_column_privilege(a.usesysid, 'pgtrickle.pgt_stream_tables', 'UPDATE'), false)
    FROM unnest(%(ids)s::bigint[]) AS t(id)
    JOIN pg_catalog.pg_locks l ON l.objid::bigint = t.id %% 2147483647
    LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid = %(space)s
      AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
      AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
    UNION
    SELECT s.pgt_id, a.pid, a.usename::text, true
    FROM pgtrickle.pgt_stream_tables s JOIN pg_catalog.pg_stat_activity a ON a.pid = s.lease_pid
    WHERE s.pgt_id = ANY(%(ids)s::bigint[]) AND s.lease_token IS NOT NULL
      AND s.lease_expires > pg_catalog.clock_timestamp() AND a.pid <> pg_catalog.pg_backend_pid()
      AND pg_catalog.has_any_column_privilege(a.usesysid, 'pgtrickle.pgt_stream_tables', 'UPDATE')
    ORDER BY 1
"""


@dataclass(frozen=True)
class Holder:
    """Who has a stream table's lock."""

    pgt_id: int
    pid: int | None
    role: str | None
    rightful: bool
    """It may refresh, so maybe it does."""

    def __str__(self) -> str:
        return f"session {self.pid} of role {self.role}" if self.pid is not None else "a prepared transaction"


def holders(conn: Connection, ids: Iterable[int]) -> list[Holder]:
    """Who else has these tables' locks, or refreshes them without."""
    return [Holder(*row) for row in conn.execute(_HOLDERS, {"ids": list(ids), "space": LOCK_SPACE}).fetchall()]


def refreshed_elsewhere(conn: Connection, ids: Iterable[int]) -> list[int]:
    """Those of `ids`, whose locks were not to be had, that somebody may be refreshing."""
    wanted = list(ids)
    found = holders(conn, wanted) if wanted else []
    for holder in found:
        if not holder.rightful:
            _log.warning(
                "%s holds the refresh lock of stream table %s without a right to refresh it; it is overlooked",
                str(holder).capitalize(),
                holder.pgt_id,
            )
    # Where nobody is seen any more, who held it has gone since; the next refresh will find it free.
    seen = {holder.pgt_id for holder in found}
    return [i for i in wanted if i not in seen or any(h.rightful for h in found if h.pgt_id == i)]


def try_lock_for_transaction(conn: Connection, pgt_id: int) -> bool:
    """Whether nobody refreshes the stream table, nor will before the transaction ends."""
    row = conn.execute(
        "SELECT pg_catalog.pg_try_advisory_xact_lock(%s, (%s::bigint %% 2147483647)::int)", [LOCK_SPACE, pgt_id]
    ).fetchone()
    return bool(row and row[0]) or not refreshed_elsewhere(conn, [pgt_id])


def lock_declarations(conn: Connection) -> None:
    """One declaration at a time: two that each look fine could close a circle together.

    Held until the transaction ends, which no refresh is part of. A lock of the catalog's own, because an advisory one
    is anybody's to take; of a table that declarations neither read nor write.
    """
    conn.execute("LOCK TABLE pgtrickle.pgt_migrations IN SHARE UPDATE EXCLUSIVE MODE")


def lock_rows(conn: Connection, ids: Iterable[int]) -> None:
    """Hold stream tables' rows, as a refresh does before it writes; taken first, so that neither waits in a circle."""
    conn.execute(
        "SELECT FROM pgtrickle.pgt_stream_tables WHERE pgt_id = ANY(%s) ORDER BY pgt_id FOR UPDATE", (sorted(ids),)
    )


def wait_for_refreshes(conn: Connection, ids: Iterable[int]) -> None:
    """Wait until nobody refreshes these, and let nobody begin.

    Whoever takes a table away would wait for its readers anyway, and new readers of a running refresh, on other
    sessions, would wait behind that: a circle which PostgreSQL can't see.
    """
    for pgt_id in sorted(ids):
        if try_lock_for_transaction(conn, pgt_id):
            continue
        conn.execute(
            "SELECT pg_catalog.pg_advisory_xact_lock(%s, (%s::bigint %% 2147483647)::int)", (LOCK_SPACE, pgt_id)
        )
