"""One declaration at a time: two that each look fine could close a circle together."""

from __future__ import annotations

import psycopg

#: Any number does, as long as nobody else uses it: "pgtrickle" in ASCII, cut to 63 bits.
_DECLARATIONS = int.from_bytes(b"pgtrickl") >> 1


def lock_declarations(conn: psycopg.Connection) -> None:
    """Wait for other declarations; held until the transaction ends, which no refresh is part of."""
    conn.execute("SELECT pg_catalog.pg_advisory_xact_lock(%s)", (_DECLARATIONS,))
