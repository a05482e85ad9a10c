"""Append-only sources: a row that is updated or deleted is refused, or ends the declaration, and is never missed."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import UsageError
from tests.database.declare.conftest import SHOP, difference

LARGE = "SELECT id, amount FROM orders WHERE amount > 1"
REFUSED = psycopg.errors.RestrictViolation
#: Every statement that is no INSERT.
BREACHES = (
    "UPDATE orders SET amount = amount + 1 WHERE id = 3",
    "UPDATE orders SET note = 'x' WHERE id = 3",
    "DELETE FROM orders WHERE id = 3",
    "TRUNCATE orders",
    "INSERT INTO orders (id, amount) VALUES (3, 5) ON CONFLICT (id) DO UPDATE SET amount = 9",
    "MERGE INTO orders o USING (VALUES (3)) v(id) ON o.id = v.id WHEN MATCHED THEN DELETE",
)
#: Statements that touch no row.
HARMLESS = (
    "UPDATE orders SET amount = 0 WHERE id = -1",
    "DELETE FROM orders WHERE id = -1",
    "INSERT INTO orders (id, amount) VALUES (1001, 5) ON CONFLICT (id) DO UPDATE SET amount = 9",
)


@pytest.fixture
def conn(conn: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    conn.execute(SHOP)
    return conn


def ended(pt: PgTrickle) -> str | None:
    (row,) = [row for row in pt.status() if row["pgt_name"] == "large"]
    assert row["append_only"]
    return row["append_only_ended"]


def test_what_is_no_insert_is_refused_to_the_writer_who_is_told_by_whom(
    pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    pt.create_stream_table("large", LARGE, append_only=True, append_only_breach="refuse")
    for statement in BREACHES:
        with pytest.raises(REFUSED, match=r"public\.orders is append-only, as stream table public\.large says"):
            conn.execute(statement)
    for statement in HARMLESS:
        conn.execute(statement)
    conn.execute("INSERT INTO orders SELECT i, 1, i FROM generate_series(101, 110) i")
    assert pt.refresh_stream_table("large").action == "DIFFERENTIAL"
    assert difference(conn, "large", LARGE) == 0
    assert ended(pt) is None


@pytest.mark.parametrize("end", ["drop", "alter", "end"])
def test_who_is_gone_or_altered_refuses_nothing(pt: PgTrickle, conn: psycopg.Connection[Any], end: str) -> None:
    pt.create_stream_table("large", LARGE, append_only=True, append_only_breach="refuse")
    pt.create_stream_table("other", "SELECT id, note FROM orders", refresh_mode="DIFFERENTIAL")
    with pytest.raises(REFUSED):
        conn.execute(BREACHES[0])
    match end:
        case "drop":
            pt.drop_stream_table("large")
        case "alter":
            pt.alter_stream_table("large", append_only=False)
        case _:
            pt.alter_stream_table("large", append_only_breach="end")
    for statement in BREACHES:
        conn.execute(statement)
    conn.execute("INSERT INTO orders VALUES (5, 1, 5)")
    pt.refresh_stream_table("other")
    assert difference(conn, "other", "SELECT id, note FROM orders") == 0


def test_an_option_that_is_altered_begins_to_refuse(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("large", LARGE, refresh_mode="DIFFERENTIAL")
    pt.alter_stream_table("large", append_only=True, append_only_breach="refuse")
    with pytest.raises(REFUSED):
        conn.execute(BREACHES[0])
    conn.execute("INSERT INTO orders VALUES (101, 1, 5)")
    result = pt.refresh_stream_table("large")
    assert (result.action, result.fallback_reason) == ("DIFFERENTIAL", None)


def test_partitions_and_rows_behind_a_part_are_refused_too(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE TABLE events (id int, v int) PARTITION BY RANGE (id)")
    conn.execute("CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (0) TO (10)")
    conn.execute("INSERT INTO events SELECT i, i FROM generate_series(1, 9) i")
    query = "SELECT v FROM events WHERE v > (SELECT avg(v) FROM events)"
    pt.create_stream_table("large", query, append_only=True, append_only_breach="refuse")
    for statement in (
        "UPDATE events SET v = 0",
        "DELETE FROM events_1 WHERE id = 2",
        "UPDATE events_1 SET v = 1 WHERE id = 1",
    ):
        with pytest.raises(REFUSED):
            conn.execute(statement)
    conn.execute("INSERT INTO events_1 VALUES (5, 77)")
    # A new partition isn't known before the next refresh, and refuses all the same.
    conn.execute("CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM (10) TO (20)")
    conn.execute("INSERT INTO events_2 VALUES (11, 5)")
    for statement in ("UPDATE events_2 SET v = 6", "DELETE FROM events_2"):
        with pytest.raises(REFUSED, match=r"as stream table public\.large says"):
            conn.execute(statement)
    pt.refresh_stream_table("large")
    assert difference(conn, "large", query) == 0


@pytest.mark.parametrize("number", range(len(BREACHES)))
def test_the_first_breach_ends_the_declaration_and_is_followed(
    pt: PgTrickle, conn: psycopg.Connection[Any], number: int
) -> None:
    pt.create_stream_table("large", LARGE, append_only=True)
    for statement in HARMLESS:
        conn.execute(statement)
    pt.refresh_stream_table("large")
    assert ended(pt) is None
    conn.execute(BREACHES[number])
    pt.refresh_stream_table("large")
    assert difference(conn, "large", LARGE) == 0
    # An UPDATE of a column that nobody reads never reaches the buffer.
    told = None if "note" in BREACHES[number] else "rows of public.orders were updated or deleted"
    assert ended(pt) == told
    # A file that still declares it doesn't undo that, and whoever says it again means from now on.
    pt.create_or_replace_stream_table("large", LARGE, append_only=True)
    assert ended(pt) == told
    pt.alter_stream_table("large", append_only=True)
    assert ended(pt) is None
    conn.execute("INSERT INTO orders VALUES (2001, 1, 5)")
    pt.refresh_stream_table("large")
    assert ended(pt) is None


def test_a_breach_is_announced_once(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.create_stream_table("large", LARGE, append_only=True)
    conn.execute("LISTEN pg_trickle_alert")
    for _ in range(2):
        conn.execute("UPDATE orders SET amount = amount + 1")
        pt.refresh_stream_table("large")
    heard = [note.payload for note in conn.notifies(timeout=0) if "append_only_ended" in note.payload]
    assert len(heard) == 1
    assert "rows of public.orders were updated or deleted" in heard[0]


def test_what_nobody_would_check_is_not_accepted(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    with pytest.raises(UsageError, match="No refresh of a stream table in refresh mode IMMEDIATE"):
        pt.create_stream_table("large", LARGE, refresh_mode="IMMEDIATE", append_only=True)
    pt.create_stream_table("large", LARGE, refresh_mode="IMMEDIATE", append_only=True, append_only_breach="refuse")
    # What it has said before counts, too.
    pt.alter_stream_table("large", refresh_mode="AUTO")
    pt.alter_stream_table("large", refresh_mode="IMMEDIATE", append_only=True)
    with pytest.raises(UsageError, match="No refresh of a stream table in refresh mode IMMEDIATE"):
        pt.alter_stream_table("large", append_only_breach="end")
    pt.refresh_stream_table("large")
    with pytest.raises(REFUSED):
        conn.execute(BREACHES[0])
    conn.execute("INSERT INTO orders VALUES (2001, 1, 5)")
    assert difference(conn, "large", LARGE) == 0
