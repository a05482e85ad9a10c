"""Writers at once: whatever they do, and whichever of them fail, the content is the query's answer at the end."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from tests.database.reported.conftest import Site

TABLES = """
    CREATE TABLE t (id int PRIMARY KEY, g int, v int);
    CREATE TABLE u (g int PRIMARY KEY, name text);
    INSERT INTO t SELECT i, i % 5, i FROM generate_series(1, 60) AS i;
    INSERT INTO u SELECT i, 'n' || i FROM generate_series(0, 6) AS i
"""
QUERIES = {
    "kept": "SELECT id, v * 2 AS w FROM t WHERE v > 3",
    "joined": "SELECT t.id, t.v, u.name FROM t JOIN u ON u.g = t.g",
    "sums": "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g",
    "most": "SELECT g, max(v) AS m FROM t GROUP BY g",
    "pairs": "SELECT a.id AS x, b.id AS y FROM t a JOIN t b ON a.g = b.g AND a.id < b.id AND b.id < a.id + 4",
    "counted": "SELECT u.g, count(t.id) AS n FROM u LEFT JOIN t USING (g) GROUP BY u.g",
    "bag": "SELECT g FROM t",
    "total": "SELECT sum(n) AS n, sum(s) AS s, count(*) AS groups FROM sums",
}
LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
WRITERS, TRANSACTIONS = 16, 12
#: Two MERGEs that don't find a row may both insert it. PostgreSQL refuses the second, with us and without.
RACE = "a race of MERGEs"


@pytest.fixture
def live(site: Site) -> Site:
    site.run(TABLES)
    for name, query in QUERIES.items():
        site.declare(name, query, refresh_mode="IMMEDIATE")
    return site


def equal(site: Site, queries: dict[str, str] = QUERIES) -> None:
    for name, query in queries.items():
        assert site.differs(name, query) == [], name


@contextmanager
def session(site: Site, level: str = "READ COMMITTED") -> Iterator[psycopg.Connection]:
    with psycopg.connect(site.client.database.dsn, autocommit=True) as conn:
        conn.execute(f"SET default_transaction_isolation = '{level}'")
        yield conn


def _statement(choice: random.Random) -> str:
    (i, j), g = choice.sample(range(1, 90), 2), choice.randrange(0, 8)
    return choice.choice(
        (
            f"INSERT INTO t VALUES ({i}, {g}, {j}), ({j}, {g}, {i}) ON CONFLICT (id) DO UPDATE SET v = excluded.v",
            f"UPDATE t SET v = v + 1 WHERE id IN ({i}, {j})",
            f"UPDATE t SET g = {g} WHERE id = {i}",
            f"DELETE FROM t WHERE id = {i}",
            f"INSERT INTO u VALUES ({g}, 'n{i}') ON CONFLICT (g) DO UPDATE SET name = excluded.name",
            f"DELETE FROM u WHERE g = {g}",
            f"WITH a AS (UPDATE u SET name = name || 'x' WHERE g = {g}) UPDATE t SET v = v - 1 WHERE g = {g}",
            f"MERGE INTO t USING (VALUES ({i}, {g})) AS s (id, g) ON s.id = t.id WHEN MATCHED THEN DELETE"
            f" WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.g, {j})",
        )
    )


def _write(site: Site, seed: int) -> list[str]:
    """A writer's transactions; the SQL states of those that failed."""
    choice, failed = random.Random(seed), []
    with session(site, LEVELS[seed % 3]) as conn:
        for _ in range(TRANSACTIONS):
            try:
                with conn.transaction():
                    for _ in range(choice.randrange(1, 4)):
                        with conn.transaction(force_rollback=choice.random() < 0.3):
                            conn.execute(_statement(choice))
                    if choice.random() < 0.2:
                        raise psycopg.Rollback
            except psycopg.Error as error:
                failed.append(RACE if error.diag.constraint_name == "t_pkey" else error.sqlstate or "")
    return failed


def test_many_writers_at_every_level(live: Site) -> None:
    with ThreadPoolExecutor(WRITERS) as pool:
        failures = [state for states in pool.map(lambda seed: _write(live, seed), range(WRITERS)) for state in states]
    equal(live)
    # Two transactions of several statements may lock the same rows in opposite orders, as they do without us.
    assert set(failures) <= {"40001", "40P01", RACE}
    assert all(live.client.verify(name, refresh=False).differences == 0 for name in QUERIES)


