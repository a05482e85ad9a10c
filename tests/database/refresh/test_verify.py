"""`verify`: a content that is its query's answer at the frontier, and every way in which it may not be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.catalog.database import Database
from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.refresh.verify import Verified

SHOP = """
    CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, region text);
    CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10, 2), weight float8, note text);
    CREATE TABLE log (at int, what text);
    CREATE TABLE edges (a int, b int, PRIMARY KEY (a, b));
    INSERT INTO customers SELECT i, 'c' || i, (ARRAY['north', 'south', NULL])[1 + i % 3] FROM generate_series(1, 20) i;
    INSERT INTO orders SELECT i, 1 + i % 20, i * 1.5, i / 7.0, 'n' || i FROM generate_series(1, 400) i;
    INSERT INTO log SELECT i % 7, 'x' FROM generate_series(1, 100) i;
    INSERT INTO edges SELECT i, i + 1 FROM generate_series(1, 30) i;
"""
QUERIES = {
    "bag": "SELECT at, what FROM log",
    "joined": "SELECT o.id, o.amount, c.name FROM orders o JOIN customers c ON c.id = o.customer",
    "outer_joined": "SELECT c.id, c.region, o.id AS order_id FROM customers c LEFT JOIN orders o ON o.customer = c.id",
    "added": "SELECT customer, sum(amount) AS total, count(*) AS n, avg(amount) AS mean FROM orders GROUP BY customer",
    "whole": "SELECT count(*) AS n, sum(amount) AS total FROM orders",
    "replaced": "SELECT customer, string_agg(note, ',' ORDER BY id) AS notes FROM orders GROUP BY customer",
    "unordered": "SELECT customer, array_agg(note) AS notes FROM orders GROUP BY customer",
    "floats": "SELECT customer, sum(weight) AS w, min(weight) AS least FROM orders GROUP BY customer",
    "ranked": "SELECT id, rank() OVER (PARTITION BY customer ORDER BY amount) AS place FROM orders",
    "first": "SELECT DISTINCT ON (customer) customer, note FROM orders ORDER BY customer, amount > 100",
    "top": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 5",
    "tied": "SELECT customer, note FROM orders ORDER BY customer LIMIT 5",
    "parts": "SELECT n, count(*) AS customers FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) x"
    " GROUP BY n",
    "reached": "WITH RECURSIVE r AS (SELECT a, b FROM edges WHERE a = 1 UNION SELECT r.a, e.b FROM r JOIN edges e"
    " ON e.a = r.b) SELECT a, b FROM r",
    "without": "SELECT id FROM customers EXCEPT SELECT customer FROM orders WHERE amount > 500",
    "known": "SELECT id, name FROM customers c WHERE EXISTS"
    " (SELECT FROM orders o WHERE o.customer = c.id AND amount > 400)",
    "sets": "SELECT region, count(*) AS n FROM customers GROUP BY GROUPING SETS ((region), ())",
}
#: The order of what is gathered, the last digits of sums of floats, rows that tie.
LEFT_OPEN = ("unordered", "floats", "first", "tied")
CHANGES = """
    UPDATE orders SET amount = amount + 0.25, weight = weight * 1.1 WHERE id % 11 = 0;
    DELETE FROM orders WHERE id % 13 = 0;
    INSERT INTO orders SELECT i, 1 + i % 25, i, i / 3.0, 'm' || i FROM generate_series(401, 450) i;
    UPDATE customers SET region = 'east' WHERE id = 3;
    DELETE FROM log WHERE at = 2; INSERT INTO log VALUES (3, 'x'), (3, 'y');
    DELETE FROM edges WHERE a = 20; INSERT INTO edges VALUES (5, 40);
"""


class Shop:
    def __init__(self, pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
        self.pt, self.conn = pt, conn

    def run(self, statement: str) -> None:
        self.conn.execute(statement)  # type: ignore[arg-type]

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self.conn.execute(statement).fetchall()  # type: ignore[arg-type]

    def create(self, name: str, query: str | None = None, **options: Any) -> None:
        self.pt.create_stream_table(name, query or QUERIES[name], **options)

    def corrupt(self, statement: str) -> None:
        """As somebody who goes around the guard."""
        with self.conn.transaction():
            self.conn.execute("SET LOCAL pgtrickle.refreshing = 'on'")
            self.conn.execute(statement)  # type: ignore[arg-type]

    def verify(self, name: str, **options: Any) -> Verified:
        """What came of the table itself; its parts hold."""
        found = self.pt.verify(name, **options)
        assert not any(part.differences for part in found.tables[1:])
        return found.tables[0]


@pytest.fixture
def shop(any_dsn: str) -> Iterator[Shop]:
    database = Database(any_dsn)
    settings: dict[str, Any] = {"differential_max_change_ratio": 0.0, "retry_attempts": 1}
    with (
        psycopg.connect(any_dsn, autocommit=True) as conn,
        PgTrickle(any_dsn, executor=lambda: PostgresExecutor(database), **settings) as pt,
    ):
        pt.install()
        conn.execute(SHOP)
        yield Shop(pt, conn)


@pytest.mark.parametrize("name", QUERIES)
def test_a_content_holds_at_its_frontier_before_and_after_changes_and_refreshes(shop: Shop, name: str) -> None:
    shop.create(name)
    for step in ("filled", "pending", "refreshed"):
        if step == "pending":
            shop.run(CHANGES)
        if step == "refreshed":
            action = shop.pt.refresh_stream_table(name).action
            assert action in ("DIFFERENTIAL", "TOPK")
        before = shop.pt.history(name)
        found = shop.verify(name)
        assert (found.status, found.differences, found.rows) == ("EQUAL", 0, ()), step
        assert found.undecided == 0 or name in LEFT_OPEN
        assert found.rows_compared == shop.rows(f"SELECT count(*) FROM {name}")[0][0]
        # Nothing was refreshed for it.
        assert shop.pt.history(name) == before
