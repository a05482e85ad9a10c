"""Slices of large changes and contents, planned and written by real refreshes; what Spark's tasks run is run here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.errors import InvariantViolated
from airflow_provider_pgtrickle.engine.refresh.executor import Computation, PostgresExecutor, Staged, StageTarget
from airflow_provider_pgtrickle.engine.spark.leaf import Snapshot, portable_dsn
from airflow_provider_pgtrickle.engine.spark.stage import carrying, ledger, recorded
from tests.answers import only

TABLES = """
CREATE TABLE customers (id int PRIMARY KEY, name text, region varchar(10));
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id int, amount numeric, qty float8, placed timestamptz, note text);
CREATE TABLE log (customer_id int, what text);
INSERT INTO customers SELECT i, 'c' || i % 7, CASE WHEN i % 5 > 0 THEN 'r' || i % 3 END FROM generate_series(1, 400) i;
INSERT INTO orders SELECT i, nullif(i % 403, 0), (i * 7 % 1000) / 10.0, i / 3.0,
    '2024-01-01'::timestamptz + i * '1h'::interval,
    CASE i % 4 WHEN 0 THEN '' WHEN 1 THEN E'a\\n"b"\\t\\\\N é' WHEN 2 THEN '\\N' END FROM generate_series(1, 900) i;
INSERT INTO log SELECT i % 40, 'w' || i % 4 FROM generate_series(1, 2000) i;
ANALYZE;
"""
#: Each changes more rows than one reader takes, on several pages of a buffer.
CYCLES = (
    "INSERT INTO orders SELECT i, i % 50, 3.50, 'NaN', '2024-05-01', NULL FROM generate_series(1001, 1400) i;"
    "UPDATE customers SET region = 'r9', name = 'z' WHERE id % 2 = 0; DELETE FROM log WHERE what = 'w3'",
    "UPDATE orders SET amount = NULL, qty = qty + 1, customer_id = customer_id + 1 WHERE id % 7 = 0;"
    "DELETE FROM customers WHERE id % 11 = 0; INSERT INTO log SELECT i % 9, 'w1' FROM generate_series(1, 600) i",
)
CUT = {
    "scan": "SELECT id, customer_id, amount, qty, placed, note FROM orders",
    "filtered": "SELECT id, amount * 2 AS twice, note FROM orders WHERE qty > 1",
    "joined": "SELECT o.id, c.name, o.amount, o.placed, o.note FROM orders o JOIN customers c ON c.id = o.customer_id",
    "bag": "SELECT l.what, c.region FROM log l JOIN customers c ON c.id = l.customer_id",
    "united": "SELECT c.name AS k, o.note FROM customers c JOIN orders o ON o.customer_id = c.id"
    " UNION ALL SELECT l.what, NULL FROM log l",
}
WHOLE = {"sums": "SELECT customer_id, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer_id"}


class Here:
    """Runs the tasks of the executor in this process, one after the other."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def compute(self, snapshot_id: str, computation: Computation, stage: StageTarget | None) -> Staged:
        if stage is None:
            return PostgresExecutor(self.database).compute(snapshot_id, computation, stage)
        snapshot, queries = Snapshot(self.database.jdbc, snapshot_id), computation.slices or (computation.sql,)
        dsn = portable_dsn(snapshot.jdbc)
        columns = (WEIGHT, ROW_ID, *stage.columns)
        carry = carrying(lambda: dsn, snapshot, queries, stage.schema, stage.table, columns, computation.meeting)
        numbers = pa.RecordBatch.from_pydict({"id": list(range(len(queries)))})
        with ledger(dsn, stage.schema, stage.table) as arrived:
            copied = sum(batch.column(0)[0].as_py() for batch in carry([numbers]))
            # A second attempt finds that all has arrived.
            assert [batch.column(0)[0].as_py() for batch in carry([numbers])] == [0] * len(queries)
            assert recorded(dsn, arrived)[0] == copied
            sizes = recorded(dsn, arrived)[1]
        return Staged(copied, None, (stage.schema, stage.table), copied, len(queries), sizes=sizes)


@pytest.fixture
def pt(any_dsn: str) -> Iterator[PgTrickle]:
    small: dict[str, Any] = {"collect_max_rows": 5, "read_partition_rows": 20, "max_read_partitions": 4}
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        conn.execute(TABLES)
    here = partial(Here, Database(any_dsn))
    with PgTrickle(any_dsn, executor=here, differential_max_change_ratio=0.0, **small) as made:
        made.install()
        yield made


def last(pt: PgTrickle, name: str) -> tuple[str, str, int]:
    (row,) = pt.history(name, 1)
    return row["action"], row["way"], row["reads"]


