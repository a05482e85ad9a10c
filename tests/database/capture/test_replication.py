"""Rows that logical replication applies are captured exactly once, as are those that sessions in its role write."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import Connection, sql

from tests import servers
from tests.answers import only
from tests.database.capture.conftest import Captured

#: All of it holds whether triggers capture or the WAL is pumped.
pytestmark = pytest.mark.usefixtures("way")

TABLES = """
    CREATE TABLE marks (id serial PRIMARY KEY);
    CREATE TABLE orders (id int PRIMARY KEY, item text, price numeric, note text);
    CREATE TABLE sales (id int, day int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
    CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM (0) TO (10);
    CREATE TABLE sales_2 PARTITION OF sales FOR VALUES FROM (10) TO (20);
"""


@pytest.fixture
def publisher(postgres18) -> Iterator[Connection]:
    """Another database of the same server, with the same tables and a few rows."""
    name = f"publisher_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgres18.dsn(), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            with psycopg.connect(postgres18.dsn(name), autocommit=True) as conn:
                conn.execute(TABLES)
                conn.execute("INSERT INTO orders VALUES (1, 'a', 1, 'n'), (2, 'b', 2, 'n')")
                conn.execute("CREATE PUBLICATION everything FOR ALL TABLES")
                yield conn
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def subscriber(conn18, admin_dsn, publisher, postgres18) -> Iterator[Connection]:
    """The database with the stream tables. It subscribes when `subscribe` is called."""
    slot = f"slot_{uuid.uuid4().hex[:8]}"
    with servers.user_session(admin_dsn) as admin:
        (role,) = conn18.execute("SELECT current_user").fetchone()
        admin.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
        admin.execute(TABLES)
        admin.execute("RESET ROLE")
        # Within one server CREATE SUBSCRIPTION would wait for itself, were it to create the slot.
        publisher.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [slot])
        admin.execute(
            sql.SQL(
                "CREATE SUBSCRIPTION {} CONNECTION {} PUBLICATION everything WITH (create_slot = false, {})"
            ).format(
                sql.Identifier(slot),
                sql.Literal(postgres18.dsn(publisher.info.dbname)),
                sql.SQL("enabled = false, slot_name = {}").format(sql.Literal(slot)),
            )
        )
        try:
            yield admin
        finally:
            admin.execute(sql.SQL("ALTER SUBSCRIPTION {} DISABLE").format(sql.Identifier(slot)))
            # This ends the workers and then waits for the slot to be free, which no query of ours could do for sure.
            admin.execute(sql.SQL("DROP SUBSCRIPTION {}").format(sql.Identifier(slot)))


def subscribe(subscriber: Connection) -> None:
    own = (
        "SELECT subname FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid"
        " WHERE d.datname = current_database()"
    )
    (name,) = only(subscriber.execute(own))
    subscriber.execute(sql.SQL("ALTER SUBSCRIPTION {} ENABLE").format(sql.Identifier(name)))


def caught_up(publisher: Connection, subscriber: Connection) -> None:
    """Wait until the subscriber has applied all that the publisher has committed.

    Commits are applied in their order, so a mark that arrives has everything before it arrived; but only once the
    tables' initial copies are over, for which the first mark wakes the worker.
    """
    for done in ("SELECT NOT EXISTS (SELECT FROM pg_subscription_rel WHERE srsubstate <> 'r')", "SELECT true"):
        (mark,) = only(publisher.execute("INSERT INTO marks DEFAULT VALUES RETURNING id"))
        while subscriber.execute(f"SELECT ({done}) AND EXISTS (SELECT FROM marks WHERE id = {mark})").fetchone() == (
            False,
        ):
            pass


def test_replicated_changes_are_captured_exactly_once(conn18, publisher, subscriber):
    orders = Captured(conn18, "orders", ["item", "price"])
    orders.columns = ["id", "item", "price"]
    orders.save()
    subscribe(subscriber)
    caught_up(publisher, subscriber)
    assert orders.actions() == "II"  # the initial copy

    publisher.execute("INSERT INTO orders SELECT g, 'x', g FROM generate_series(10, 12) AS g")
    publisher.execute("UPDATE orders SET price = 0 WHERE id >= 11")
    publisher.execute("UPDATE orders SET note = 'unreferenced'")
    publisher.execute("UPDATE orders SET id = 100 WHERE id = 1")
    publisher.execute("DELETE FROM orders WHERE id = 2")
    caught_up(publisher, subscriber)
    assert orders.actions() == "DD" + "IIIIII" + "UU"
    assert orders.differences() == []

    # The subscriber's own writers are captured beside them, once.
    conn18.execute("INSERT INTO orders VALUES (500, 'local', 1)")
    assert orders.actions() == "DD" + "IIIIIII" + "UU"
    assert orders.differences() == []

    publisher.execute("TRUNCATE orders")
    caught_up(publisher, subscriber)
    assert orders.actions().count("T") == 1


def test_replicated_changes_of_partitions_are_captured_exactly_once(conn18, publisher, subscriber):
    sales = Captured(conn18, "sales")
    sales.save()
    subscribe(subscriber)
    publisher.execute("INSERT INTO sales VALUES (1, 1), (2, 11)")
    publisher.execute("UPDATE sales SET day = 15 WHERE id = 1")
    publisher.execute("DELETE FROM sales_2 WHERE id = 2")
    caught_up(publisher, subscriber)
    assert sales.differences() == []
    assert conn18.execute("SELECT * FROM sales").fetchall() == [(1, 15)]


@pytest.mark.parametrize("role", ["origin", "local", "replica"])
@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_a_session_of_any_role_is_captured_once(conn, admin_of, role, key):
    conn.execute(f"CREATE TABLE t (id int {key}, n int, note text)")
    table = Captured(conn, "t", ["id", "n"])
    table.save()
    admin_of.execute(f"SET session_replication_role = {role}")
    admin_of.execute("INSERT INTO t VALUES (1, 1), (2, 2), (2 + 1, 3)")
    admin_of.execute("UPDATE t SET n = 9 WHERE id = 1")
    admin_of.execute("UPDATE t SET id = 4 WHERE id = 3")
    admin_of.execute("UPDATE t SET note = 'unreferenced'")
    admin_of.execute("DELETE FROM t WHERE id = 2")
    assert table.actions() == ("DDIIIIU" if key else "DDDIIIII")
    assert table.differences() == []
    admin_of.execute("TRUNCATE t")
    assert table.actions().count("T") == 1
