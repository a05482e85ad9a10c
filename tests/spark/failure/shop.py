"""A stream table whose refresh can be stopped at each step, so that something can be killed right there.

The steps wait for an advisory lock, which the test holds as long as it wants them to wait:

    compute   in a function that the query calls
    stage     in a domain's CHECK, run when the stage is loaded
    apply     in a trigger of the stream table
    commit    in a deferred constraint trigger, the last thing before the commit
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.catalog.migrate import install
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult
from airflow_provider_pgtrickle.engine.refresh.unit import refresh_unit
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.execute import SparkExecutor

STEPS = {"compute": 1, "stage": 2, "apply": 3, "commit": 4}
QUERY = "SELECT id, g, halt(1, v)::checked AS v FROM orders WHERE v >= 0"
PLAIN = "SELECT id, g, v FROM orders WHERE v >= 0"
DEADLINE = 200.0
_SPACE = 7001

_TABLES = """
    CREATE FUNCTION halt(step int, v int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS $$
        BEGIN PERFORM pg_advisory_xact_lock_shared(7001, step); RETURN v; END $$;
    CREATE DOMAIN checked AS int CHECK (halt(2, VALUE) IS NOT NULL);
    CREATE TABLE orders (id int PRIMARY KEY, g int NOT NULL, v int NOT NULL);
    INSERT INTO orders SELECT n, n % 7, n FROM generate_series(1, 200) n;
    CREATE TABLE groups (g int PRIMARY KEY, name text NOT NULL);
    INSERT INTO groups SELECT n, 'group ' || n FROM generate_series(0, 6) n;
"""
_HALTS = """
    CREATE FUNCTION halting() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM public.halt(TG_ARGV[0]::int, 0); RETURN NULL; END $$;
    CREATE TRIGGER applying AFTER INSERT OR UPDATE OR DELETE ON st EXECUTE FUNCTION halting('3');
    CREATE CONSTRAINT TRIGGER committing AFTER INSERT OR UPDATE OR DELETE ON st DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION halting('4');
"""


class Shop:
    """The database, the user's session in it, and what a test does to both."""

    def __init__(self, dsn: str, conn: psycopg.Connection[Any], query: str = QUERY, plain: str = PLAIN) -> None:
        self.dsn = dsn
        self.conn = conn
        self._plain = plain
        self.settings = Settings.load(retry_attempts=1)
        self.database = Database(dsn, self.settings)
        install(conn)
        conn.execute(_TABLES)
        with PgTrickle(dsn, executor=lambda: PostgresExecutor(self.database)) as pt:
            pt.create_stream_table("st", query, differential_max_change_ratio=0.0)
        conn.execute(_HALTS)

    def change(self) -> None:
        """Rows that come, change and go, in each of the groups."""
        self.conn.execute("INSERT INTO orders SELECT coalesce(max(id), 0) + 1, 3, 77 FROM orders")
        self.conn.execute("UPDATE orders SET v = v + 1 WHERE id % 10 = 3")
        self.conn.execute("DELETE FROM orders WHERE id = (SELECT min(id) FROM orders)")

    def refresh(self, spark: Any, token: str | None = None, *, full: bool = False, **settings: Any) -> RefreshResult:
        """On this session, or by PostgreSQL alone where there is none."""
        chosen = Settings.load(**{"retry_attempts": 1} | settings)
        database = Database(self.dsn, chosen)
        names = [QualifiedName("public", "st")]
        try:
            results = refresh_unit(
                database,
                names,
                executor=lambda: SparkExecutor(spark, database) if spark else PostgresExecutor(database),
                settings=chosen,
                force_full=full,
                run_token=token,
            )
        finally:
            database.close()
        return results["public.st"]

    def differences(self) -> list[tuple[Any, ...]]:
        """Rows that the stream table has too many or too few."""
        columns = [
            column.name for column in self.conn.execute(f"SELECT * FROM ({self._plain}) q LIMIT 0").description or ()
        ]
        stored = f"SELECT {', '.join(columns)} FROM st"
        return self.conn.execute(
            f"(SELECT 'surplus', * FROM (({stored}) EXCEPT ALL ({self._plain})) a)"
            f" UNION ALL (SELECT 'missing', * FROM (({self._plain}) EXCEPT ALL ({stored})) b)"
        ).fetchall()

    def history(self) -> list[tuple[str, str | None]]:
        return self.conn.execute(
            "SELECT status, action FROM pgtrickle.pgt_refresh_history ORDER BY refresh_id"
        ).fetchall()

    def lease(self) -> str | None:
        """The attempt that may commit."""
        row = self.conn.execute("SELECT lease_token FROM pgtrickle.pgt_stream_tables").fetchone()
        return row[0] if row else None

    def stages(self) -> list[tuple[str]]:
        """Staging tables that are there."""
        return self.conn.execute("SELECT relname FROM pg_class WHERE relname LIKE 'stage\\_%'").fetchall()

    @contextmanager
    def halted(self, step: str, start: Callable[[ThreadPoolExecutor], Any]) -> Iterator[Halted]:
        """What is started goes on until it waits at `step`; it is let go when the block ends."""
        self.conn.execute("SELECT pg_advisory_lock(%s, %s)", (_SPACE, STEPS[step]))
        with ThreadPoolExecutor(1) as pool:
            try:
                halted = Halted(self, step, start(pool))
                halted.wait()
                yield halted
            finally:
                self.conn.execute("SELECT pg_advisory_unlock(%s, %s)", (_SPACE, STEPS[step]))

    def waiting(self) -> list[int]:
        """The PostgreSQL sessions that wait for a lock, whichever it is."""
        rows = self.conn.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ).fetchall()
        return [pid for (pid,) in rows]

    def wait_for_sessions_to_end(self) -> None:
        """Until no session of a refresh is left: the server learns of a killed client when it next looks."""
        count = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND (application_name LIKE 'pgtrickle%' OR application_name LIKE 'PostgreSQL JDBC%')"
        )
        until(lambda: self.conn.execute(count).fetchone() == (0,))


