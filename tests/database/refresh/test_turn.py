"""A limit of refreshes at a time: it holds for all of a database, what is latest goes first, nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.immediate import live
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.engine.refresh.turn import SLOTS, WAITING, Queue
from tests.database.declare.conftest import SHOP, TOTALS, difference

_HELD = (
    "SELECT count(*) FROM pg_locks WHERE classid = %s AND locktype = 'advisory'"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)

# Sessions that have seen somebody later than themselves since then: the latest one tries the slot after each look.
_LOOKED = (
    "SELECT count(*) FROM pg_stat_activity WHERE query_start > %s AND state = 'idle' AND query LIKE '%%is_rightful%%'"
    " AND pid <> pg_backend_pid()"
)


@pytest.fixture
def conn(conn: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    conn.execute(SHOP)
    return conn


@pytest.fixture
def client(any_dsn: str, conn: psycopg.Connection[Any]) -> Callable[..., PgTrickle]:
    def make(most: int, **settings: Any) -> PgTrickle:
        database = Database(any_dsn)
        return PgTrickle(
            any_dsn, executor=lambda: PostgresExecutor(database), max_concurrent_refreshes=most, **settings
        )

    with make(0) as first:
        first.install()
        for number in range(6):
            first.create_stream_table(f"t{number}", TOTALS, schedule="5m", refresh_mode="DIFFERENTIAL")
    return make


def held(conn: psycopg.Connection[Any], kind: int) -> int:
    row = conn.execute(_HELD, (kind,)).fetchone()
    assert row is not None
    return int(row[0])


def refreshed(client: Callable[..., PgTrickle], most: int, name: str, **settings: Any) -> str:
    with client(most, **settings) as pt:
        return str(pt.refresh_stream_table(name).action)


def test_what_is_latest_goes_first(client: Callable[..., PgTrickle], conn: psycopg.Connection[Any]) -> None:
    conn.execute("UPDATE orders SET amount = amount + 1 WHERE id < 4")
    late = {"t0": 5, "t1": 50, "t2": 20, "t3": 1}
    for name, minutes in late.items():
        conn.execute(
            "UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = now() - %s * interval '1 minute'"
            " WHERE pgt_name = %s",
            (minutes, name),
        )
    # Relative to its schedule: this one is an hour late and has a day's time.
    conn.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = now() - interval '1 hour',"
        " effective_schedule = interval '1 day' WHERE pgt_name = 't4'"
    )
    conn.execute("SELECT pg_advisory_lock(%s, 0)", (SLOTS,))
    (last,) = conn.execute("SELECT max(refresh_id) FROM pgtrickle.pgt_refresh_history").fetchone() or (0,)
    with ThreadPoolExecutor(5) as threads:
        done = [threads.submit(refreshed, client, 1, name) for name in ("t4", *late)]
        while held(conn, WAITING) < 5:
            assert not any(one.done() for one in done)
        # Who looked before all were there may still be about to try the slot.
        (since,) = conn.execute("SELECT clock_timestamp()").fetchone() or (None,)
        while conn.execute(_LOOKED, (since,)).fetchone() != (4,):
            assert not any(one.done() for one in done)
        conn.execute("SELECT pg_advisory_unlock(%s, 0)", (SLOTS,))
        assert {one.result() for one in done} == {"DIFFERENTIAL"}
    order = conn.execute(
        "SELECT t.pgt_name FROM pgtrickle.pgt_refresh_history h JOIN pgtrickle.pgt_stream_tables t USING (pgt_id)"
        " WHERE refresh_id > %s ORDER BY refresh_id",
        (last,),
    ).fetchall()
    assert [name for (name,) in order] == ["t1", "t2", "t0", "t3", "t4"]
    assert [difference(conn, name, TOTALS) for name in ("t4", *late)] == [0] * 5
    assert (held(conn, SLOTS), held(conn, WAITING)) == (0, 0)


def test_no_more_run_at_a_time(client: Callable[..., PgTrickle], conn: psycopg.Connection[Any]) -> None:
    (last,) = conn.execute("SELECT max(refresh_id) FROM pgtrickle.pgt_refresh_history").fetchone() or (0,)
    for step in range(3):
        conn.execute("UPDATE orders SET amount = amount + %s WHERE id < 40", (step,))
        with ThreadPoolExecutor(6) as threads:
            list(threads.map(lambda number: refreshed(client, 2, f"t{number}"), range(6)))
    times = conn.execute(
        "SELECT start_time, end_time FROM pgtrickle.pgt_refresh_history WHERE refresh_id > %s", (last,)
    ).fetchall()
    assert len(times) == 18
    assert max(sum(begun <= start < end for begun, end in times) for start, _ in times) <= 2
    assert (held(conn, SLOTS), held(conn, WAITING)) == (0, 0)


def test_who_waits_too_long_is_skipped_and_leaves_the_queue(
    client: Callable[..., PgTrickle], conn: psycopg.Connection[Any]
) -> None:
    conn.execute("SELECT pg_advisory_lock(%s, 0)", (SLOTS,))
    with client(1, max_queue_seconds=0) as pt:
        result = pt.refresh_stream_table("t0")
        assert (result.action, result.fallback_reason) == ("SKIP", "queued")
        assert pt.history("t0", 1)[0]["fallback_reason"] == "queued"
        assert held(conn, WAITING) == 0
    # Another limit has another slot.
    assert refreshed(client, 2, "t0") == "NO_DATA"


def test_a_refresh_for_which_writers_wait_does_not_queue(
    client: Callable[..., PgTrickle], conn: psycopg.Connection[Any]
) -> None:
    with client(0) as pt:
        pt.create_stream_table("live", TOTALS)
    conn.execute("UPDATE pgtrickle.pgt_stream_tables SET refresh_mode = 'IMMEDIATE' WHERE pgt_name = 'live'")
    conn.execute("SELECT pg_advisory_lock(%s, 0)", (SLOTS,))
    with client(1, max_queue_seconds=0) as pt:
        assert [str(name) for name in live.enliven(pt.database, pt.settings, ["public.live"])] == ["public.live"]
    conn.execute("UPDATE orders SET amount = amount + 1")
    assert difference(conn, "live", TOTALS) == 0


def test_who_may_refresh_nothing_is_overlooked(
    client: Callable[..., PgTrickle], admin_of: psycopg.Connection[Any], any_dsn: str
) -> None:
    admin_of.execute("CREATE ROLE turn_stranger LOGIN PASSWORD 'stranger-secret'")
    try:
        stranger = make_conninfo(any_dsn, user="turn_stranger", password="stranger-secret")
        with psycopg.connect(stranger, autocommit=True) as theirs:
            theirs.execute("SELECT pg_advisory_lock(%s, 0)", (SLOTS,))
            theirs.execute("SELECT pg_advisory_lock_shared(%s, 2147483647)", (WAITING,))
            assert refreshed(client, 1, "t0", max_queue_seconds=0) == "NO_DATA"
    finally:
        admin_of.execute("DROP ROLE turn_stranger")


def owned(conn: psycopg.Connection[Any], graph: str, *names: str) -> None:
    conn.execute(
        "INSERT INTO pgtrickle.pgt_owners (pgt_id, bundle, file, graph) SELECT pgt_id, '', 'f.py', %s"
        " FROM pgtrickle.pgt_stream_tables WHERE pgt_name = ANY(%s)",
        (graph, list(names)),
    )


def test_no_more_of_a_graph_run_at_a_time(client: Callable[..., PgTrickle], conn: psycopg.Connection[Any]) -> None:
    owned(conn, "sales", "t0", "t1", "t2", "t3")
    owned(conn, "stock", "t4", "t5")
    (last,) = conn.execute("SELECT max(refresh_id) FROM pgtrickle.pgt_refresh_history").fetchone() or (0,)
    quotas = {"max_concurrent_refreshes_of_graphs": "sales=1, other=1"}
    for step in range(3):
        conn.execute("UPDATE orders SET amount = amount + %s WHERE id < 40", (step,))
        with ThreadPoolExecutor(6) as threads:
            list(threads.map(lambda number: refreshed(client, 3, f"t{number}", **quotas), range(6)))
    times = conn.execute(
        "SELECT start_time, end_time FROM pgtrickle.pgt_refresh_history JOIN pgtrickle.pgt_stream_tables USING (pgt_id)"
        " WHERE refresh_id > %s AND pgt_name < 't4'",
        (last,),
    ).fetchall()
    assert len(times) == 12
    assert max(sum(begun <= start < end for begun, end in times) for start, _ in times) == 1
    row = conn.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()
    assert row == (0,)
    assert [difference(conn, f"t{number}", TOTALS) for number in range(6)] == [0] * 6


def test_who_waits_for_its_graph_stands_in_nobodys_way(
    client: Callable[..., PgTrickle], conn: psycopg.Connection[Any]
) -> None:
    owned(conn, "sales", "t0")
    sales = Queue.of_graph("sales", 1)
    conn.execute("SELECT pg_advisory_lock(%s, 0)", (sales.slots,))
    # It is the latest of all, and the database has one slot.
    conn.execute("UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = '2020-01-01' WHERE pgt_name = 't0'")
    quotas = {"max_concurrent_refreshes_of_graphs": "sales=1"}
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(refreshed, client, 1, "t0", **quotas)
        while held(conn, sales.waiting) < 1:
            assert not waiting.done()
        assert refreshed(client, 1, "t1", max_queue_seconds=0, **quotas) == "NO_DATA"
        with client(1, max_queue_seconds=0, **quotas) as pt:
            result = pt.refresh_stream_table("t0")
            assert (result.action, result.fallback_reason) == ("SKIP", "queued")
        conn.execute("SELECT pg_advisory_unlock(%s, 0)", (sales.slots,))
        assert waiting.result() == "NO_DATA"
