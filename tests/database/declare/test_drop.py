"""Dropping stream tables: what goes with them, and what keeps them."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import UnknownStreamTable, UsageError
from tests.database.declare.conftest import NO_TRACES, TOTALS, traces


def test_the_last_reader_takes_triggers_and_buffers_with_it(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("first", TOTALS)
    pt.create_stream_table("second", "SELECT id, amount FROM orders")
    captured = traces(conn)["triggers"]
    assert captured
    assert pt.drop_stream_table("first") == ("public.first",)
    assert traces(conn)["triggers"] == captured
    pt.drop_stream_table("second")
    assert traces(conn) == NO_TRACES


def test_a_stream_table_that_is_read_stays_and_names_its_readers(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("a", TOTALS)
    pt.create_stream_table("b", "SELECT total FROM a")
    before = traces(conn)
    with pytest.raises(UsageError, match=r"public\.b reads it.*cascade=True"):
        pt.drop_stream_table("a")
    assert traces(conn) == before


def test_cascade_drops_all_readers_downstream_first(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("a", TOTALS)
    pt.create_stream_table("b", "SELECT total FROM a")
    pt.create_stream_table("c", "SELECT b.total FROM b JOIN a ON a.total = b.total")
    assert pt.drop_stream_table("a", cascade=True) == ("public.c", "public.b", "public.a")
    assert traces(conn) == NO_TRACES


def test_the_last_reader_of_a_stream_table_takes_its_buffer(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    upstream = pt.create_stream_table("a", TOTALS)
    pt.create_stream_table("b", "SELECT total FROM a")
    pt.drop_stream_table("b")
    assert f"changes_pgt_{upstream.id}" not in traces(conn)["relations"]


def test_a_view_of_the_users_keeps_it(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("a", TOTALS)
    conn.execute("CREATE VIEW report AS SELECT total FROM a")
    with pytest.raises(UsageError, match=r"public\.report reads it"):
        pt.drop_stream_table("a")
    pt.drop_stream_table("a", cascade=True)
    assert traces(conn) == NO_TRACES


def test_it_can_be_dropped_when_its_source_is_gone(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("a", "SELECT name FROM customers")
    conn.execute("DROP TABLE customers CASCADE")
    pt.drop_stream_table("a")
    conn.execute("CREATE TABLE customers ()")
    assert traces(conn) == NO_TRACES


def test_it_can_be_dropped_when_its_table_is_gone(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("a", TOTALS)
    conn.execute("DROP TABLE a")
    pt.drop_stream_table("a")
    assert traces(conn) == NO_TRACES


def test_what_is_not_there_can_not_be_dropped(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    with pytest.raises(UnknownStreamTable, match=r"public\.nothing"):
        pt.drop_stream_table("nothing")
    assert pt.drop_stream_table("nothing", if_exists=True) == ()
    with pytest.raises(UnknownStreamTable):
        pt.drop_stream_table("orders")
    assert conn.execute("SELECT count(*) FROM orders").fetchone() == (50,)