def in_thread(work: Callable[[], Any]) -> Callable[[ThreadPoolExecutor], Any]:
    """To be halted: a call."""
    return lambda pool: pool.submit(work)


class Halted:
    """Work that waits at a step."""

    def __init__(self, shop: Shop, step: str, running: Any) -> None:
        self._shop = shop
        self._step = step
        self.running = running

    def wait(self) -> None:
        until(lambda: bool(self.waiting()) or self.running.done())
        assert self.waiting(), self.running.exception()

    def waiting(self) -> list[int]:
        """The PostgreSQL sessions that wait."""
        rows = self._shop.conn.execute(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid = %s AND objid = %s",
            (_SPACE, STEPS[self._step]),
        ).fetchall()
        return [pid for (pid,) in rows]

    def terminate(self) -> None:
        """End the sessions that wait, as an administrator or a failover would."""
        for pid in self.waiting():
            self._shop.conn.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))

    def terminate_coordinator(self) -> None:
        self._shop.conn.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'pgtrickle refresh' AND datname = current_database()"
        )

    def failure(self) -> BaseException | None:
        """What came of it, once let go."""
        return self.running.exception(DEADLINE)


def until(condition: Callable[[], bool]) -> None:
    """Ask again until true: PostgreSQL has no way to tell us of a lock that someone waits for."""
    over = threading.Event()
    timer = threading.Timer(DEADLINE, over.set)
    timer.start()
    try:
        while not condition():
            assert not over.wait(0.02), "it did not happen"
    finally:
        timer.cancel()


def children(pid: int) -> list[int]:
    """All processes below one, by the kernel's own list."""
    found: list[int] = []
    # It, or a thread of it, may end while we look.
    threads: list[Path] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        threads += Path(f"/proc/{pid}/task").iterdir()
    for thread in threads:
        with suppress(FileNotFoundError, ProcessLookupError):
            for child in (thread / "children").read_text().split():
                found += [int(child), *children(int(child))]
    return found