def differ(dsn: str, name: str, query: str) -> list[tuple[str]]:
    with psycopg.connect(dsn) as conn:
        described = conn.execute(f"SELECT * FROM ({query}) AS x LIMIT 0").description or []
        columns = ", ".join(f'x."{column.name}"' for column in described)
        stored, wanted = f"SELECT ROW({columns})::text FROM {name} x", f"SELECT ROW({columns})::text FROM ({query}) x"
        return [
            row
            for left, right in ((stored, wanted), (wanted, stored))
            for row in conn.execute(f"({left}) EXCEPT ALL ({right}) LIMIT 5").fetchall()
        ]


def test_a_large_change_is_written_from_slices(pt: PgTrickle, any_dsn: str) -> None:
    queries = {**CUT, **WHOLE}
    for name, query in queries.items():
        pt.create_stream_table(name, query, schedule="5m", refresh_mode="DIFFERENTIAL")
        assert differ(any_dsn, name, query) == []
    assert last(pt, "scan") == ("FULL", "sliced", 4)
    assert last(pt, "joined") == ("FULL", "pushed", 1)
    for statements in CYCLES:
        with psycopg.connect(any_dsn, autocommit=True) as conn:
            conn.execute(statements)
        for name, query in queries.items():
            pt.refresh_stream_table(name)
            action, way, reads = last(pt, name)
            assert (action, way) == ("DIFFERENTIAL", "sliced" if name in CUT else "pushed"), name
            assert (reads > 1) == (name in CUT)
            assert differ(any_dsn, name, query) == []


def test_a_whole_table_is_written_from_slices_and_meets_its_rows_later(pt: PgTrickle, any_dsn: str) -> None:
    for name in ("scan", "filtered"):
        pt.create_stream_table(name, CUT[name], schedule="5m", refresh_mode="DIFFERENTIAL")
        assert last(pt, name) == ("FULL", "sliced", 4)
        with psycopg.connect(any_dsn, autocommit=True) as conn:
            conn.execute(f"UPDATE orders SET note = '{name}' WHERE id % 10 = 0; DELETE FROM orders WHERE id % 9 = 0")
        result = pt.refresh_stream_table(name, force_full=True)
        assert (result.action, last(pt, name)) == ("FULL", ("FULL", "pushed", 1))
        written = result.rows_inserted + result.rows_deleted + 2 * result.rows_updated
        assert written == result.rows_read > 0
        assert differ(any_dsn, name, CUT[name]) == []


@pytest.mark.parametrize("name", ["scan", "joined", "bag", "sums"])
def test_only_what_is_not_stored_travels(pt: PgTrickle, any_dsn: str, name: str) -> None:
    query = {**CUT, **WHOLE}[name]
    pt.create_stream_table(name, query, schedule="5m", refresh_mode="FULL")
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        stored = only(conn.execute(f"SELECT count(*) FROM {name}"))[0]
        conn.execute("UPDATE customers SET name = name")
        result = pt.refresh_stream_table(name, force_full=True)
        # A bag has no key by which rows could meet, and of the sums one group's key is NULL, which meets nothing.
        unmet = {"bag": stored, "sums": 2}.get(name, 0)
        assert (result.action, result.rows_read) == ("FULL", unmet)
        conn.execute("UPDATE orders SET amount = -1, note = 'x' WHERE id = 7")
        conn.execute("UPDATE customers SET region = 'r9' WHERE id = 7")
    result = pt.refresh_stream_table(name, force_full=True)
    assert (result.action, result.rows_read) == ("FULL", stored if name == "bag" else unmet + 2)
    assert differ(any_dsn, name, query) == []


def test_equal_rows_of_a_content_that_meet_one_stored_row_are_noticed(pt: PgTrickle, any_dsn: str) -> None:
    pt.create_stream_table("scan", CUT["scan"], schedule="5m", refresh_mode="FULL")
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        # The key is not the key any more, behind the back of everybody who could notice.
        conn.execute("ALTER TABLE orders DROP CONSTRAINT orders_pkey")
        conn.execute("INSERT INTO orders SELECT * FROM orders WHERE id = 7")
        conn.execute("UPDATE pgtrickle.pgt_stream_tables SET needs_reinit = false")
    with pytest.MonkeyPatch.context() as blind:
        blind.setattr("airflow_provider_pgtrickle.engine.refresh.lock._changed", lambda conn, tables: set())
        with pytest.raises(InvariantViolated, match="more than once"):
            pt.refresh_stream_table("scan", force_full=True)
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        assert only(conn.execute("SELECT count(*) FROM scan WHERE id = 7")) == (1,)


def test_a_window_that_cancels_out_is_not_cut(pt: PgTrickle, any_dsn: str) -> None:
    pt.create_stream_table("scan", CUT["scan"], schedule="5m", refresh_mode="DIFFERENTIAL")
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        for n in range(20):
            conn.execute("UPDATE orders SET amount = %s WHERE id <= 100", (n,))
    result = pt.refresh_stream_table("scan")
    assert (result.source_changes, result.rows_updated) == (2000, 100)
    assert last(pt, "scan") == ("DIFFERENTIAL", "pushed", 1)
    assert differ(any_dsn, "scan", CUT["scan"]) == []
