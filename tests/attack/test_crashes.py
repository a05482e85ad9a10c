"""What a crash of the server empties without a trigger: unlogged tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from airflow_provider_pgtrickle.embedded import PostgresServer
from airflow_provider_pgtrickle.engine.catalog.database import Database
from tests import servers
from tests.attack.actors import client
from tests.attack.attack import differing

pytestmark = pytest.mark.filterwarnings("ignore::airflow_provider_pgtrickle.engine.errors.PgTrickleWarning")

_TREES = """
CREATE TABLE p (id int, part int) PARTITION BY LIST (part);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE UNLOGGED TABLE p2 PARTITION OF p FOR VALUES IN (2);
INSERT INTO p VALUES (1, 1), (2, 2);
CREATE TABLE h (id int);
CREATE UNLOGGED TABLE h1 () INHERITS (h);
INSERT INTO h VALUES (1);
INSERT INTO h1 VALUES (2);
CREATE UNLOGGED TABLE x (id int PRIMARY KEY);
INSERT INTO x VALUES (1);
CREATE TABLE t (id int PRIMARY KEY);
INSERT INTO t VALUES (1), (2);
"""
#: What is queried, and what happens before the crash.
_CRASHES = {
    "an unlogged source": ("SELECT id FROM x", ""),
    "an unlogged partition": ("SELECT id, part FROM p", ""),
    "an unlogged child": ("SELECT id FROM h", ""),
    "a source that became unlogged": ("SELECT id FROM t", "ALTER TABLE t SET UNLOGGED"),
    "a partition that became unlogged": ("SELECT id, part FROM p", "ALTER TABLE p1 SET UNLOGGED"),
    "a stream table that became unlogged": ("SELECT id FROM t", "ALTER TABLE st SET UNLOGGED"),
    "a buffer that became unlogged": (
        "SELECT id FROM t",
        "DO $$ BEGIN EXECUTE 'ALTER TABLE pgtrickle_changes.changes_' || 't'::regclass::oid || ' SET UNLOGGED'; END $$;"
        "INSERT INTO t VALUES (7)",
    ),
}


@pytest.fixture(scope="module")
def mortal() -> Iterator[PostgresServer]:
    """A server of our own to crash."""
    with servers.running(18) as server:
        yield server


@pytest.mark.parametrize("crash", _CRASHES)
def test_what_a_crash_empties_is_noticed(mortal: PostgresServer, crash: str) -> None:
    query, before = _CRASHES[crash]
    with _filled(mortal, _TREES, query) as dsn:
        if before:
            _run(dsn, before)
        mortal.kill()
        mortal.start()
        _equal_after_a_refresh(dsn)
        for source in ("x", "t", "h1"):
            _run(dsn, f"INSERT INTO {source} VALUES (9)")
        _run(dsn, "INSERT INTO p VALUES (9, 1), (9, 2)")
        _equal_after_a_refresh(dsn)


@contextmanager
def _filled(server: PostgresServer, ddl: str, query: str) -> Iterator[str]:
    with servers.fresh_database(server) as name:
        dsn = servers.ordinary_dsn(server, name)
        _run(dsn, ddl)
        with client(Database(dsn)) as pt:
            pt.install()
            pt.create_stream_table("st", query)
            pt.refresh_stream_table("st")
        yield dsn


def _equal_after_a_refresh(dsn: str) -> None:
    with client(Database(dsn)) as pt, psycopg.connect(dsn, autocommit=True) as conn:
        result = pt.refresh_stream_table("st")
        assert (result.action, differing(conn, "st")) == (result.action, None)


def _run(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(statement)
