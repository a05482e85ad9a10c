"""Running windows over large partitions: only what is behind the first changed row is read, in every way to refresh."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.migrate import install
from airflow_provider_pgtrickle.engine.dvm import pipeline
from airflow_provider_pgtrickle.engine.dvm.sinks import SINKS
from airflow_provider_pgtrickle.engine.dvm.sinks.running import Running
from airflow_provider_pgtrickle.engine.refresh import query
from tests.database.declare.conftest import difference
from tests.database.refresh.test_bounded import read

#: Two accounts, their places spread over the table.
MOVES = """
    CREATE TABLE moves (id int PRIMARY KEY, account int, at timestamp NOT NULL, amount numeric(10,2));
    CREATE INDEX moves_found ON moves (account, at);
"""
ROWS = (
    "INSERT INTO moves SELECT i, i % 2, timestamp '2026-01-01' + (i * 7919 % 20000) * interval '1 minute', i % 90"
    " FROM generate_series({}, {}) AS i"
)
LATER = "SELECT id, account, at, amount FROM moves"
BALANCE = (
    "SELECT id, account, at, sum(amount) OVER w AS balance, rank() OVER w AS r,"
    " row_number() OVER (PARTITION BY account ORDER BY at, id) AS n"
    " FROM moves WINDOW w AS (PARTITION BY account ORDER BY at)"
)
HIDDEN = BALANCE.replace("id, account, at,", "id,")
ALL = "SELECT id, account, at, amount, count(*) OVER (ORDER BY at DESC) AS n FROM moves"
APPENDED = "INSERT INTO moves VALUES (20001, 1, '2026-01-15', 5.50)"
AMID = (
    "UPDATE moves SET amount = amount + 1"
    " WHERE id = (SELECT id FROM moves WHERE at > '2026-01-07 22:30' ORDER BY at, id LIMIT 1)"
)
CHANGES = (
    APPENDED,
    AMID,
    "INSERT INTO moves VALUES (20002, NULL, '2026-01-03', 1), (20003, NULL, '2026-01-02', NULL)",
    "UPDATE moves SET account = 1 - account WHERE id IN (5, 6, 900)",
    "DELETE FROM moves WHERE at < '2026-01-01 01:00' OR account IS NULL",
    "UPDATE moves SET at = at - interval '3 days' WHERE id BETWEEN 300 AND 310",
    "DELETE FROM moves WHERE account = 1",
    "TRUNCATE moves",
    "INSERT INTO moves VALUES (1, 1, '2026-01-03', 1), (2, 1, '2026-01-03', 2), (3, NULL, '2026-01-02', NULL)",
)


@pytest.fixture
def conn(conn: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    conn.execute(MOVES)
    conn.execute(ROWS.format(1, 1000))
    conn.execute("SET max_parallel_workers_per_gather = 0")
    return conn


def kept(pt: PgTrickle, name: str, query: str, **more: Any) -> None:
    given = {"refresh_mode": "DIFFERENTIAL", "differential_max_change_ratio": 0.0, **more}
    pt.create_stream_table(name, query, **given)
    assert dict(pt.explain_st(name).facts)["kept by"].startswith("carry forward: ")


@pytest.mark.parametrize(
    ("query", "index"), [(BALANCE, None), (ALL, "CREATE INDEX ON moves (at)")], ids=["partitions", "no partition"]
)
def test_an_appended_row_reads_a_handful(
    pt: PgTrickle, conn: psycopg.Connection[Any], query: str, index: str | None
) -> None:
    conn.execute(ROWS.format(1001, 20000))
    conn.execute("ANALYZE moves")
    if index is not None:
        conn.execute(index)
    # It has yet to read the changes, so that they are still there when they are counted.
    pt.create_stream_table("later", LATER)
    kept(pt, "st", query, placement="spark")
    conn.execute("ANALYZE")
    appended = APPENDED if query is BALANCE else APPENDED.replace("2026-01-15", "2025-12-31")
    for change, most in ((appended, 10), (AMID, 20_001)):
        conn.execute(change)
        assert pt.refresh_stream_table("st").action == "DIFFERENTIAL"
        assert difference(conn, "st", query) == 0
        rows, _ = read(conn)
        print(change, rows)
        assert rows["moves"] <= most
        assert rows["st"] <= most + 2


@pytest.mark.parametrize("query", [BALANCE, ALL], ids=["partitions", "no partition"])
@pytest.mark.parametrize("way", ["database", "spark", "IMMEDIATE", "partitioned"])
def test_every_way_follows(pt: PgTrickle, conn: psycopg.Connection[Any], way: str, query: str) -> None:
    how = {
        "IMMEDIATE": {"refresh_mode": "IMMEDIATE"},
        "partitioned": {"partition_by": "RANGE (at)", "partition_every": "1 week", "placement": "database"},
    }
    kept(pt, "st", query, **how.get(way, {"placement": way}))
    for change in CHANGES:
        conn.execute(change)
        if way != "IMMEDIATE":
            action = pt.refresh_stream_table("st").action
            assert action == ("FULL" if change.startswith("TRUNCATE") else "DIFFERENTIAL")
        assert difference(conn, "st", query) == 0
    assert pt.verify("st", refresh=False).differences == 0


def test_a_member_of_a_unit_goes_on_from_what_is_handed_on(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    above = BALANCE.replace("FROM moves", "FROM large")
    pt.create_stream_table("large", f"{LATER} WHERE amount > 10", placement="database")
    kept(pt, "st", above, placement="database")
    most = "SELECT account, max(balance) AS most FROM st GROUP BY account"
    pt.create_stream_table("last", most, placement="database")
    for change in CHANGES:
        conn.execute(change)
        before = conn.execute("TABLE large ORDER BY 1").fetchall()
        actions = {name: result.action for name, result in pt.refresh(["large", "st", "last"]).items()}
        is_changed = conn.execute("TABLE large ORDER BY 1").fetchall() != before
        assert actions["st"] == ("DIFFERENTIAL" if is_changed else "NO_DATA")
        assert difference(conn, "st", above) == 0
        assert difference(conn, "last", most) == 0


def test_only_the_tables_own_rows(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    """Of their changes no least value is known."""
    own = ALL.replace("FROM moves", "FROM ONLY moves")
    conn.execute("CREATE TABLE more () INHERITS (moves)")
    kept(pt, "st", own, placement="database")
    for change in ("INSERT INTO more VALUES (30000, 1, '2026-01-05', 5)", *CHANGES):
        conn.execute(change)
        assert pt.refresh_stream_table("st").action in ("DIFFERENTIAL", "NO_DATA", "FULL")
        assert difference(conn, "st", own) == 0


def test_the_index_that_is_missing_is_named_until_it_is_there(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    conn.execute("DROP INDEX moves_found")
    conn.execute("CREATE INDEX ON moves (account)")
    wanted = 'CREATE INDEX ON "public"."moves" ("account", "at")'
    assert pt.validate_query(BALANCE).missing_indexes == (wanted,)
    conn.execute("CREATE INDEX ON moves (at, account)")
    assert pt.validate_query(BALANCE).missing_indexes == (wanted,)
    conn.execute(wanted)
    assert pt.validate_query(BALANCE).missing_indexes == ()


def test_stored_rows_are_found_by_an_index(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    kept(pt, "st", HIDDEN)
    defined = [text for (text,) in conn.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'st'")]
    assert any(text.endswith("(__pgt_key_1, __pgt_key_2)") for text in defined)


def test_totals_of_groups_run_above_a_part(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    daily = "SELECT at::date AS day, sum(sum(amount)) OVER (ORDER BY at::date) AS so_far FROM moves GROUP BY at::date"
    kept(pt, "st", daily, placement="database")
    for change in CHANGES:
        conn.execute(change)
        pt.refresh_stream_table("st")
        assert difference(conn, "st", daily) == 0


@contextmanager
def before() -> Iterator[None]:
    """An older version, which replaced partitions."""
    with patch.object(pipeline, "SINKS", tuple(sink for sink in SINKS if sink is not Running)):
        yield
    query._analysed.clear()


def test_tables_of_before_are_filled_anew_once(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    """They lack what is stored beside."""
    pt.create_stream_table("plain", LATER)
    with before():
        pt.create_stream_table("st", HIDDEN, differential_max_change_ratio=0.0)
    conn.execute("DELETE FROM pgtrickle.pgt_migrations WHERE number = 50")
    install(conn)
    concerned = "SELECT pgt_name FROM pgtrickle.pgt_stream_tables WHERE needs_reinit"
    assert conn.execute(concerned).fetchall() == [("st",)]
    for change, action in zip(CHANGES[:3], ("REINITIALIZE", "DIFFERENTIAL", "DIFFERENTIAL"), strict=True):
        conn.execute(change)
        assert pt.refresh_stream_table("st").action == action
        assert difference(conn, "st", HIDDEN) == 0


def test_what_writers_maintained_before_they_maintain_until_it_is_withdrawn(
    pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    with before():
        pt.create_stream_table("st", HIDDEN, refresh_mode="IMMEDIATE")
    conn.execute("DELETE FROM pgtrickle.pgt_migrations WHERE number = 50")
    install(conn)
    first, second, *rest = CHANGES
    conn.execute(first)
    # The functions of all that writers maintain are written anew.
    pt.create_stream_table("other", LATER, refresh_mode="IMMEDIATE")
    conn.execute(second)
    assert difference(conn, "st", HIDDEN) == 0
    pt.withdraw("st")
    assert pt.refresh_stream_table("st").action == "REINITIALIZE"
    for change in rest:
        conn.execute(change)
        assert difference(conn, "st", HIDDEN) == 0
    hidden = "SELECT attname FROM pg_attribute WHERE attrelid = 'st'::regclass AND attname ~ '^__pgt_key' ORDER BY 1"
    assert conn.execute(hidden).fetchall() == [("__pgt_key_1",), ("__pgt_key_2",)]
