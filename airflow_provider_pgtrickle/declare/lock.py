"""Locks of declarations: against each other, and against refreshes that commit."""

from __future__ import annotations

from collections.abc import Iterable

import psycopg

#: Any number does, as long as nobody else uses it: "pgtrickle" in ASCII, cut to 63 bits.
_DECLARATIONS = int.from_bytes(b"pgtrickl") >> 1


def lock_declarations(conn: psycopg.Connection) -> None:
    """One declaration at a time: two that each look fine could close a circle together.

    Held until the transaction ends, which no refresh is part of.
    """
    conn.execute("SELECT pg_catalog.pg_advisory_xact_lock(%s)", (_DECLARATIONS,))


def lock_rows(conn: psycopg.Connection, ids: Iterable[int]) -> None:
    """Hold stream tables' rows, as a refresh does before it writes; taken first, so that neither waits in a circle."""
    conn.execute(
        "SELECT FROM pgtrickle.pgt_stream_tables WHERE pgt_id = ANY(%s) ORDER BY pgt_id FOR UPDATE", (sorted(ids),)
    )
