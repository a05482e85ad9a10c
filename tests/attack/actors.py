"""Sessions that act in turn: each in a thread of its own, one step at a time, until it is done, in a gap or blocked.

Nobody sleeps: a step is over when every actor is idle, stands in a gap, or waits for a lock that PostgreSQL names.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult
from tests.attack.moves import Declare, Refresh, Say
from tests.attack.worlds import World

__all__ = ["SETTINGS", "Actor", "Hanging", "Owner", "Refresher", "Room", "client", "named"]

#: Tables of ten rows would always run FULL for their change ratio, and a FULL hides what a difference shows.
SETTINGS: dict[str, Any] = {
    "differential_max_change_ratio": 0.0,
    "retry_attempts": 3,
    "retry_base_seconds": 0.005,
    "lock_timeout_seconds": 20,
    "max_consecutive_errors": 3,
}
_DEADLINE = 60.0
_GLANCE = 0.002

_ASKED = re.compile(r"<<([^>]+)>>")
_NAMES = {
    "trigger": "SELECT quote_ident(tgname) FROM pg_trigger WHERE tgrelid = to_regclass(%s)"
    " AND tgname LIKE 'pgtrickle\\_%%\\_' || %s AND NOT tgisinternal ORDER BY tgname LIMIT 1",
    "buffer": "SELECT 'pgtrickle_changes.changes_' || to_regclass(%s)::oid",
    "function": "SELECT 'pgtrickle_changes.capture_' || to_regclass(%s)::oid || '()'",
    "part": "SELECT 'pgtrickle_changes.changes_pgt_' || pgt_id FROM pgtrickle.pgt_stream_tables WHERE pgt_name = %s",
    "db": "SELECT current_database()",
}


class Hanging(Exception):
    """Nobody can go on."""


def client(database: Database) -> PgTrickle:
    """The product, computing in PostgreSQL, on sessions of `database`."""
    pt = PgTrickle(database.dsn, executor=lambda: PostgresExecutor(database), **SETTINGS)
    pt.database = database
    return pt


class Room:
    """Where the actors of one database meet: it knows who is busy, and why."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.changed = threading.Condition()
        self.actors: dict[str, Actor] = {}
        self.monitor = psycopg.connect(dsn, autocommit=True, application_name="monitor")
        self.deadline = time.monotonic() + _DEADLINE
        self.counts: Counter[str] = Counter()

    def settle(self) -> None:
        """Wait until nobody does anything by himself any more."""
        while True:
            with self.changed:
                busy = [actor for actor in self.actors.values() if actor.running]
                if not busy:
                    return
                progress = [actor.progress for actor in busy]
                self.changed.wait(_GLANCE)
                if progress != [actor.progress for actor in busy]:
                    continue
            waiting = {pid for (pid,) in self.monitor.execute("SELECT pid FROM pg_locks WHERE NOT granted")}
            with self.changed:
                still = [actor.progress for actor in busy if actor.running]
                if still == progress and all(waiting & actor.pids for actor in busy):
                    self.counts["blocked"] += len(busy)
                    return
            if time.monotonic() > self.deadline:
                raise Hanging(", ".join(f"{actor.name}: {actor.doing}" for actor in busy))

    def at_rest(self) -> bool:
        """Whether all have done all, and no transaction is open."""
        if any(actor.running or actor.paused or actor.in_transaction for actor in self.actors.values()):
            return False
        return self._prepared() == []

    def finish(self) -> None:
        """Let everybody go on to his end, and end what is open."""
        while True:
            self.settle()
            stirred = False
            for actor in self.actors.values():
                stirred |= actor.released()
            if not stirred:
                if not any(actor.running for actor in self.actors.values()):
                    break
                if time.monotonic() > self.deadline:
                    raise Hanging(", ".join(f"{a.name}: {a.doing}" for a in self.actors.values() if a.running))
        for gid in self._prepared():
            self.monitor.execute(f"COMMIT PREPARED '{gid}'")

    def close(self) -> None:
        with suppress(psycopg.Error):
            for gid in self._prepared():
                self.monitor.execute(f"ROLLBACK PREPARED '{gid}'")
            self.monitor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        for actor in self.actors.values():
            actor.leave()
        self.monitor.close()

    def _prepared(self) -> list[str]:
        found = self.monitor.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()").fetchall()
        return [gid for (gid,) in found]


