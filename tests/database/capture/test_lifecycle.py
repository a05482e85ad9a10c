"""Capture begins with the first consumer, widens for the next and ends with the last; it never fails a writer."""

from __future__ import annotations

import threading

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.capture.tracking import track, untrack
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import PermissionFault, TransientFault
from airflow_provider_pgtrickle.engine.settings import Settings
from tests import servers
from tests.database.capture.conftest import Captured, source


@pytest.fixture
def orders(conn):
    conn.execute("CREATE TABLE orders (id int PRIMARY KEY, item text, price numeric, note text)")
    conn.execute("INSERT INTO orders VALUES (1, 'a', 1, 'n')")
    return conn


def tracking(conn):
    return conn.execute(
        "SELECT columns, key_columns, tracked_by_pgt_ids, slot_name FROM pgtrickle.pgt_change_tracking"
    ).fetchall()


def test_only_referenced_columns_and_the_key_are_captured(orders):
    captured = Captured(orders, "orders", ["price"])
    assert tracking(orders) == [(["id", "price"], ["id"], [1], f"pgtrickle_capture_{captured.source.relid}")]
    columns = orders.execute(
        "SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0",
        [captured.buffer.quoted],
    ).fetchone()
    assert columns == (["change_id", "xid", "lsn", "action", "new_id", "old_id", "new_price", "old_price"],)


def test_a_second_consumer_widens_the_buffer_and_keeps_its_rows(orders):
    Captured(orders, "orders", ["price"])
    orders.execute("UPDATE orders SET price = 2")
    both = Captured(orders, "orders", ["note"], pgt_id=2)
    both.columns = ["id", "price", "note"]
    orders.execute("UPDATE orders SET note = 'm'")
    assert both.changes() == [("U", "1", "2", None, "1", "1", None), ("U", "1", "2", "m", "1", "2", "n")]
    assert tracking(orders)[0][:3] == (["id", "price", "note"], ["id"], [1, 2])


def test_tracking_the_same_again_takes_no_lock(orders, any_dsn):
    captured = Captured(orders, "orders", ["price"])
    with servers.user_session(any_dsn, autocommit=False) as writer:
        writer.execute("INSERT INTO orders VALUES (2)")  # holds its lock
        track(orders, captured.source, ["price"], pgt_id=2)
    assert tracking(orders)[0][2] == [1, 2]


def test_the_last_consumer_takes_triggers_and_buffer_along(orders):
    captured = Captured(orders, "orders", ["price"])
    track(orders, captured.source, ["item"], pgt_id=2)
    untrack(orders, captured.source.relid, 1)
    assert tracking(orders)[0][0] == ["id", "item", "price"]  # never narrower while others remain
    untrack(orders, captured.source.relid, 2)
    assert tracking(orders) == []
    left = orders.execute(
        "SELECT (SELECT count(*) FROM pg_trigger WHERE tgrelid = 'orders'::regclass AND NOT tgisinternal),"
        " (SELECT count(*) FROM pg_class WHERE relnamespace = 'pgtrickle_changes'::regnamespace),"
        " (SELECT count(*) FROM pg_proc WHERE pronamespace = 'pgtrickle_changes'::regnamespace)"
    )
    assert left.fetchone() == (0, 0, 0)


def test_untracking_what_was_never_tracked_is_nothing(orders):
    untrack(orders, 1, 1)
    captured = Captured(orders, "orders")
    untrack(orders, captured.source.relid, 99)
    assert tracking(orders)[0][2] == [1]


def test_untracking_a_dropped_table_removes_what_it_left(orders):
    captured = Captured(orders, "orders")
    orders.execute("DROP TABLE orders")
    untrack(orders, captured.source.relid, 1)
    assert tracking(orders) == []
    assert orders.execute("SELECT to_regclass(%s)", [captured.buffer.quoted]).fetchone() == (None,)


def test_tracking_waits_for_running_writers_and_misses_none(orders, any_dsn):
    """A writer that began before the triggers existed commits first; whoever comes later is captured."""
    with servers.user_session(any_dsn, autocommit=False) as early, servers.user_session(any_dsn) as tracker:
        early.execute("UPDATE orders SET price = 5")
        thread = threading.Thread(target=Captured, args=(tracker, "orders"))
        thread.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'orders'::regclass"
        while orders.execute(waiting).fetchone() == (0,):
            pass
        early.commit()
        thread.join()
    orders.execute("UPDATE orders SET price = 6")
    assert Captured(orders, "orders").actions() == "U"


def test_a_lock_that_does_not_come_is_a_transient_fault(orders, any_dsn):
    with (
        servers.user_session(any_dsn, autocommit=False) as writer,
        Database(any_dsn, Settings.load(lock_timeout_seconds=1)).connect(autocommit=True) as tracker,
    ):
        tracker.execute("SET search_path TO DEFAULT")
        writer.execute("UPDATE orders SET price = 5")
        with pytest.raises(TransientFault, match="holds a lock"):
            Captured(tracker, "orders")
    assert tracking(orders) == []


def test_a_tracking_that_fails_leaves_nothing(orders):
    with orders.transaction(force_rollback=True):
        Captured(orders, "orders")
    assert tracking(orders) == []
    orders.execute("INSERT INTO orders VALUES (5)")


