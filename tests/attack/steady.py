"""Refresh for long under constant updates, and see whether anything grows: `python -m tests.attack.steady MINUTES`.

Writers are a process of their own, so that the memory measured is the refresher's. The history grows by a row with each
refresh and is pruned by its age; everything else has to be level.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests import servers
from tests.attack.attack import differing

__all__ = ["Figures", "steady"]

_ROWS = 5_000
_WRITERS = 4
_PRELUDE = f"""
CREATE TABLE t (id int PRIMARY KEY, g int, v int);
INSERT INTO t SELECT n, n % 40, n FROM generate_series(1, {_ROWS}) AS n;
CREATE TABLE u (g int PRIMARY KEY, name text);
INSERT INTO u SELECT n, 'name ' || n FROM generate_series(0, 39) AS n;
CREATE TABLE k (a int, b int);
INSERT INTO k SELECT n % 50, n FROM generate_series(1, 500) AS n;
"""
_TABLES = {
    "st_join": "SELECT t.id, t.v, u.name FROM t JOIN u ON u.g = t.g",
    "st_sum": "SELECT g, sum(v) AS total, count(*) AS n FROM t GROUP BY g",
    "st_over": "SELECT n, count(*) AS c FROM st_sum GROUP BY n",
    "st_bag": "SELECT a, b FROM k",
    "st_top": "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 10",
    "st_hidden": "SELECT n, count(*) AS c FROM (SELECT g, count(*) AS n FROM t GROUP BY g) AS q GROUP BY n",
}

_SIZE = (
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint / 1024 FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind = 'r' AND {}"
)


@dataclass(frozen=True)
class Figures:
    """How things stand; sizes in KB."""

    minute: float
    refreshes: int
    transactions: int
    resident: int
    open_files: int
    threads: int
    connections: int
    locks: int
    buffers: int
    catalog: int
    history: int
    stream_tables: int
    system: int
    """PostgreSQL's own tables, which temporary tables and their columns come and go in."""


def steady(minutes: float, every: float) -> list[Figures]:
    """Refresh so long; figures every so many seconds."""
    taken: list[Figures] = []
    # Level is what is vacuumed, as in life.
    vacuumed = {"autovacuum": "on", "autovacuum_naptime": "15s"}
    with servers.running(18, **vacuumed) as server, servers.fresh_database(server) as name:
        dsn = servers.ordinary_dsn(server, name)
        with psycopg.connect(dsn, autocommit=True) as conn, _client(dsn) as pt:
            conn.execute(_PRELUDE)
            pt.install()
            for table, query in _TABLES.items():
                pt.create_stream_table(table, query)
            counts, chance = Counter[str](), random.Random(1)
            begun = time.monotonic()
            writing = subprocess.Popen(
                [sys.executable, "-m", "tests.attack.steady", "write"],
                stdin=subprocess.PIPE,
                env={**os.environ, "PGTRICKLE_DSN": dsn},
            )
            try:
                while time.monotonic() - begun < minutes * 60:
                    for unit in (tuple(_TABLES), (chance.choice(list(_TABLES)),)):
                        for result in pt.refresh(unit).values():
                            counts[result.action] += 1
                    if time.monotonic() - begun >= len(taken) * every:
                        pt.cleanup()
                        taken.append(_figures(conn, (time.monotonic() - begun) / 60, counts))
                        print(*astuple(taken[-1]), sep="\t", flush=True)
            finally:
                assert writing.stdin is not None
                writing.stdin.close()
                writing.wait()
            pt.refresh(list(_TABLES))
            assert [differing(conn, table) for table in _TABLES] == [None] * len(_TABLES)
            print(dict(counts))
            assert set(counts) <= {"DIFFERENTIAL", "NO_DATA", "TOPK"}
    return taken


def _client(dsn: str) -> PgTrickle:
    pt = PgTrickle(dsn, differential_max_change_ratio=0.0)
    pt._given_executor = lambda: PostgresExecutor(pt.database)
    return pt


def _figures(conn: psycopg.Connection, minute: float, counts: Counter[str]) -> Figures:
    def asked(statement: str) -> int:
        row = conn.execute(statement).fetchone()
        assert row is not None
        return int(row[0])

    own = "datname = current_database() AND application_name LIKE 'pgtrickle%'"
    resident = Path("/proc/self/statm").read_text().split()[1]
    history = "c.oid = 'pgtrickle.pgt_refresh_history'::regclass"
    return Figures(
        round(minute, 1),
        sum(counts.values()),
        asked("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"),
        int(resident) * os.sysconf("SC_PAGE_SIZE") // 1024,
        len(os.listdir("/proc/self/fd")),
        threading.active_count(),
        asked(f"SELECT count(*) FROM pg_stat_activity WHERE {own}"),
        asked(f"SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE {own}"),
        asked(_SIZE.format("nspname = 'pgtrickle_changes'")),
        asked(_SIZE.format(f"nspname = 'pgtrickle' AND NOT {history}")),
        asked(_SIZE.format(history)),
        asked(_SIZE.format("nspname = 'public' AND relname LIKE 'st\\_%'")),
        asked(_SIZE.format("nspname = 'pg_catalog'")),
    )


def _write() -> None:
    """Until our input ends."""
    over = threading.Event()
    threads = [threading.Thread(target=_writer, args=(seed, over), daemon=True) for seed in range(_WRITERS)]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    over.set()
    for thread in threads:
        thread.join()


def _writer(seed: int, over: threading.Event) -> None:
    chance = random.Random(seed)
    with psycopg.connect(os.environ["PGTRICKLE_DSN"], autocommit=True, application_name="writer") as conn:
        while not over.is_set():
            # Each has rows of its own: nobody waits, and nobody rolls back.
            id, n = chance.randrange(1, _ROWS // _WRITERS) * _WRITERS + seed, chance.randrange(40)
            with conn.transaction():
                conn.execute("UPDATE t SET v = v + %s, g = %s WHERE id = %s", (n - 20, n, id))
                conn.execute("UPDATE k SET b = b + 1 WHERE a = %s AND b %% %s = 0", (n, seed + 2))
                if n == 7:
                    conn.execute("DELETE FROM t WHERE id = %s", (id,))
                    conn.execute("INSERT INTO t VALUES (%s, %s, %s)", (id, seed, n))
            over.wait(0.01)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        _write()
    else:
        print(*(field.name for field in fields(Figures)), sep="\t")
        steady(float(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 60.0)
