"""TOPK as a refresh runs it: real declarations, the real algebra, and PostgreSQL's word on what it executed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh.executor import Computation, PostgresExecutor, Staged, StageTarget

SHOP = """
    CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric);
    INSERT INTO orders SELECT i, i % 10, i FROM generate_series(1, 100) i;
"""
TOP = "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 3"
ALWAYS: dict[str, Any] = {"differential_max_change_ratio": 0.0}


class Watching(PostgresExecutor):
    """An executor that notes whether PostgreSQL executes the query itself, in the refresh's own snapshot."""

    def __init__(self, dsn: str) -> None:
        super().__init__(Database(dsn))
        self._dsn = dsn
        self.recomputed: list[bool] = []

    def compute(self, snapshot_id: str, computation: Computation, stage: StageTarget | None) -> Staged:
        with psycopg.connect(self._dsn) as conn:
            conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            conn.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot_id))
            explained = "EXPLAIN (ANALYZE, FORMAT JSON) " + computation.sql
            (((top,),),) = conn.execute(explained).fetchall()
        self.recomputed.append(any(n["Node Type"] == "Limit" and n["Actual Loops"] > 0 for n in _nodes(top["Plan"])))
        return super().compute(snapshot_id, computation, stage)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)


class Shop:
    def __init__(self, dsn: str, conn: psycopg.Connection[Any], client: PgTrickle, executor: Watching) -> None:
        self.dsn, self.conn, self.client, self._executor = dsn, conn, client, executor

    def refresh(self) -> tuple[str, bool | None, int, int]:
        """Action, whether it was computed anew, rows that came and went; and the content is the query's."""
        self._executor.recomputed.clear()
        result = self.client.refresh_stream_table("top")
        assert self.conn.execute("SELECT id, amount FROM top ORDER BY amount DESC, id").fetchall() == self._wanted()
        recomputed = self._executor.recomputed[0] if self._executor.recomputed else None
        return result.action, recomputed, result.rows_inserted, result.rows_deleted

    def _wanted(self) -> list[tuple[Any, ...]]:
        return self.conn.execute(TOP).fetchall()

    def run(self, statement: str) -> None:
        self.conn.execute(statement)


@pytest.fixture
def shop(any_dsn: str) -> Iterator[Shop]:
    executor = Watching(any_dsn)
    with psycopg.connect(any_dsn, autocommit=True) as conn:
        conn.execute(SHOP)
        with PgTrickle(any_dsn, executor=lambda: executor, retry_attempts=1) as client:
            client.install()
            client.create_stream_table("top", TOP)
            yield Shop(any_dsn, conn, client, executor)


def test_a_change_behind_the_window_computes_nothing(shop: Shop) -> None:
    shop.run("INSERT INTO orders VALUES (101, 1, 50.5)")
    assert shop.refresh() == ("TOPK", False, 0, 0)
    shop.run("UPDATE orders SET amount = 97.99 WHERE id = 5")
    assert shop.refresh() == ("TOPK", False, 0, 0)
    shop.run("DELETE FROM orders WHERE id = 6")
    assert shop.refresh() == ("TOPK", False, 0, 0)
    assert shop.refresh() == ("NO_DATA", None, 0, 0)


def test_what_was_skipped_is_there_when_the_window_moves_on(shop: Shop) -> None:
    shop.run("UPDATE orders SET amount = 97.99 WHERE id = 5")
    assert shop.refresh() == ("TOPK", False, 0, 0)
    shop.run("DELETE FROM orders WHERE id IN (99, 98)")
    assert shop.refresh() == ("TOPK", True, 2, 2)
    assert shop.conn.execute("SELECT id FROM top ORDER BY id").fetchall() == [(5,), (97,), (100,)]


def test_a_row_that_leaves_the_window_and_one_that_ties_reach_it(shop: Shop) -> None:
    shop.run("UPDATE orders SET amount = 1 WHERE id = 100")
    assert shop.refresh() == ("TOPK", True, 1, 1)
    shop.run("UPDATE orders SET amount = 97 WHERE id = 50")
    assert shop.refresh() == ("TOPK", True, 1, 1)


def test_most_of_a_source_changed_is_computed_anew_without_asking(shop: Shop) -> None:
    shop.run("UPDATE orders SET amount = amount + 1000 WHERE id <= 50")
    assert shop.refresh() == ("TOPK", True, 3, 3)
    plan = shop.client.history("top", 1)[0]["plan"]
    assert plan is not None
    assert "rank()" not in plan


def test_a_truncated_source_is_emptied_and_refilled(shop: Shop) -> None:
    shop.run("TRUNCATE orders")
    assert shop.refresh()[0] == "FULL"
    shop.run("INSERT INTO orders VALUES (1, 1, 1)")
    assert shop.refresh() == ("TOPK", True, 1, 0)
    shop.run("INSERT INTO orders SELECT i, 1, 10 FROM generate_series(2, 99) i")
    assert shop.refresh() == ("TOPK", True, 3, 1)


def test_a_lost_buffer_is_not_reasoned_about(shop: Shop) -> None:
    shop.run("ALTER TABLE orders DISABLE TRIGGER USER")
    shop.run("DELETE FROM orders WHERE id = 100")
    assert shop.refresh()[:2] == ("FULL", True)
    shop.run("DELETE FROM orders WHERE id = 1")
    assert shop.refresh() == ("TOPK", False, 0, 0)


def test_readers_get_the_windows_true_change(shop: Shop) -> None:
    shop.client.create_stream_table("reader", "SELECT id FROM top WHERE amount > 98", **ALWAYS)
    shop.run("INSERT INTO orders VALUES (101, 1, 1)")
    assert shop.refresh() == ("TOPK", False, 0, 0)
    assert shop.client.refresh_stream_table("reader").action == "NO_DATA"
    shop.run("INSERT INTO orders VALUES (102, 1, 1000)")
    assert shop.refresh() == ("TOPK", True, 1, 1)
    assert shop.client.refresh_stream_table("reader").action == "DIFFERENTIAL"
    assert shop.conn.execute("SELECT id FROM reader ORDER BY id").fetchall() == [(99,), (100,), (102,)]


def test_a_window_over_a_stream_table_of_the_same_unit(shop: Shop) -> None:
    totals = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
    best = "SELECT customer, total FROM totals ORDER BY total DESC, customer LIMIT 2"
    shop.client.create_stream_table("totals", totals, **ALWAYS)
    shop.client.create_stream_table("best", best, **ALWAYS)
    for amount, content in ((1, [(0, 550), (9, 540)]), (1000, [(1, 1461), (0, 550)]), (-1000, [(0, 550), (9, 540)])):
        shop.run(f"UPDATE orders SET amount = amount + {amount} WHERE id = 1")
        results = shop.client.refresh(["totals", "best"])
        assert [r.action for r in results.values()] == ["DIFFERENTIAL", "TOPK"]
        assert shop.conn.execute("SELECT customer, total FROM best ORDER BY total DESC").fetchall() == content
        assert "rank()" in shop.client.history("best", 1)[0]["plan"]
