"""The index on a keyed stream table's identity: there, used, and given up rather than in the way."""

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


@pytest.fixture
def pt(dsn):
    with PgTrickle(dsn, executor=lambda: PostgresExecutor(client.database)) as client:
        client.install()
        yield client


@pytest.fixture
def conn(pt, dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("CREATE TABLE t (id int PRIMARY KEY, a int NOT NULL, b text NOT NULL)")
        conn.execute("INSERT INTO t SELECT n, n % 7, 'b' || n % 5 FROM generate_series(1, 100) n")
        yield conn


def indexes(conn) -> list[list[str]]:
    return [columns for (columns,) in conn.execute(INDEXES)]


def test_the_groups_of_a_stream_table_are_indexed(pt, conn):
    pt.create_stream_table("st", "SELECT b, a, count(*) AS n FROM t GROUP BY b, a")
    assert indexes(conn) == [["__pgt_row_id"], ["b", "a"]]


def test_the_index_holds_each_group_to_one_row_and_null_is_a_group(pt, conn):
    conn.execute("CREATE TABLE u (k int, v int)")
    conn.execute("INSERT INTO u VALUES (NULL, 1), (1, 2)")
    pt.create_stream_table("st", "SELECT k, sum(v) AS s FROM u GROUP BY k")
    conn.execute("SET pgtrickle.refreshing = on")
    with pytest.raises(psycopg.errors.UniqueViolation):
        conn.execute("INSERT INTO st SELECT * FROM st WHERE k IS NULL")


def test_partitions_without_the_key_are_indexed_all_the_same(pt, conn):
    pt.create_stream_table("st", "SELECT id, a FROM t", partition_by="LIST (a)")
    assert indexes(conn) == [["__pgt_row_id"], ["id"]]


def test_a_bag_of_rows_has_no_identity_to_index(pt, conn):
    pt.create_stream_table("st", "SELECT a, b FROM t")
    assert indexes(conn) == [["__pgt_row_id"]]


def test_a_type_without_an_order_goes_without(pt, conn):
    conn.execute("CREATE TABLE u (k xid, v int)")
    pt.create_stream_table("st", "SELECT k, count(*) AS n FROM u GROUP BY k")
    assert indexes(conn) == [["__pgt_row_id"]]


def test_another_identity_gets_another_index(pt, conn):
    pt.create_stream_table("st", "SELECT a, count(*) AS n FROM t GROUP BY a")
    pt.alter_stream_table("st", query="SELECT b, count(*) AS n FROM t GROUP BY b")
    assert indexes(conn) == [["__pgt_row_id"], ["b"]]


def test_an_index_of_the_users_own_is_left_alone(pt, conn):
    pt.create_stream_table("st", "SELECT a, count(*) AS n FROM t GROUP BY a")
    conn.execute("CREATE INDEX ON st (n)")
    pt.alter_stream_table("st", query="SELECT a, count(*) AS n, max(b) AS m FROM t GROUP BY a")
    assert ["n"] in indexes(conn)


@pytest.mark.parametrize("populated", [True, False], ids=["by a change", "at first"])
def test_a_value_too_large_for_an_index_costs_the_index_and_not_the_refresh(pt, conn, populated):
    if populated:
        pt.create_stream_table("st", "SELECT b, count(*) AS n FROM t GROUP BY b")
    # Random, so that it can't be compressed below a third of a page.
    conn.execute(
        "INSERT INTO t SELECT 1000, 1, string_agg(md5(n::text || random()), '') FROM generate_series(1, 1000) n"
    )
    if populated:
        assert pt.refresh_stream_table("st").action == "DIFFERENTIAL"
    else:
        pt.create_stream_table("st", "SELECT b, count(*) AS n FROM t GROUP BY b")
    assert indexes(conn) == [["__pgt_row_id"]]
    assert conn.execute("SELECT count(*), max(length(b)) FROM st").fetchone() == (6, 32000)