class Actor:
    """One who does what he is given, in order, in his own thread."""

    def __init__(self, name: str, room: Room) -> None:
        self.name, self.room = name, room
        self.pids: set[int] = set()
        self.running = self.paused = self._left = False
        self.progress = 0
        self.doing: object = None
        self._given: deque[Any] = deque()
        room.actors[name] = self
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._thread.start()

    @property
    def in_transaction(self) -> bool:
        return False

    def give(self, step: Any) -> None:
        with self.room.changed:
            self._given.append(step)
            if not self.paused:
                self.running = True
            self.room.changed.notify_all()

    def resume(self) -> bool:
        """Leave the gap; False where he stands in none."""
        with self.room.changed:
            if not self.paused:
                return False
            self.paused, self.running = False, True
            self.room.changed.notify_all()
            return True

    def released(self) -> bool:
        """Made to go on, at the end of a history; False where there is nothing to go on with."""
        return self.resume()

    def kill(self) -> None:
        for pid in tuple(self.pids):
            self.room.monitor.execute("SELECT pg_terminate_backend(%s, 2000)", (pid,))

    def leave(self) -> None:
        with self.room.changed:
            self._left = True
            self.paused = False
            self.room.changed.notify_all()
        self._thread.join(10)

    def act(self, step: Any) -> None:
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError

    def moved(self) -> None:
        with self.room.changed:
            self.progress += 1

    def stand(self) -> None:
        """Be in a gap until resumed."""
        with self.room.changed:
            self.running, self.paused = False, True
            self.room.changed.notify_all()
            self.room.changed.wait_for(lambda: not self.paused)

    def _live(self) -> None:
        while True:
            with self.room.changed:
                if not self._given:
                    self.running = False
                    self.room.changed.notify_all()
                    self.room.changed.wait_for(lambda: self._given or self._left)
                if self._left:
                    break
                self.doing = self._given.popleft()
                self.running = True
                self.progress += 1
            self.act(self.doing)
        self.end()


class Owner(Actor):
    """A session of the owner. What goes wrong in it is noted, with whether it is our fault."""

    def __init__(self, name: str, room: Room) -> None:
        self._conn = psycopg.connect(room.dsn, autocommit=True, application_name=f"owner {name}")
        super().__init__(name, room)
        self.pids = {self._conn.info.backend_pid}
        self.wronged: list[str] = []

    @property
    def in_transaction(self) -> bool:
        return self._conn.info.transaction_status != TransactionStatus.IDLE

    def released(self) -> bool:
        if not self.running and self.in_transaction:
            self.give(Say(self.name, "COMMIT"))
            return True
        return False

    def act(self, step: Say) -> None:
        statement: str | None = None
        try:
            statement = self._resolved(step.sql)
            if statement is None:
                self.room.counts["left out"] += 1
                return
            head, _, rows = statement.partition(";\n")
            if rows:
                with self._conn.cursor() as cursor, cursor.copy(head) as copy:
                    copy.write(rows)
            else:
                self._conn.execute(statement)
            self.room.counts["statements"] += 1
        except psycopg.Error as error:
            self.room.counts["refused statements"] += 1
            fault = self._fault(step.sql, error)
            if fault and not self._succeeds_now(statement, error):
                self.wronged.append(f"{step.sql}: {fault}")

    def _succeeds_now(self, statement: str | None, error: psycopg.Error) -> bool:
        """Whether it only failed because it had waited behind somebody's DROP of its buffer (decision 20)."""
        if statement is None or not isinstance(error, psycopg.errors.UndefinedTable):
            return False
        try:
            if self.in_transaction:
                self._conn.execute("ROLLBACK")
            self._conn.execute(statement)
        except psycopg.Error:
            return False
        self.room.counts["failed once behind a DROP"] += 1
        return True

    def end(self) -> None:
        self._conn.close()

    def _resolved(self, statement: str) -> str | None:
        for question in _ASKED.findall(statement):
            kind, *values = question.split()
            row = self._conn.execute(_NAMES[kind], values).fetchone()
            if row is None or row[0] is None:
                return None
            statement = statement.replace(f"<<{question}>>", row[0])
        return statement

    def _fault(self, statement: str, error: psycopg.Error) -> str | None:
        """What we did to a statement that has nothing to do with us; None: it is its author's own fault."""
        if any(f"<<{kind}" in statement for kind in ("trigger", "buffer", "function", "part")):
            return None
        told = error.diag
        words = (told.message_primary, told.message_detail, told.context, told.message_hint)
        said = " ".join(filter(None, words)) or str(error)
        if error.sqlstate == "40P01":
            others = {pid for a in self.room.actors.values() if isinstance(a, Refresher) for pid in a.pids}
            met = {int(pid) for pid in re.findall(r"rocess (\d+)", said)} & others
            return f"deadlock with a refresh: {said}" if met else None
        if "is a stream table" in said:
            # Its guard's refusal, as documented.
            return None
        if "read/write dependencies" in said:
            # Between the owners; PostgreSQL may speak of it in any statement, and so in the trigger's.
            return None
        return said if "pgtrickle" in said or "__pgt" in said else None


