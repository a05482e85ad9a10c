"""Every statement that changes a table is in its buffer, and nothing else is."""

from __future__ import annotations

import pytest

from tests.database.capture.conftest import Captured

#: All of it holds whether triggers capture or the WAL is pumped.
pytestmark = pytest.mark.usefixtures("way")


@pytest.fixture
def orders(conn):
    conn.execute("CREATE TABLE orders (id int PRIMARY KEY, item text, price numeric, note text)")
    conn.execute("INSERT INTO orders SELECT g, 'item ' || g, g, 'n' FROM generate_series(1, 5) AS g")
    captured = Captured(conn, "orders", ["item", "price"])
    captured.columns = ["id", "item", "price"]
    captured.save()
    return captured


@pytest.mark.parametrize(
    ("statement", "actions"),
    [
        ("INSERT INTO orders VALUES (10, 'a', 1), (11, NULL, NULL)", "II"),
        ("INSERT INTO orders SELECT g, 'x', g FROM generate_series(20, 22) AS g", "III"),
        ("UPDATE orders SET price = price + 1 WHERE id <= 2", "UU"),
        ("UPDATE orders SET price = NULL", "UUUUU"),
        ("UPDATE orders SET note = 'unreferenced'", ""),
        ("UPDATE orders SET item = item, price = price", ""),
        ("UPDATE orders SET price = price * 1.00", "UUUUU"),
        ("UPDATE orders SET item = 'item 1' WHERE id <= 2", "U"),
        ("UPDATE orders SET id = 100 WHERE id = 1", "DI"),
        ("UPDATE orders SET id = id + 100", "DDDDDIIIII"),
        ("DELETE FROM orders WHERE id > 3", "DD"),
        ("DELETE FROM orders WHERE id > 100", ""),
        ("INSERT INTO orders VALUES (1, 'again', 1) ON CONFLICT DO NOTHING", ""),
        (
            "INSERT INTO orders VALUES (1, 'again', 1), (6, 'new', 6)"
            " ON CONFLICT (id) DO UPDATE SET item = excluded.item",
            "IU",
        ),
        (
            "MERGE INTO orders o USING (VALUES (1), (2), (7)) AS s(id) ON s.id = o.id"
            " WHEN MATCHED AND s.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET item = 'merged'"
            " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'merged', 0)",
            "DIU",
        ),
        (
            "WITH gone AS (DELETE FROM orders WHERE id = 1 RETURNING *)"
            " INSERT INTO orders SELECT id + 50, item, price FROM gone",
            "DI",
        ),
        (
            "WITH a AS (UPDATE orders SET price = 0 WHERE id = 1), b AS (UPDATE orders SET price = 9 WHERE id = 2)"
            " SELECT",
            "UU",
        ),
    ],
)
def test_a_statement_is_captured_as_what_it_changed(orders, statement, actions):
    orders.conn.execute(statement)
    assert orders.actions() == actions
    assert orders.differences() == []


def test_copy_is_captured(orders):
    with orders.conn.cursor().copy("COPY orders FROM STDIN") as copy:
        for row in [(30, "copied", 1, None), (31, "copied", None, None)]:
            copy.write_row(row)
    assert orders.actions() == "II"
    assert orders.differences() == []


def test_truncate_leaves_its_marker(orders):
    orders.conn.execute("TRUNCATE orders")
    assert orders.changes() == [("T",) + (None,) * 6]


def test_an_update_holds_both_images(orders):
    orders.conn.execute("UPDATE orders SET item = 'new', price = 7 WHERE id = 1")
    assert orders.changes() == [("U", "1", "new", "7", "1", "item 1", "1")]


def test_swapped_keys_are_paired_by_key(conn):
    conn.execute("CREATE TABLE seats (id int PRIMARY KEY DEFERRABLE, who text)")
    conn.execute("INSERT INTO seats VALUES (1, 'a'), (2, 'b')")
    seats = Captured(conn, "seats")
    seats.save()
    conn.execute("UPDATE seats SET id = 3 - id")
    assert seats.differences() == []


def test_keys_that_are_twice_within_a_transaction_are_told_apart(conn):
    conn.execute("CREATE TABLE seats (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, who text)")
    conn.execute("INSERT INTO seats VALUES (1, 'a'), (2, 'b')")
    seats = Captured(conn, "seats")
    seats.save()
    with conn.transaction():
        conn.execute("UPDATE seats SET id = 1 WHERE id = 2")
        conn.execute("UPDATE seats SET who = who || '!'")
        conn.execute("UPDATE seats SET id = 2 WHERE who = 'b!'")
    assert seats.differences() == []


def test_a_rolled_back_transaction_leaves_nothing(orders):
    with orders.conn.transaction(force_rollback=True):
        orders.conn.execute("DELETE FROM orders")
    assert orders.changes() == []


def test_a_rolled_back_savepoint_leaves_nothing(orders):
    with orders.conn.transaction():
        with orders.conn.transaction(force_rollback=True):
            orders.conn.execute("DELETE FROM orders")
        orders.conn.execute("INSERT INTO orders VALUES (8)")
    assert orders.actions() == "I"


def test_rows_carry_their_transaction(orders):
    with orders.conn.transaction():
        (xid,) = orders.conn.execute("SELECT pg_current_xact_id()").fetchone()
        with orders.conn.transaction():  # in a subtransaction, too, the id is that of the whole
            orders.conn.execute("INSERT INTO orders VALUES (9)")
    orders.pump()
    assert orders.conn.execute(f"SELECT xid, lsn IS NOT NULL FROM {orders.buffer.quoted}").fetchall() == [(xid, True)]


def test_changes_by_other_triggers_are_captured_once(orders):
    orders.conn.execute("""
        CREATE FUNCTION double() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN NEW.price := NEW.price * 2; RETURN NEW; END$$
    """)
    orders.conn.execute("CREATE TRIGGER double BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION double()")
    orders.conn.execute("""
        CREATE FUNCTION shadow() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN INSERT INTO orders SELECT -id, item, price FROM fresh WHERE id > 0; RETURN NULL; END$$
    """)
    orders.conn.execute(
        "CREATE TRIGGER shadow AFTER INSERT ON orders REFERENCING NEW TABLE AS fresh"
        " FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION shadow()"
    )
    orders.conn.execute("INSERT INTO orders VALUES (40, 'x', 5)")
    assert orders.actions() == "II"
    assert orders.differences() == []
