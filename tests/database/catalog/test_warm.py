"""The session kept between refreshes: the same one, clean, and never a dead or a shared one."""

from __future__ import annotations

import gc
import os
import threading

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.settings import Settings
from tests.answers import only

WHO = "SELECT pg_backend_pid()"


@pytest.fixture
def database(dsn):
    database = Database(dsn, Settings.load())
    yield database
    database.close()


def who(database: Database) -> int:
    with database.session() as conn:
        return int(only(conn.execute(WHO))[0])


def test_the_next_refresh_gets_the_session_of_the_last(database):
    assert who(database) == who(database)


def test_nothing_of_a_refresh_stays_in_its_session(database):
    with database.session() as conn:
        pinned = conn.execute("SHOW TimeZone").fetchone()
        conn.execute("SET synchronous_commit = off")
        conn.execute("CREATE TEMPORARY TABLE left_over (a int)")
        conn.execute("SELECT pg_advisory_lock(1, 1)")
        conn.execute("BEGIN")
        conn.execute("SET LOCAL TimeZone = 'Asia/Tokyo'")
    with database.session() as conn:
        assert conn.execute("SHOW synchronous_commit").fetchone() == ("on",)
        assert conn.execute("SELECT to_regclass('left_over')").fetchone() == (None,)
        assert conn.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone() == (0,)
        assert conn.execute("SHOW TimeZone").fetchone() == pinned
        assert conn.autocommit


def test_a_failure_inside_leaves_a_clean_session(database):
    def fail() -> None:
        with database.session() as conn:
            conn.execute("BEGIN")
            conn.execute("SELECT 1 / 0")

    with pytest.raises(psycopg.errors.DivisionByZero):
        fail()
    with database.session() as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)


def test_a_session_that_the_server_ended_is_replaced(database, admin_dsn):
    first = who(database)
    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        assert admin.execute("SELECT pg_terminate_backend(%s, 5000)", [first]).fetchone() == (True,)
    assert who(database) != first


def test_two_at_a_time_are_two_sessions(database):
    with database.session() as first, database.session() as second:
        assert first.execute(WHO).fetchone() != second.execute(WHO).fetchone()
        kept = second.execute(WHO).fetchone()[0]
    assert second.closed or first.closed
    assert who(database) == kept


def test_threads_never_share_a_session(database):
    together, seen = threading.Barrier(4), []

    def refresh() -> None:
        with database.session() as conn:
            together.wait(30)
            seen.append(conn.execute(WHO).fetchone()[0])

    threads = [threading.Thread(target=refresh) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 4


def test_a_forked_process_takes_a_session_of_its_own(database):
    parents = who(database)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, str(who(database)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(reading, 100)) != parents
    assert who(database) == parents


def test_a_database_that_is_forgotten_leaves_no_session(dsn):
    database = Database(dsn, Settings.load())
    with database.session() as conn:
        pass
    assert not conn.closed
    del database
    gc.collect()
    assert conn.closed
