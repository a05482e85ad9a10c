"""The index by which a recursion's change finds its stored rows: there, used, and given up rather than in the way."""

from __future__ import annotations

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor

INDEXES = """
    SELECT array_agg(a.attname::text ORDER BY k.place) FROM pg_index i
    CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
    WHERE i.indrelid = 'st'::regclass GROUP BY i.indexrelid ORDER BY 1
"""
TREE = (
    "WITH RECURSIVE r AS (SELECT id, 0 AS depth FROM node WHERE parent IS NULL"
    " UNION ALL SELECT n.id, r.depth + 1 FROM node n JOIN r ON n.parent = r.id) SELECT {} FROM r"
)
NAMED = (
    "WITH RECURSIVE r AS (SELECT name FROM folder WHERE within = 'root'"
    " UNION SELECT f.name FROM folder f JOIN r ON f.within = r.name) SELECT name FROM r"
)


@pytest.fixture
def pt(dsn):
    with PgTrickle(dsn, executor=lambda: PostgresExecutor(client.database)) as client:
        client.install()
        yield client


@pytest.fixture
def conn(pt, dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("CREATE TABLE node (id int PRIMARY KEY, parent int)")
        conn.execute("INSERT INTO node SELECT n, nullif(n / 2, 0) FROM generate_series(1, 100) n")
        yield conn


def indexes(conn) -> list[list[str]]:
    return [columns for (columns,) in conn.execute(INDEXES)]


def test_what_the_step_joins_is_indexed(pt, conn):
    pt.create_stream_table("st", TREE.format("id, depth"))
    assert indexes(conn) == [["__pgt_row_id"], ["id"]]


def test_what_the_step_joins_may_be_hidden(pt, conn):
    pt.create_stream_table("st", TREE.format("depth"))
    assert indexes(conn) == [["__pgt_key_1"], ["__pgt_row_id"]]


def test_a_subtree_moves_goes_and_comes(pt, conn):
    pt.create_stream_table("st", TREE.format("depth, id"))
    for change in (
        "UPDATE node SET parent = 3 WHERE id = 2",
        "DELETE FROM node WHERE id = 7",
        "INSERT INTO node VALUES (7, 1), (101, 100)",
    ):
        conn.execute(change)
        assert pt.refresh_stream_table("st").action == "DIFFERENTIAL"
        query, stored = f"({TREE.format('depth, id')})", "SELECT depth, id FROM st"
        assert conn.execute(f"{stored} EXCEPT ALL {query}").fetchall() == []
        assert conn.execute(f"{query} EXCEPT ALL {stored}").fetchall() == []


def test_another_query_has_other_look_ups(pt, conn):
    pt.create_stream_table("st", TREE.format("id, depth"))
    pt.alter_stream_table("st", query="SELECT id, parent AS depth FROM node")
    assert ["id", "depth"] not in indexes(conn)


def test_a_value_too_large_for_an_index_goes_in_without(pt, conn):
    conn.execute("CREATE TABLE folder (name text, within text)")
    conn.execute("INSERT INTO folder SELECT 'f' || n, 'root' FROM generate_series(1, 100) n")
    pt.create_stream_table("st", NAMED)
    assert indexes(conn) == [["__pgt_row_id"], ["name"]]
    conn.execute("INSERT INTO folder SELECT string_agg(md5(n::text), ''), 'f7' FROM generate_series(1, 1000) n")
    assert pt.refresh_stream_table("st").action == "DIFFERENTIAL"
    assert indexes(conn) == [["__pgt_row_id"]]
    assert conn.execute("SELECT count(*) FROM st").fetchone() == (101,)
