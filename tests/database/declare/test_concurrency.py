"""Declarations beside writers, beside each other, and beside refreshes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.declare.alter import alter
from airflow_provider_pgtrickle.engine.errors import LeaseLost, PgTrickleError, StreamTableExists, TransientFault
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests import servers
from tests.answers import only
from tests.database.declare.conftest import NO_TRACES, TOTALS, difference, traces

COUNTED = "SELECT customer_id, sum(amount) AS total, count(*) AS orders FROM orders GROUP BY customer_id"


@pytest.fixture
def writer(database: Database) -> Iterator[psycopg.Connection[Any]]:
    """A session with an open transaction that has written to orders."""
    with servers.user_session(database.dsn, autocommit=False) as session:
        session.execute("INSERT INTO orders VALUES (1000, 1, 7.77, '2026-03-01')")
        yield session


@pytest.fixture
def background() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


def wait_for_a_waiter(conn: psycopg.Connection[Any], waiting: Future[Any]) -> None:
    """Return when a session of this database waits for a lock."""
    waiters = (
        "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
        " WHERE NOT l.granted AND a.datname = current_database()"
    )
    while not only(conn.execute(waiters))[0]:
        assert not waiting.done(), waiting.result()


def test_a_writer_that_commits_late_is_not_lost(
    pt: PgTrickle, conn: psycopg.Connection[Any], writer: psycopg.Connection[Any], background: ThreadPoolExecutor
) -> None:
    creation = background.submit(pt.create_stream_table, "order_totals", TOTALS)
    wait_for_a_waiter(conn, creation)
    writer.commit()
    creation.result(timeout=30)
    pt.refresh_stream_table("order_totals")
    assert difference(conn, "order_totals", TOTALS) == 0


def test_a_writer_that_never_ends_is_waited_for_only_so_long(
    dsn: str, pt: PgTrickle, conn: psycopg.Connection[Any], writer: psycopg.Connection[Any]
) -> None:
    with PgTrickle(dsn, lock_timeout_seconds=1) as client, pytest.raises(TransientFault, match="holds a lock"):
        client.create_stream_table("order_totals", TOTALS)
    writer.rollback()
    assert traces(conn) == NO_TRACES


def test_of_two_that_create_the_same_one_wins(
    dsn: str, pt: PgTrickle, conn: psycopg.Connection[Any], background: ThreadPoolExecutor
) -> None:
    def create() -> str | PgTrickleError:
        with PgTrickle(dsn, executor=lambda: PostgresExecutor(Database(dsn))) as client:
            try:
                return client.create_stream_table("order_totals", TOTALS).status
            except PgTrickleError as error:
                return error

    results = [future.result(timeout=60) for future in [background.submit(create), background.submit(create)]]
    assert [type(result) for result in results if not isinstance(result, str)] == [StreamTableExists]
    assert "ACTIVE" in results
    assert difference(conn, "order_totals", TOTALS) == 0


def test_a_refresh_of_the_old_query_can_not_commit_as_the_new_one(
    dsn: str, pt: PgTrickle, conn: psycopg.Connection[Any], database: Database
) -> None:
    pt.create_stream_table("order_totals", TOTALS)

    class Overtaken(PostgresExecutor):
        def compute(self, *arguments: Any) -> Any:
            with database.transaction() as session:
                alter(session, pt.settings, QualifiedName("public", "order_totals"), {"query": COUNTED})
            return super().compute(*arguments)

    with PgTrickle(dsn, executor=lambda: Overtaken(database)) as client, pytest.raises(LeaseLost):
        client.refresh_stream_table("order_totals", force_full=True)
    assert pt.refresh_stream_table("order_totals").action == "REINITIALIZE"
    assert difference(conn, "order_totals", COUNTED) == 0


def test_a_table_is_not_dropped_under_its_refresh(
    dsn: str, pt: PgTrickle, conn: psycopg.Connection[Any], database: Database
) -> None:
    pt.create_stream_table("order_totals", TOTALS)

    class Interrupted(PostgresExecutor):
        def compute(self, *arguments: Any) -> Any:
            with PgTrickle(dsn, lock_timeout_seconds=1) as other, pytest.raises(TransientFault, match="a lock"):
                other.drop_stream_table("order_totals")
            return super().compute(*arguments)

    with PgTrickle(dsn, executor=lambda: Interrupted(database)) as client:
        assert client.refresh_stream_table("order_totals", force_full=True).status == "COMPLETED"
    pt.drop_stream_table("order_totals")
    assert traces(conn) == NO_TRACES