def test_writers_need_no_right_on_the_buffers(orders, admin_of):
    captured = Captured(orders, "orders")
    admin_of.execute("DROP ROLE IF EXISTS pgt_clerk")
    admin_of.execute("CREATE ROLE pgt_clerk")
    try:
        admin_of.execute("GRANT INSERT, UPDATE, DELETE, SELECT, TRUNCATE ON orders TO pgt_clerk")
        admin_of.execute("SET ROLE pgt_clerk")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            admin_of.execute(f"SELECT FROM {captured.buffer.quoted}")
        admin_of.execute("INSERT INTO orders VALUES (2)")
        admin_of.execute("UPDATE orders SET price = 9")
        admin_of.execute("DELETE FROM orders WHERE id = 2")
        admin_of.execute("TRUNCATE orders")
        assert captured.actions() == "DITUU"
    finally:
        admin_of.execute("RESET ROLE")
        admin_of.execute("DROP OWNED BY pgt_clerk")
        admin_of.execute("DROP ROLE pgt_clerk")


def test_a_writers_search_path_cannot_mislead_the_capture(orders, any_dsn):
    captured = Captured(orders, "orders")
    orders.execute("CREATE SCHEMA evil")
    orders.execute("CREATE FUNCTION evil.pg_current_xact_id() RETURNS xid8 LANGUAGE sql AS $$ SELECT '0'::xid8 $$")
    orders.execute("CREATE TABLE evil.pg_attribute (n int)")
    with servers.user_session(any_dsn) as writer:
        writer.execute("SET search_path = evil, pg_catalog, public")
        writer.execute("INSERT INTO public.orders VALUES (7)")
    assert orders.execute(f"SELECT xid > '0' FROM {captured.buffer.quoted}").fetchall() == [(True,)]


def test_tracking_anothers_table_is_refused_with_the_reason(orders, admin_of):
    admin_of.execute("CREATE TABLE theirs (id int PRIMARY KEY)")
    (role,) = orders.execute("SELECT current_user").fetchone()
    admin_of.execute(f'GRANT ALL ON theirs TO "{role}"')
    with pytest.raises(PermissionFault, match=r"[Mm]ust be owner of table theirs"):
        Captured(orders, "theirs")
    assert tracking(orders) == []


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE orders DROP COLUMN price",
        "ALTER TABLE orders RENAME COLUMN price TO cost",
        "ALTER TABLE orders ALTER COLUMN id TYPE bigint",
        "ALTER TABLE orders ALTER COLUMN item TYPE int USING 1",
    ],
)
def test_a_changed_table_can_still_be_written_and_says_so(orders, change):
    captured = Captured(orders, "orders")
    orders.execute(change)
    orders.execute("INSERT INTO orders (id) VALUES (2)")
    orders.execute("UPDATE orders SET note = 'x'")
    orders.execute("DELETE FROM orders")
    assert orders.execute(f"SELECT DISTINCT action FROM {captured.buffer.quoted}").fetchall() == [("T",)]
    again = Captured(orders, "orders")
    again.save()
    orders.execute("INSERT INTO orders (id, note) VALUES (3, 'y')")
    orders.execute("UPDATE orders SET note = 'z'")
    assert again.actions() == "IU"
    assert again.differences() == []


@pytest.mark.parametrize(
    "change",
    ["ALTER TABLE orders ADD COLUMN extra int DEFAULT 1", "ALTER TABLE orders RENAME TO purchases"],
)
def test_changes_that_concern_no_captured_column_go_unnoticed(orders, change):
    captured = Captured(orders, "orders")
    orders.execute(change)
    orders.execute(f"UPDATE {'purchases' if 'RENAME' in change else 'orders'} SET price = 8")
    assert captured.actions() == "U"


def test_a_longer_value_after_a_wider_type_is_captured(orders):
    orders.execute("CREATE TABLE names (id int PRIMARY KEY, v varchar(3), n numeric(3,1))")
    captured = Captured(orders, "names")
    orders.execute("ALTER TABLE names ALTER v TYPE varchar(30), ALTER n TYPE numeric(10,4)")
    orders.execute("INSERT INTO names VALUES (1, 'longer than three', 123.4567)")
    assert captured.changes()[0][:4] == ("I", "1", "longer than three", "123.4567")


def test_triggers_that_were_dropped_or_disabled_come_back(orders):
    captured = Captured(orders, "orders")
    orders.execute(f"DROP TRIGGER pgtrickle_capture_{captured.source.relid}_insert ON orders")
    orders.execute(f"ALTER TABLE orders DISABLE TRIGGER pgtrickle_capture_{captured.source.relid}_update")
    captured = Captured(orders, "orders")
    orders.execute("INSERT INTO orders VALUES (2)")
    orders.execute("UPDATE orders SET price = 3 WHERE id = 2")
    assert captured.actions() == "IU"


def test_a_source_knows_its_kind_and_keys(orders):
    orders.execute("ALTER TABLE orders ADD UNIQUE (note)")
    orders.execute("ALTER TABLE orders ALTER item SET NOT NULL, ADD UNIQUE (item)")
    found = source(orders, "orders")
    assert (found.kind, found.primary_key, found.unique_keys) == ("TABLE", ("id",), (("item",),))
