"""One session kept open between refreshes.

Connecting costs more than a refresh that finds nothing to do: the server starts a process, checks a password and reads
its catalogs. So the last session is kept, clean, for whoever of the same process comes next.
"""

from __future__ import annotations

import os
import select
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from psycopg import Connection

#: What a refresh may leave in its session, besides what ends with its transaction.
_CLEAN = "RESET synchronous_commit; DISCARD TEMP; SELECT pg_catalog.pg_advisory_unlock_all()"

#: Kept no longer than firewalls and poolers bear, nor than a role's changed settings should go unseen.
_IDLE_SECONDS = 60.0


class WarmSession:
    """Lends a session in autocommit; several at a time are several sessions, of which one is kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[tuple[Connection, float, int]] = []
        weakref.finalize(self, _close_all, self._kept)

    @contextmanager
    def lent(self, connect: Callable[[], Connection]) -> Iterator[Connection]:
        """A session that is clean before and after, whatever happens between; a new one where none is kept."""
        conn = self._take() or connect()
        try:
            yield conn
        finally:
            # Locks are given up by saying so: of a disconnection the server learns later than the next refresh comes.
            if not (_cleaned(conn) and self._keep(conn)):
                conn.close()

    def close(self) -> None:
        """End the session that is kept."""
        with self._lock:
            _close_all(self._kept)

    def _take(self) -> Connection | None:
        with self._lock:
            kept = self._kept.pop() if self._kept else None
        if kept is None:
            return None
        conn, since, owner = kept
        if owner != os.getpid():
            # A forked child has its parent's socket; closing it here would end the parent's session.
            return None
        if time.monotonic() - since < _IDLE_SECONDS and _is_alive(conn):
            return conn
        conn.close()
        return None

    def _keep(self, conn: Connection) -> bool:
        with self._lock:
            if self._kept:
                return False
            self._kept.append((conn, time.monotonic(), os.getpid()))
            return True


def _cleaned(conn: Connection) -> bool:
    try:
        if conn.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            conn.rollback()
        conn.execute(_CLEAN)
    except psycopg.Error:
        return False
    return True


def _is_alive(conn: Connection) -> bool:
    """Whether the server has neither closed the session nor anything to say in it: an idle one is silent."""
    if conn.closed or conn.broken:
        return False
    readable, _, _ = select.select([conn.fileno()], [], [], 0)
    return not readable


def _close_all(kept: list[tuple[Connection, float, int]]) -> None:
    while kept:
        conn, _, owner = kept.pop()
        if owner == os.getpid():
            conn.close()
