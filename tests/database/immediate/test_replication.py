"""IMMEDIATE tables follow what logical replication applies, and what sessions in its role write."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import Connection

from tests import servers
from tests.database.capture.test_replication import caught_up, publisher, subscribe, subscriber
from tests.database.reported.conftest import Site, site_at

__all__ = ["publisher", "subscriber"]

QUERIES = {
    "pairs": "SELECT a.id AS x, b.id AS y FROM orders a JOIN orders b ON a.item = b.item AND a.id < b.id",
    "sums": "SELECT item, sum(price) AS s, count(*) AS n FROM orders GROUP BY item",
    "kept": "SELECT id, price * 2 AS p FROM orders WHERE price > 1",
    "days": "SELECT sales.day, orders.item FROM sales JOIN orders USING (id)",
}


@pytest.fixture
def replica(conn18: Connection, subscriber: Connection, dsn: str) -> Iterator[Site]:
    for site in site_at(dsn):
        for name, query in QUERIES.items():
            site.declare(name, query, refresh_mode="IMMEDIATE")
        yield site


def equal(site: Site, what: str) -> None:
    for name, query in QUERIES.items():
        assert site.differs(name, query) == [], (what, name)


def test_what_replication_applies_is_maintained(replica: Site, publisher: Connection, subscriber: Connection) -> None:
    subscribe(subscriber)
    caught_up(publisher, subscriber)
    equal(replica, "the initial copy")
    for change in (
        "INSERT INTO orders SELECT g, 'ab', g FROM generate_series(10, 15) AS g",
        "UPDATE orders SET price = 0 WHERE id >= 11",
        "UPDATE orders SET id = id + 100, item = 'c' WHERE id < 12",
        "INSERT INTO sales SELECT g, g FROM generate_series(8, 15) AS g",
        "UPDATE sales SET day = day - 5 WHERE day > 9",
        "DELETE FROM orders WHERE price = 0",
        "TRUNCATE orders",
        "INSERT INTO orders VALUES (1, 'a', 1), (2, 'a', 2)",
    ):
        publisher.execute(change)
        caught_up(publisher, subscriber)
        equal(replica, change)
    replica.run("INSERT INTO orders VALUES (500, 'a', 1), (501, 'a', 7)")
    equal(replica, "its own writer")


def test_a_session_in_the_role_of_a_replica(replica: Site, admin_dsn: str) -> None:
    with servers.user_session(admin_dsn) as session:
        session.execute("SET session_replication_role = replica")
        for change in (
            "INSERT INTO orders SELECT g, 'ab', g FROM generate_series(10, 15) AS g",
            "UPDATE orders SET price = price + 1, item = 'c' WHERE id > 12",
            "WITH s AS (INSERT INTO sales VALUES (10, 3), (11, 12)) UPDATE orders SET item = 'd' WHERE id IN (10, 11)",
            "DELETE FROM orders WHERE id < 12",
            "BEGIN; SAVEPOINT a; UPDATE orders SET item = 'e'; ROLLBACK TO a; DELETE FROM sales WHERE id = 10; COMMIT",
            "TRUNCATE orders",
            "INSERT INTO orders VALUES (1, 'a', 1), (2, 'a', 2)",
        ):
            session.execute(change)
            equal(replica, change)


def test_what_is_loaded_with_disabled_triggers_is_noticed(replica: Site, admin_dsn: str) -> None:
    """As `pg_restore --disable-triggers` does it."""
    with psycopg.connect(admin_dsn, autocommit=True) as session:
        session.execute("ALTER TABLE orders DISABLE TRIGGER ALL; INSERT INTO orders VALUES (1, 'a', 1), (2, 'a', 2)")
        session.execute("ALTER TABLE orders ENABLE TRIGGER ALL")
    for name in QUERIES:
        replica.refresh(name)
    equal(replica, "after a refresh")
    replica.run("UPDATE orders SET price = 9")
    equal(replica, "afterwards")
