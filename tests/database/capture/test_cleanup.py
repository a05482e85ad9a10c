"""Buffers lose what every consumer has seen, and nothing else; stream tables' buffers follow their columns."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.capture.cleanup import clean_buffers, drop_orphan_stages, sample_buffers
from airflow_provider_pgtrickle.engine.capture.st_buffer import drop_st_buffer, ensure_st_buffer
from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.locks import LOCK_SPACE
from airflow_provider_pgtrickle.engine.catalog.records import Dependency, StorageColumn
from tests import servers
from tests.database.capture.conftest import Captured, source


@pytest.fixture
def orders(conn):
    conn.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    return conn


def consume(conn, name, key=None):
    """A stream table that reads `orders` and, with `key`, has consumed all that is committed now."""
    table = records.find(conn, records.QualifiedName("public", name)) or records.insert(
        conn, schema="public", name=name, original_query="", defining_query=""
    )
    found = source(conn, "orders")
    records.replace_dependencies(
        conn, table.id, [Dependency(table.id, found.relid, "TABLE", "public", "orders", cdc_mode="TRIGGER")]
    )
    captured = Captured(conn, "orders", pgt_id=table.id)
    if key:
        (snapshot,) = conn.execute("SELECT pg_current_snapshot()::text").fetchone()
        records.update(conn, table.id, frontier={"sources": {str(found.relid): {"snapshot": snapshot}}})
    return captured


def test_rows_that_every_consumer_saw_are_deleted(orders):
    captured = consume(orders, "a")
    consume(orders, "b")
    orders.execute("INSERT INTO orders VALUES (1), (2)")
    assert clean_buffers(orders) == {captured.buffer.name: 0}  # nobody ever refreshed
    consume(orders, "a", key=True)
    assert clean_buffers(orders) == {captured.buffer.name: 0}  # b did not
    orders.execute("INSERT INTO orders VALUES (3)")
    consume(orders, "b", key=True)
    assert clean_buffers(orders) == {captured.buffer.name: 2}  # a saw two of the three
    consume(orders, "a", key=True)
    assert clean_buffers(orders) == {captured.buffer.name: 1}
    assert captured.changes() == []


def _sampled(conn, minutes_ago, rows):
    conn.execute(
        "INSERT INTO pgtrickle.pgt_buffer_samples (at, buffer, rows, bytes)"
        " SELECT now() - %s * interval '1 minute', buffer, %s, 8192 FROM pgtrickle.pgt_change_tracking",
        [minutes_ago, rows],
    )


def test_a_buffer_is_sampled_at_most_every_ten_minutes(orders):
    captured = consume(orders, "a")
    orders.execute("INSERT INTO orders VALUES (1), (2)")
    orders.execute("SELECT pg_stat_force_next_flush()")
    sample_buffers(orders)
    sample_buffers(orders)
    samples = orders.execute("SELECT buffer, rows, bytes > 0 FROM pgtrickle.pgt_buffer_samples").fetchall()
    assert samples == [(captured.buffer.name, 2, True)]
    orders.execute("UPDATE pgtrickle.pgt_buffer_samples SET at = at - interval '11 minutes'")
    sample_buffers(orders)
    orders.execute("UPDATE pgtrickle.pgt_buffer_samples SET at = at - interval '3 days'")
    sample_buffers(orders)
    ((kept,),) = orders.execute("SELECT count(*) FROM pgtrickle.pgt_buffer_samples").fetchall()
    assert kept == 1


@pytest.mark.parametrize(
    ("rows", "grows"),
    [
        ([0, 9000, 0, 9000, 0, 9000, 0, 9000], False),  # emptied again and again
        ([9000, 9000, 9000, 9000, 9000, 9000, 9000, 9000], False),  # kept for a slow reader, and no more
        ([0, 2000, 1000, 3000, 2000, 5000, 4000, 7000], True),  # never as empty as it was
        ([0, 0, 0, 0, 10, 20, 30, 40], False),  # too little to speak of
        ([0, 90000], False),  # two samples say nothing
    ],
)
def test_a_buffer_grows_if_its_low_rises(orders, rows, grows):
    consume(orders, "a")
    for at, number in enumerate(rows):
        _sampled(orders, 20 * (len(rows) - at), number)
    ((source, told, kept),) = orders.execute("SELECT source, grows, rows FROM pgtrickle.pgt_buffer_growth").fetchall()
    assert (source, told, kept) == ("public.orders", grows, rows)


def test_a_row_committed_after_the_snapshot_survives_though_its_transaction_began_before(orders, any_dsn):
    captured = consume(orders, "a")
    with servers.user_session(any_dsn, autocommit=False) as late:
        late.execute("INSERT INTO orders VALUES (1)")
        orders.execute("INSERT INTO orders VALUES (2)")
        consume(orders, "a", key=True)
        late.commit()
    assert clean_buffers(orders) == {captured.buffer.name: 1}
    assert captured.changes() == [("I", "1", None)]


def test_pending_rows_are_counted_per_consumer(orders):
    consume(orders, "a")
    consume(orders, "b")
    orders.execute("INSERT INTO orders VALUES (1), (2)")
    consume(orders, "b", key=True)
    orders.execute("INSERT INTO orders VALUES (3)")
    sizes = orders.execute(
        "SELECT stream_table, source_table, cdc_mode, pending_rows, buffer_bytes > 0"
        " FROM pgtrickle.change_buffer_sizes()"
    )
    assert sizes.fetchall() == [
        ("public.a", "public.orders", "TRIGGER", 3, True),
        ("public.b", "public.orders", "TRIGGER", 1, True),
    ]


def test_orphan_stages_go_and_those_in_use_stay(conn, any_dsn):
    conn.execute("CREATE TABLE pgtrickle_changes.stage_7_abc (a int)")
    conn.execute("CREATE TABLE pgtrickle_changes.stage_8_abc (a int)")
    with servers.user_session(any_dsn) as refresher:
        refresher.execute("SELECT pg_advisory_lock(%s, 8)", [LOCK_SPACE])
        assert drop_orphan_stages(conn) == ["stage_7_abc"]
    assert conn.execute("SELECT to_regclass('pgtrickle_changes.stage_8_abc') IS NOT NULL").fetchone() == (True,)


@pytest.fixture
def stream_table(conn):
    conn.execute('CREATE TABLE st (__pgt_row_id bigint, n int, "Total" numeric(10,2), __pgt_count bigint)')
    (relid,) = conn.execute("SELECT 'st'::regclass::oid::bigint").fetchone()
    storage = [
        StorageColumn("n", "integer"),
        StorageColumn("Total", "numeric"),
        StorageColumn("__pgt_count", "", "hidden"),
    ]
    return records.insert(
        conn, schema="public", name="st", relid=relid, original_query="", defining_query="", storage=storage
    )


def columns(conn, buffer):
    rows = conn.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
        [buffer.quoted],
    )
    return {row[0] for row in rows}


def test_a_stream_tables_buffer_holds_its_visible_columns(conn, stream_table):
    buffer = ensure_st_buffer(conn, stream_table)
    assert buffer.name == f"changes_pgt_{stream_table.id}"
    assert columns(conn, buffer) == {"change_id", "xid", "lsn", "action", "pk_hash", "new_n", "new_Total"}


def test_a_buffer_that_fits_keeps_its_rows_and_one_that_does_not_is_made_anew(conn, stream_table):
    buffer = ensure_st_buffer(conn, stream_table)
    conn.execute(f"INSERT INTO {buffer.quoted} (action, pk_hash, new_n) VALUES ('I', 1, 1)")
    ensure_st_buffer(conn, stream_table)
    assert conn.execute(f"SELECT count(*) FROM {buffer.quoted}").fetchone() == (1,)
    conn.execute("ALTER TABLE st ALTER n TYPE bigint")
    ensure_st_buffer(conn, stream_table)
    assert conn.execute(f"SELECT count(*) FROM {buffer.quoted}").fetchone() == (0,)
    drop_st_buffer(conn, stream_table.id)
    drop_st_buffer(conn, stream_table.id)
    assert conn.execute("SELECT to_regclass(%s)", [buffer.quoted]).fetchone() == (None,)


def health(conn):
    return conn.execute("SELECT source_table, selective_capture, alert FROM pgtrickle.check_cdc_health(2)").fetchall()


def test_health_tells_what_ails_a_capture(conn):
    conn.execute("CREATE TABLE orders (id int PRIMARY KEY, n int, note text)")
    captured = Captured(conn, "orders", ["n"])
    trigger = f"pgtrickle_capture_{captured.source.relid}_update"
    assert health(conn) == [("public.orders", True, None)]
    conn.execute("INSERT INTO orders VALUES (1), (2), (3)")
    assert health(conn) == [("public.orders", True, "buffer_growth_warning")]
    conn.execute(f"ALTER TABLE orders DISABLE TRIGGER {trigger}")
    assert health(conn) == [("public.orders", True, "trigger_disabled")]
    conn.execute(f"DROP TRIGGER {trigger} ON orders")
    assert health(conn) == [("public.orders", True, "trigger_missing")]
    captured = Captured(conn, "orders", ["n", "note"])
    conn.execute("DELETE FROM " + captured.buffer.quoted)
    assert health(conn) == [("public.orders", False, None)]
    conn.execute("DROP TABLE " + captured.buffer.quoted)
    assert health(conn) == [("public.orders", False, "buffer_missing")]
    conn.execute("DROP TABLE orders")
    assert health(conn) == [("public.orders", False, "source_dropped")]
