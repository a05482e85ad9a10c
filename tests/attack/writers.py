"""Writers in threads, who record what they write: see `ledger`."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import psycopg
from psycopg import IsolationLevel

from tests.attack.ledger import KEYS, Transaction

__all__ = ["Crowd"]

_LEVELS = (IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE)
#: How many transactions of others a late one lets pass before it commits, at most.
_LATE = 12
#: ... and for how long: they may all be waiting for its rows.
_PATIENCE = 0.2


class _Undone(Exception):
    """The writer thought better of it."""


class Crowd:
    """Writers, each with his own session, and what they did."""

    def __init__(self, dsn: Callable[[], str], writers: int, seed: int, *, two_phases: bool = True) -> None:
        self._dsn, self._two_phases = dsn, two_phases
        self.transactions: list[Transaction] = []
        self.counts: Counter[str] = Counter()
        self.raised: list[str] = []
        self._turn = threading.Condition()
        self._ended = 0
        self._allowed = 1 << 60
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, args=(f"{seed}.{number}",), daemon=True) for number in range(writers)
        ]
        self._number = 0

    def start(self, transactions: int | None = None) -> None:
        """Each writer that many; None: until stopped."""
        self._number = transactions or 1 << 60
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def allow(self, more: int) -> None:
        """That many more, and then a pause: writers that never rest leave a small machine no time to refresh."""
        with self._turn:
            self._allowed = self._ended + more
            self._turn.notify_all()

    @property
    def ended(self) -> int:
        """Transactions that came to an end so far."""
        return self._ended

    def at_work(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def wait_for(self, ended: int, seconds: float = 600) -> None:
        """Until that many transactions have come to their end, or nobody works any more."""
        until = time.monotonic() + seconds
        with self._turn:
            while self._ended < ended and not self._stopped.is_set() and self.at_work() and time.monotonic() < until:
                self._turn.wait(0.05)

    def _rest(self) -> None:
        with self._turn:
            while self._ended >= self._allowed and not self._stopped.is_set():
                self._turn.wait(0.05)

    def _write(self, name: str) -> None:
        chance = random.Random(name)
        conn: psycopg.Connection | None = None
        begun: list[str] = []
        try:
            for number in range(self._number):
                self._rest()
                if self._stopped.is_set():
                    break
                try:
                    if conn is None or conn.closed or conn.broken:
                        conn = psycopg.connect(self._dsn(), application_name=f"writer {name}")
                    while begun:
                        _given_up(conn, begun[-1])
                        begun.pop()
                    begun.append(f"{name}.{number}")
                    self._transaction(conn, chance, Transaction(begun[-1]))
                    begun.clear()
                except psycopg.Error as error:
                    self._failed(conn, error)
                    if conn is None or conn.closed:
                        # The server is down, or just coming back.
                        self.wait_for(self._ended + 1, _PATIENCE)
                        continue
                with self._turn:
                    self._ended += 1
                    self._turn.notify_all()
        except BaseException as error:
            self.raised.append(f"{type(error).__name__}: {error}")
        finally:
            if conn is not None:
                conn.close()

    def give_up_prepared(self, conn: psycopg.Connection) -> None:
        """Of those who were killed between their two phases and had no time to come back."""
        gids = conn.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()").fetchall()
        for (gid,) in gids:
            conn.execute(f"ROLLBACK PREPARED '{gid}'")

    def _failed(self, conn: psycopg.Connection | None, error: psycopg.Error) -> None:
        """Conflicts with other writers, and what was killed, are in the game; anything that names us is not."""
        self.counts[error.sqlstate or type(error).__name__] += 1
        said = str(error)
        if error.sqlstate in ("40001", "40P01"):
            # Of those between writers PostgreSQL may speak in any statement, the trigger's too; a row of ours is ours.
            ours = "pgtrickle" in said and "read/write dependencies" not in said
        else:
            ours = error.sqlstate is not None and error.sqlstate[:2] not in ("57", "08")
        if ours:
            self.raised.append(f"{error.sqlstate} {said}")
        if conn is not None and not conn.closed and not conn.broken:
            with suppress(psycopg.OperationalError):  # the server went just now
                conn.rollback()

    def _transaction(self, conn: psycopg.Connection, chance: random.Random, made: Transaction) -> None:
        conn.isolation_level = chance.choices(_LEVELS, (60, 25, 15))[0]
        # Killed or not: whether it was committed is said by its marker.
        self.transactions.append(made)
        row = conn.execute(
            "WITH m AS (INSERT INTO markers VALUES (%s)) SELECT pg_current_xact_id()::text::bigint", (made.marker,)
        ).fetchone()
        assert row is not None
        made.xid = row[0]
        keys = sorted(chance.sample(range(1, KEYS + 1), chance.randint(1, 4)))
        for key in keys:
            if chance.random() < 0.12:
                self._tried(conn, chance, made, key)
            else:
                _row(conn, chance, made, key)
        if chance.random() < 0.15:
            _name(conn, chance, made)
        if chance.random() < 0.1:
            late = self._ended + chance.randint(1, _LATE)
            self.counts["late"] += 1
            self.wait_for(late, _PATIENCE)
        self._end(conn, chance, made)

    def _tried(self, conn: psycopg.Connection, chance: random.Random, made: Transaction, key: int) -> None:
        """In a savepoint, which may be taken back."""
        before = len(made.writes)
        try:
            with conn.transaction():
                _row(conn, chance, made, key)
                if chance.random() < 0.5:
                    raise _Undone
        except _Undone:
            del made.writes[before:]
            self.counts["savepoints taken back"] += 1

    def _end(self, conn: psycopg.Connection, chance: random.Random, made: Transaction) -> None:
        kind = chance.random()
        if kind < 0.12:
            conn.rollback()
            self.counts["rolled back"] += 1
        elif kind < 0.16 and self._two_phases:
            conn.execute(f"PREPARE TRANSACTION '{made.marker}'")
            conn.rollback()  # of nothing: the session is free again
            self.wait_for(self._ended + 3, _PATIENCE)
            conn.autocommit = True
            end = chance.choice(("COMMIT", "COMMIT", "ROLLBACK"))
            conn.execute(f"{end} PREPARED '{made.marker}'")
            made.promised = end == "COMMIT"
            conn.autocommit = False
            self.counts["in two phases"] += 1
        else:
            conn.commit()
            made.promised = True
            self.counts["committed"] += 1


def _given_up(conn: psycopg.Connection, marker: str) -> None:
    """Roll back the transaction that failed, if it had been prepared: nobody else would, and its rows stay locked."""
    conn.autocommit = True
    if conn.execute("SELECT FROM pg_prepared_xacts WHERE gid = %s", (marker,)).fetchone() is not None:
        conn.execute(f"ROLLBACK PREPARED '{marker}'")
    conn.autocommit = False


def _version(conn: psycopg.Connection, place: str, key: int) -> int:
    """The next version of a key: whoever has it, has the key until he ends."""
    row = conn.execute(
        "UPDATE versions SET ver = ver + 1 WHERE (place, key) = (%s, %s) RETURNING ver", (place, key)
    ).fetchone()
    assert row is not None
    return int(row[0])


_WRITES = (
    "INSERT INTO t VALUES (%(id)s, %(g)s, %(v)s) ON CONFLICT (id) DO UPDATE SET g = excluded.g, v = excluded.v",
    "MERGE INTO t USING (VALUES (%(id)s::int, %(g)s::int, %(v)s::int)) AS s (id, g, v) ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET g = s.g, v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.g, s.v)",
    "WITH gone AS (DELETE FROM t WHERE id = %(id)s AND false RETURNING id)"
    " INSERT INTO t VALUES (%(id)s, %(g)s, %(v)s) ON CONFLICT (id) DO UPDATE SET g = excluded.g, v = excluded.v",
)


def _row(conn: psycopg.Connection, chance: random.Random, made: Transaction, key: int) -> None:
    version = _version(conn, "t", key)
    if chance.random() < 0.25:
        conn.execute("DELETE FROM t WHERE id = %s", (key,))
        made.writes.append(("t", key, version, None))
        return
    g, v = chance.randint(0, 6), chance.randint(0, 1000)
    conn.execute(chance.choice(_WRITES), {"id": key, "g": g, "v": v})
    made.writes.append(("t", key, version, (g, v)))


def _name(conn: psycopg.Connection, chance: random.Random, made: Transaction) -> None:
    key = chance.randint(0, 5)
    version = _version(conn, "u", key)
    if chance.random() < 0.2:
        conn.execute("DELETE FROM u WHERE g = %s", (key,))
        made.writes.append(("u", key, version, None))
        return
    name = f"name {chance.randint(0, 999)}"
    conn.execute("INSERT INTO u VALUES (%s, %s) ON CONFLICT (g) DO UPDATE SET name = excluded.name", (key, name))
    made.writes.append(("u", key, version, (name,)))
