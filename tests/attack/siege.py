"""Writers and refreshing processes on one database, and what is killed under them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import psycopg

from airflow_provider_pgtrickle.embedded import PostgresServer
from tests import servers
from tests.attack.attack import differing
from tests.attack.ledger import PRELUDE, STREAM_TABLES, Checked, check, watch
from tests.attack.refreshing import unhurt
from tests.attack.writers import Crowd

__all__ = ["KILLS", "checked", "contents", "declared", "drivers", "killed"]


def declared(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn, unhurt(dsn) as pt:
        conn.execute(PRELUDE)
        pt.install()
        watch(conn)
        for name, query in STREAM_TABLES.items():
            pt.create_stream_table(name, query)


def checked(dsn: str, crowd: Crowd) -> Checked:
    """After a last refresh, which PostgreSQL judges, too."""
    with psycopg.connect(dsn, autocommit=True) as conn, unhurt(dsn) as pt:
        crowd.give_up_prepared(conn)
        for names in (tuple(STREAM_TABLES), *((name,) for name in STREAM_TABLES)):
            pt.refresh(names)
        assert [differing(conn, name) for name in STREAM_TABLES] == [None] * len(STREAM_TABLES)
        return check(conn, crowd.transactions)


# Kills


def _end_a_session(server: PostgresServer, dsn: str, chance: random.Random, like: str) -> bool:
    with psycopg.connect(dsn, autocommit=True) as conn:
        pids = [pid for (pid,) in conn.execute(_SESSIONS, (like,))]
        if pids:
            conn.execute("SELECT pg_terminate_backend(%s)", (chance.choice(pids),))
    return bool(pids)


def _kill_a_backend(server: PostgresServer, dsn: str, chance: random.Random, like: str) -> bool:
    """The postmaster ends all sessions then, and recovers."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        pids = [pid for (pid,) in conn.execute(_SESSIONS, (like,))]
    if pids:
        with suppress(ProcessLookupError):
            os.kill(chance.choice(pids), signal.SIGKILL)
    return bool(pids)


def _kill_the_server(server: PostgresServer, dsn: str, chance: random.Random, like: str) -> bool:
    server.kill()
    server.start()
    return True


_SESSIONS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE %s"
KILLS: dict[str, tuple[Callable[[PostgresServer, str, random.Random, str], bool], str]] = {
    "refresher's session": (_end_a_session, "pgtrickle%"),
    "writer's session": (_end_a_session, "writer%"),
    "refresher's backend": (_kill_a_backend, "pgtrickle%"),
    "writer's backend": (_kill_a_backend, "writer%"),
    "server": (_kill_the_server, ""),
}


def killed(
    server: PostgresServer, *, writers: int, seed: int, every: int, rounds: int = 1, minutes: float = 0
) -> tuple[Checked, Crowd, Counter[str]]:
    """Writers and refreshing processes; after so many transactions something is killed, the kinds in turn."""
    kills, chance = Counter[str](), random.Random(seed)
    until = time.monotonic() + minutes * 60
    with servers.fresh_database(server) as name:
        dsn = servers.ordinary_dsn(server, name)
        declared(dsn)
        crowd = Crowd(lambda: dsn, writers, seed)
        crowd.start()
        driver = threading.Thread(target=drivers, args=(dsn, crowd, chance, kills), daemon=True)
        driver.start()
        while kills["server"] < rounds or kills["driver"] < rounds or time.monotonic() < until:
            for kind, (kill, like) in KILLS.items():
                before = contents(dsn)
                crowd.allow(every)
                while contents(dsn) in (before, None):
                    crowd.wait_for(crowd.ended + 1, 0.2)
                crowd.allow(every)
                crowd.wait_for(crowd.ended + every // 2)
                with suppress(psycopg.OperationalError):  # it is just recovering from the kill before
                    kills[kind] += kill(server, dsn, chance, like)
        crowd.stop()
        crowd.join()
        driver.join()
        server.start()
        return checked(dsn, crowd), crowd, kills


def contents(dsn: str) -> int | None:
    """How far refreshes are; None where nobody can say just now."""
    try:
        with psycopg.connect(dsn, autocommit=True) as conn:
            row = conn.execute("SELECT max(n) FROM seen").fetchone()
    except psycopg.OperationalError:
        return None
    return row[0] if row else None


def drivers(dsn: str, crowd: Crowd, chance: random.Random, kills: Counter[str]) -> None:
    """One refreshing process after the other: each kills itself before some statement."""
    while crowd.at_work():
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.refreshing", str(chance.random()), str(chance.randint(60, 400))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PGTRICKLE_DSN": dsn},
        )
        while driver.poll() is None and crowd.at_work():
            with suppress(subprocess.TimeoutExpired):
                driver.wait(0.1)
        assert driver.stdin is not None
        driver.stdin.close()
        if driver.wait() == -signal.SIGKILL:
            kills["driver"] += 1
