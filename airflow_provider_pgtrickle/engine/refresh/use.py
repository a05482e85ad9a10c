"""Which stream tables somebody reads: PostgreSQL's counts of scans, less those that refreshes make.

    read between two looks  =  scans counted since the last look > 0, unless a refresh lies between the two

A refresh looks before it reads anything, and once more when it has written; what was counted meanwhile is its own. A
read that falls into a refresh goes unnoticed, and the next one doesn't. Where another session's scans are counted late,
a table is taken for read that nobody reads: it stays warmer than it need be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from psycopg import Connection

from airflow_provider_pgtrickle.engine.catalog.records import StreamTable


def notice(conn: Connection) -> None:
    """Look at all tables whose tier follows use."""
    conn.execute("SELECT pgtrickle.pgt_note_use(NULL, false)")


def begin(conn: Connection, tables: Iterable[StreamTable]) -> Sequence[int]:
    """Look at a unit's tables and at what they read, before it is refreshed; the ids to look at again.

    Of a unit that is hot whatever happens nothing is asked: what it reads is no colder.
    """
    ids = [st.id for st in tables if st.tier != "hot"]
    if ids:
        conn.execute("SELECT pgtrickle.pgt_note_use(%s, false)", (ids,))
    return ids


def end(conn: Connection, ids: Sequence[int]) -> None:
    """Look again, in autocommit: what was counted since the beginning are the refresh's own scans."""
    if ids:
        tell(conn)
        conn.execute("SELECT pgtrickle.pgt_note_use(%s, true)", (list(ids),))


def tell(conn: Connection) -> None:
    """Let this session's scans be counted now; by itself it tells of them once a second."""
    conn.execute("SELECT pg_catalog.pg_stat_force_next_flush()")
