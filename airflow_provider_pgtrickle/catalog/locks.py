"""Advisory locks by which sessions know of each other's refreshes."""

from __future__ import annotations

from psycopg import Connection

#: First half of the key, "pgtr" in ASCII; the second is the stream table's id.
LOCK_SPACE = int.from_bytes(b"pgtr")


def try_lock_for_transaction(conn: Connection, pgt_id: int) -> bool:
    """Whether nobody refreshes the stream table, nor will before the transaction ends."""
    row = conn.execute(
        "SELECT pg_try_advisory_xact_lock(%s, (%s::bigint %% 2147483647)::int)", [LOCK_SPACE, pgt_id]
    ).fetchone()
    return bool(row and row[0])
