"""What writers pay for IMMEDIATE tables, less the bare statement."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import perf_counter

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests.benchmarks import place
from tests.benchmarks.measure import Goal, Measured

QUERIES = {
    "scan": "SELECT id, g, v FROM t",
    "filter": "SELECT id, v FROM t WHERE v % 2 = 0",
    "join": "SELECT t.id, t.v, u.name FROM t JOIN u ON u.g = t.g",
    "aggregate": "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g",
    "join and aggregate": "SELECT u.name, count(*) AS n, sum(t.v) AS s FROM t JOIN u ON u.g = t.g GROUP BY u.name",
}
SIZES = (100_000, 2_000_000)
REPEATS = 5
GROUPS = 1_000
STATEMENTS = 100
MANY = 10_000
_MIXED = """
DO $$ BEGIN
    FOR i IN 1..33 LOOP
        UPDATE t SET v = v + 1 WHERE id = i * 7;
        INSERT INTO t VALUES (-i, i, i);
        DELETE FROM t WHERE id = -i;
    END LOOP;
    UPDATE t SET v = v + 1 WHERE id = 1;
END $$
"""
_HELD = 0.005
_SECONDS = 3.0
WRITERS = (1, 4, 8)


def run(dsn: str, sizes: Sequence[int] = SIZES) -> Iterator[Measured]:
    for rows in sizes:
        bare: dict[str, float] = {}
        for name, query in {"bare": None, **QUERIES}.items():
            with _site(dsn, rows) as url, PgTrickle(url, executor=lambda: PostgresExecutor(client.database)) as client:
                client.install()
                if query is not None:
                    client.create_stream_table("st", query, refresh_mode="IMMEDIATE")
                for measured, seconds in _statements(url).items():
                    bare.setdefault(measured, seconds)
                    facts = {
                        "rows": rows,
                        "bare": round(bare[measured], 5),
                        "above": round(seconds - bare[measured], 5),
                    }
                    yield Measured(f"immediate, {measured}", name, seconds, facts)
    with _site(dsn, sizes[0]) as url, PgTrickle(url, executor=lambda: PostgresExecutor(client.database)) as client:
        client.install()
        client.create_stream_table("st", QUERIES["aggregate"], refresh_mode="IMMEDIATE")
        for writers in WRITERS:
            yield Measured("immediate, writers", str(writers), _SECONDS, {"transactions": _written(url, writers)})


@contextmanager
def _site(dsn: str, rows: int) -> Iterator[str]:
    """A fresh database with its tables, which are analyzed."""
    with place.database(dsn) as url:
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute("CREATE TABLE t (id int PRIMARY KEY, g int NOT NULL, v int NOT NULL)")
            conn.execute("CREATE TABLE u (g int PRIMARY KEY, name text NOT NULL)")
            conn.execute("INSERT INTO t SELECT i, i %% %s, i FROM generate_series(1, %s) AS i", (GROUPS, rows))
            conn.execute("INSERT INTO u SELECT i, 'n' || i FROM generate_series(0, %s) AS i", (GROUPS - 1,))
            conn.execute("VACUUM ANALYZE t, u")
        yield url


def _statements(url: str) -> dict[str, float]:
    """Seconds of a session's first statement, of a hundred of one row each, and of one of many rows."""
    with psycopg.connect(url) as conn:
        first = _seconds(conn, "UPDATE t SET v = v + 1 WHERE id = 1")
        hundred = min(_seconds(conn, _MIXED) for _ in range(REPEATS))
        many = min(_seconds(conn, f"UPDATE t SET v = v + 1 WHERE id <= {MANY}") for _ in range(2))
    return {"first statement": first, f"{STATEMENTS} statements": hundred, f"{MANY:,} rows": many}


def _seconds(conn: psycopg.Connection, statement: str) -> float:
    begun = perf_counter()
    conn.execute(statement)
    taken = perf_counter() - begun
    conn.commit()
    return taken


def _written(url: str, writers: int) -> int:
    """Transactions in some seconds, each of a group of its own and open for a while after its statement."""
    end, pause = perf_counter() + _SECONDS, threading.Event()

    def write(number: int) -> int:
        done = 0
        with psycopg.connect(url) as conn:
            while perf_counter() < end:
                conn.execute("UPDATE t SET v = v + 1 WHERE id = %s", (number + 1,))
                pause.wait(_HELD)
                conn.commit()
                done += 1
        return done

    with ThreadPoolExecutor(writers) as pool:
        return sum(pool.map(write, range(writers)))


def goals(rows: list[Measured]) -> Iterator[Goal]:
    for row in rows:
        if row.name == "bare" or row.suite == "immediate, writers":
            continue
        what = f"{row.name}, {row.facts['rows']:,} rows"
        if "first" in row.suite:
            yield Goal(f"{what}: first statement (ms)", 10, row.seconds * 1000)
        elif "statements" in row.suite:
            most = 15 if row.name == "join" else 12
            yield Goal(f"{what}: 100 statements above bare (ms)", most, row.facts["above"] * 1000)
        else:
            yield Goal(f"{what}: 10,000 rows, times bare", 3, row.seconds / row.facts["bare"])
    done = {row.name: row.facts["transactions"] for row in rows if row.suite == "immediate, writers"}
    yield Goal("8 writers to 8 groups, times one writer", 3, done["8"] / done["1"], at_most=False)