class Watched(Database):
    """Sessions that stop in gaps."""

    def __init__(self, dsn: str, refresher: Refresher, settings: Any) -> None:
        super().__init__(dsn, settings)
        self._refresher = refresher

    def connect(self, autocommit: bool = False, application_name: str = "pgtrickle") -> psycopg.Connection:
        conn = super().connect(autocommit, application_name)
        self._refresher.pids.add(conn.info.backend_pid)
        execute = conn.execute

        def stopping(query: Any, *arguments: Any, **options: Any) -> Any:
            self._refresher.before(query)
            return execute(query, *arguments, **options)

        conn.execute = stopping  # type: ignore[method-assign]
        return conn


class Refresher(Actor):
    """Refreshes and declares with the product's client, and stands still before the statements he is told to."""

    def __init__(self, name: str, room: Room, world: World) -> None:
        self._pauses: list[int] = []
        self._sent = 0
        self._world = world
        self.raw: list[str] = []
        self.results: dict[str, RefreshResult] = {}
        super().__init__(name, room)
        self._pt = client(Database(room.dsn))
        self._pt.database = Watched(room.dsn, self, self._pt.settings)
        self._pt._given_executor = lambda: PostgresExecutor(self._pt.database)

    def before(self, query: object) -> None:
        """Called before each statement."""
        self.moved()
        self._sent += 1
        if self._pauses and self._sent >= self._pauses[0] and not self._left:
            self._pauses.pop(0)
            self.room.counts["gaps"] += 1
            self.doing = query
            self.stand()

    def released(self) -> bool:
        self._pauses.clear()
        return super().released()

    def act(self, step: Refresh | Declare) -> None:
        self._pauses, self._sent, self.results = list(step.pauses), 0, {}
        try:
            self._done(step)
        except PgTrickleError as error:
            self.room.counts[f"raised {type(error).__name__}"] += 1
        except Exception as error:
            if not self._left:
                self.raw.append(f"{step}: {type(error).__name__}: {error}")
        self._pauses.clear()

    def end(self) -> None:
        self._pt.close()

    def _done(self, step: Refresh | Declare) -> None:
        if isinstance(step, Refresh):
            self.results = self._pt.refresh(step.names, force_full=step.force_full)
            for result in self.results.values():
                self.room.counts[named(result)] += 1
        elif step.what == "drop":
            self._pt.drop_stream_table(step.name, cascade=False)
        elif step.what in ("create", "replace"):
            made = {
                "create": self._pt.create_stream_table_if_not_exists,
                "replace": self._pt.create_or_replace_stream_table,
            }[step.what]
            made(step.name, self._world.stream_tables[step.name])
        else:
            self._pt.alter_stream_table(step.name, refresh_mode=step.what)


def named(result: RefreshResult) -> str:
    """Its action and, in short, the reason."""
    reason = result.fallback_reason
    return f"{result.action} ({reason.partition(':')[0]})" if reason else result.action
