"""Locks of declarations: against each other, and against refreshes that commit."""

from __future__ import annotations

from collections.abc import Iterable

import psycopg

from airflow_provider_pgtrickle.engine.catalog.locks import LOCK_SPACE, try_lock_for_transaction


def lock_declarations(conn: psycopg.Connection) -> None:
    """One declaration at a time: two that each look fine could close a circle together.

    Held until the transaction ends, which no refresh is part of. A lock of the catalog's own, because an advisory one
    is anybody's to take; of a table that declarations neither read nor write.
    """
    conn.execute("LOCK TABLE pgtrickle.pgt_migrations IN SHARE UPDATE EXCLUSIVE MODE")


def lock_rows(conn: psycopg.Connection, ids: Iterable[int]) -> None:
    """Hold stream tables' rows, as a refresh does before it writes; taken first, so that neither waits in a circle."""
    conn.execute(
        "SELECT FROM pgtrickle.pgt_stream_tables WHERE pgt_id = ANY(%s) ORDER BY pgt_id FOR UPDATE", (sorted(ids),)
    )


def wait_for_refreshes(conn: psycopg.Connection, ids: Iterable[int]) -> None:
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
