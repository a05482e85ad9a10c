"""The life of a stream table on the oldest server: the other tests here run on the newest."""

from __future__ import annotations

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import PgTrickleWarning
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests.database.declare.conftest import NO_TRACES, SHOP, TOTALS, difference, traces
from tests.database.declare.test_parts import CHANGES

COUNTED = "SELECT customer_id, sum(amount) AS total, count(*) AS orders FROM orders GROUP BY customer_id"
TYPED = "SELECT customer_id, sum(amount)::text AS total FROM orders GROUP BY customer_id"
READER = "SELECT customer_id, total FROM order_totals"


def test_it_is_created_altered_rebuilt_read_and_dropped(dsn15: str) -> None:
    database = Database(dsn15)
    with (
        PgTrickle(dsn15, executor=lambda: PostgresExecutor(database)) as pt,
        psycopg.connect(dsn15, autocommit=True) as conn,
    ):
        pt.install()
        conn.execute(SHOP)
        created = pt.create_stream_table("order_totals", TOTALS)
        assert difference(conn, "order_totals", TOTALS) == 0
        assert pt.alter_stream_table("order_totals", query=COUNTED).relid == created.relid
        assert difference(conn, "order_totals", COUNTED) == 0
        with pytest.warns(PgTrickleWarning, match="dropped and made again"):
            pt.alter_stream_table("order_totals", query=TYPED)
        pt.create_stream_table("parted", READER, partition_by="HASH (customer_id)")
        conn.execute("DELETE FROM orders WHERE id < 9")
        pt.refresh_stream_table("parted")
        assert difference(conn, "order_totals", TYPED) == 0
        assert difference(conn, "parted", READER) == 0
        pt.drop_stream_table("order_totals", cascade=True)
        assert traces(conn) == NO_TRACES


def test_values_and_filtered_groups_are_kept_in_parts(dsn15: str) -> None:
    database = Database(dsn15)
    query = (
        "SELECT customer_id, count(DISTINCT placed) AS n, sum(DISTINCT amount) FILTER (WHERE id > 5) AS d,"
        " sum(amount) AS s FROM orders GROUP BY customer_id HAVING count(*) > 4 AND max(placed) < now() + interval '1y'"
    )
    with (
        PgTrickle(dsn15, executor=lambda: PostgresExecutor(database), differential_max_change_ratio=0.0) as pt,
        psycopg.connect(dsn15, autocommit=True) as conn,
    ):
        pt.install()
        conn.execute(SHOP)
        pt.create_stream_table("kept", query)
        hidden = conn.execute("SELECT count(*) FROM pgtrickle.pgt_stream_tables WHERE is_hidden").fetchone()
        assert hidden == (3,)
        for change in CHANGES:
            conn.execute(change)
            assert pt.refresh_stream_table("kept").action in ("DIFFERENTIAL", "NO_DATA")
            assert difference(conn, "kept", query) == 0


def test_values_that_are_equal_and_differ_are_counted_in_their_groups(dsn15: str) -> None:
    database, query = Database(dsn15), "SELECT customer_id, count(DISTINCT note) AS n FROM orders GROUP BY customer_id"
    with (
        PgTrickle(dsn15, executor=lambda: PostgresExecutor(database), differential_max_change_ratio=0.0) as pt,
        psycopg.connect(dsn15, autocommit=True) as conn,
    ):
        pt.install()
        conn.execute(SHOP)
        conn.execute("CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
        conn.execute("ALTER TABLE orders ALTER note TYPE text COLLATE loose")
        conn.execute("UPDATE orders SET note = chr(64 + id % 50)")
        pt.create_stream_table("kept", query)
        assert conn.execute("SELECT 1 FROM pgtrickle.pgt_stream_tables WHERE is_hidden").fetchall() == []
        conn.execute("UPDATE orders SET note = lower(note) WHERE id % 3 = 0")
        assert pt.refresh_stream_table("kept").action == "DIFFERENTIAL"
        assert difference(conn, "kept", query) == 0


def test_equal_texts_that_differ_are_no_matter_for_a_recursion_by_union(dsn15: str) -> None:
    """PostgreSQL keeps one of them, and says not which."""
    reached = (
        "WITH RECURSIVE r AS (SELECT name FROM folder WHERE within IS NULL"
        " UNION SELECT f.name FROM folder f JOIN r ON f.within = r.name) SELECT name FROM r"
    )
    with PgTrickle(dsn15) as pt, psycopg.connect(dsn15, autocommit=True) as conn:
        pt.install()
        conn.execute("CREATE TABLE folder (name text, within text)")
        assert pt.validate_query(reached).sink == "delete and rederive"
        conn.execute("CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
        conn.execute("ALTER TABLE folder ALTER name TYPE text COLLATE loose, ALTER within TYPE text COLLATE loose")
        refused = pt.validate_query(reached)
        assert (refused.sink, "look different" in str(refused)) == ("recompute", True)