def test_refreshes_among_writers(site: Site) -> None:
    """`over` is maintained by the refreshes of `base`, and by the writers of `u`, at the same time."""
    site.run(TABLES)
    queries = {
        "base": "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g",
        "over": "SELECT u.g, u.name, base.n, base.s FROM base FULL JOIN u USING (g)",
        "above": "SELECT count(*) AS c, sum(s) AS s FROM over",
        "groups": "SELECT g, count(*) AS c FROM u GROUP BY g",
    }
    for name, query in queries.items():
        site.declare(name, query, refresh_mode="DIFFERENTIAL" if name == "base" else "IMMEDIATE")
    refreshed = []
    with ThreadPoolExecutor(WRITERS // 2) as pool:
        writing = [pool.submit(_write, site, seed) for seed in range(WRITERS // 2)]
        while not all(writer.done() for writer in writing):
            refreshed.append(site.refresh("base").action)
    refreshed.append(site.refresh("base").action)
    assert "DIFFERENTIAL" in refreshed
    assert set(refreshed) <= {"DIFFERENTIAL", "NO_DATA"}
    assert {state for writer in writing for state in writer.result()} <= {"40001", "40P01", RACE}
    equal(site, queries)


class Writer:
    """One writer, step by step; a step that has to wait goes on beside."""

    def __init__(self, conn: psycopg.Connection) -> None:
        self.conn = conn
        self._thread: threading.Thread | None = None
        self._error: psycopg.Error | None = None

    def does(self, *statements: str) -> None:
        for statement in statements:
            self.conn.execute(statement)

    def waits_with(self, site: Site, statement: str) -> None:
        """Begin the statement, and return when it waits for another session's lock."""

        def run() -> None:
            try:
                self.conn.execute(statement)
            except psycopg.Error as error:
                self._error = error

        self._thread = threading.Thread(target=run)
        self._thread.start()
        pid = self.conn.info.backend_pid
        until(lambda: bool(site.rows(f"SELECT FROM pg_locks WHERE pid = {pid} AND NOT granted")))

    def ends(self) -> psycopg.Error | None:
        assert self._thread is not None
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self._error


def until(holds: Callable[[], bool]) -> None:
    """Ask until it holds; the test's own time limit ends it otherwise."""
    pause = threading.Event()
    while not holds():
        pause.wait(0.01)


@pytest.fixture
def two(site: Site) -> Iterator[Sequence[Writer]]:
    with session(site) as one, session(site) as other:
        yield Writer(one), Writer(other)


JOINED = {"joined": QUERIES["joined"]}
SUMS = {"sums": QUERIES["sums"]}


def test_two_transactions_on_both_sides_of_a_join(site: Site, two: Sequence[Writer]) -> None:
    site.run(TABLES)
    site.declare("joined", QUERIES["joined"], refresh_mode="IMMEDIATE")
    one, other = two
    one.does("BEGIN", "INSERT INTO t VALUES (100, 50, 1)")
    other.does("BEGIN")
    other.waits_with(site, "INSERT INTO u VALUES (50, 'fifty')")
    one.does("COMMIT")
    assert other.ends() is None
    other.does("COMMIT")
    equal(site, JOINED)
    assert (100, 1, "fifty") in site.rows("SELECT id, v, name FROM joined")


def test_a_groups_last_row_goes_while_another_is_added(site: Site, two: Sequence[Writer]) -> None:
    site.run(TABLES)
    site.run("INSERT INTO t VALUES (100, 9, 1)")
    site.declare("sums", QUERIES["sums"], refresh_mode="IMMEDIATE")
    one, other = two
    one.does("BEGIN", "DELETE FROM t WHERE id = 100")
    other.does("BEGIN")
    other.waits_with(site, "INSERT INTO t VALUES (101, 9, 5)")
    one.does("COMMIT")
    assert other.ends() is None
    other.does("COMMIT")
    equal(site, SUMS)


def test_writers_to_different_groups_do_not_wait(site: Site, two: Sequence[Writer]) -> None:
    site.run(TABLES)
    site.declare("sums", QUERIES["sums"], refresh_mode="IMMEDIATE")
    site.declare("kept", QUERIES["kept"], refresh_mode="IMMEDIATE")
    one, other = two
    one.does("BEGIN", "UPDATE t SET v = v + 1 WHERE g = 1")
    other.does("SET lock_timeout = '10s'", "BEGIN", "UPDATE t SET v = v + 1 WHERE g = 2", "COMMIT")
    one.does("COMMIT")
    equal(site, {name: QUERIES[name] for name in ("sums", "kept")})


@pytest.mark.parametrize("level", LEVELS[1:])
def test_a_writer_with_an_older_snapshot_fails_with_a_serialization_error(site: Site, level: str) -> None:
    site.run(TABLES)
    site.declare("joined", QUERIES["joined"], refresh_mode="IMMEDIATE")
    with session(site, level) as older:
        older.execute("BEGIN")
        older.execute("SELECT count(*) FROM t")
        site.run("INSERT INTO u VALUES (50, 'fifty')")
        with pytest.raises(psycopg.errors.SerializationFailure):
            older.execute("INSERT INTO t VALUES (100, 50, 1)")
        older.execute("ROLLBACK")
    equal(site, JOINED)


def test_a_long_transaction_does_not_stop_other_writers(site: Site, two: Sequence[Writer]) -> None:
    site.run(TABLES)
    site.declare("scheduled", "SELECT id, g, v FROM t", schedule="1m")
    long, _ = two
    long.does("BEGIN", "UPDATE t SET v = v + 1 WHERE id = 1")
    with ThreadPoolExecutor(1) as pool:
        declared = pool.submit(site.declare, "sums", QUERIES["sums"], refresh_mode="IMMEDIATE")
        until(lambda: bool(site.rows("SELECT FROM pg_locks WHERE NOT granted AND mode = 'ShareRowExclusiveLock'")))
        with session(site) as other:
            # It waits behind the lock that waits, until that one is given up.
            other.execute("SET lock_timeout = '15s'")
            other.execute("UPDATE t SET v = v + 1 WHERE id = 2")
        long.does("COMMIT")
        declared.result(60)
    equal(site, SUMS)


def test_a_writer_that_ends_badly_leaves_nothing(site: Site, two: Sequence[Writer]) -> None:
    site.run(TABLES)
    site.declare("sums", QUERIES["sums"], refresh_mode="IMMEDIATE")
    _, other = two
    gone = psycopg.connect(site.client.database.dsn)
    gone.execute("DELETE FROM t WHERE g = 1")
    other.waits_with(site, "INSERT INTO t VALUES (101, 1, 5)")
    site.run(f"SELECT pg_terminate_backend({gone.info.backend_pid})")
    assert other.ends() is None
    gone.close()
    equal(site, SUMS)
