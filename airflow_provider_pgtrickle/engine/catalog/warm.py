"""Sessions kept open between refreshes: one, or as many as refresh side by side.

Connecting costs more than a refresh that finds nothing to do: the server starts a process, checks a password and reads
its catalogs. So the last session is cleaned and kept for the next refresh of the same process.
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

#: Firewalls and poolers may cut a session that is idle for longer, and it would miss changed settings of its role.
_IDLE_SECONDS = 60.0


class WarmSession:
    """Lends sessions in autocommit. Several may be lent at a time; `most` of them are kept."""

    def __init__(self) -> None:
        self.most = 1
        self._lock = threading.Lock()
        self._kept: list[tuple[Connection, float, int]] = []
        weakref.finalize(self, _close_all, self._kept)

    @contextmanager
    def lent(self, connect: Callable[[], Connection], *, leaves_nothing: bool = False) -> Iterator[Connection]:
        """Lend the kept session, or a new one, and clean it afterwards, whatever the block did with it.

        `leaves_nothing`: if the block ends well, there is nothing to clean.
        """
        conn, is_clean = self._take() or connect(), False
        try:
            yield conn
            is_clean = leaves_nothing
        finally:
            # Locks are released explicitly: the server may notice a disconnection only after the next refresh began.
            if not ((is_clean or _cleaned(conn)) and self._keep(conn)):
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
            if len(self._kept) >= self.most:
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
    """Whether the session is still open. The server sends nothing to an idle session unless it ends it."""
    if conn.closed or conn.broken:
        return False
    readable, _, _ = select.select([conn.fileno()], [], [], 0)
    return not readable


def _close_all(kept: list[tuple[Connection, float, int]]) -> None:
    while kept:
        conn, _, owner = kept.pop()
        if owner == os.getpid():
            conn.close()
