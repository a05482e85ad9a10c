"""Windows are exact under writers that never pause: nothing visible is left out, nothing comes twice."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import psycopg
import pytest

from tests.database.wal.conftest import QUERIES, Shop

pytestmark = pytest.mark.timeout(280)


class Writer(threading.Thread):
    """Random transactions: savepoints that are undone, rollbacks, two-phase commits, late and asynchronous commits."""

    def __init__(self, shop: Shop, seed: int, stop: threading.Event) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.shop, self.seed, self.stopped = shop, seed, stop
        self.error: BaseException | None = None
        self.transactions = 0

    def run(self) -> None:
        try:
            with psycopg.connect(self.shop.dsn) as conn:
                conn.execute(f"SET synchronous_commit = {self.random.choice(['on', 'off'])}")
                conn.commit()
                while not self.stopped.is_set():
                    self.transaction(conn)
                    self.transactions += 1
        except BaseException as error:
            self.error = error

    def transaction(self, conn: psycopg.Connection) -> None:
        for _ in range(self.random.randint(1, 4)):
            if self.random.random() < 0.2:
                with conn.transaction(force_rollback=self.random.random() < 0.5):
                    self.statement(conn)
            else:
                self.statement(conn)
        if self.random.random() < 0.3:
            # A late commit: other transactions, with higher numbers, commit in between.
            conn.execute("SELECT pg_sleep(%s)", (self.random.random() / 20,))
        ending = self.random.random()
        if ending < 0.1:
            conn.rollback()
        elif ending < 0.2:
            name = f"p{self.seed}_{self.transactions}"
            conn.execute(f"PREPARE TRANSACTION '{name}'")
            conn.rollback()
            conn.autocommit = True
            conn.execute(f"{self.random.choice(['COMMIT', 'COMMIT', 'ROLLBACK'])} PREPARED '{name}'")
            conn.autocommit = False
        else:
            conn.commit()

    def statement(self, conn: psycopg.Connection) -> None:
        # Each writer has rows of its own, so that they don't wait for each other.
        own = self.random.randint(0, 30) * 10 + self.seed
        value = self.random.randint(0, 9)
        statement = self.random.choice(
            [
                "INSERT INTO orders VALUES (%(own)s, %(value)s, %(value)s, 'n') ON CONFLICT (id) DO UPDATE"
                " SET amount = orders.amount + 1, customer = %(value)s",
                "UPDATE orders SET amount = amount + 1 WHERE id %% 10 = %(seed)s AND customer = %(value)s",
                "UPDATE orders SET customer = %(value)s, note = repeat('x', 3000) WHERE id = %(own)s",
                "DELETE FROM orders WHERE id = %(own)s",
                "UPDATE orders SET note = 'm' || %(value)s WHERE id = %(own)s",
                "UPDATE customers SET region = 'region ' || %(value)s WHERE id = %(seed)s",
                "INSERT INTO orders SELECT i * 10 + %(seed)s, i %% 10, i, NULL FROM generate_series(30, 40) AS i"
                " ON CONFLICT DO NOTHING",
                "DELETE FROM orders WHERE id >= 300 AND id %% 10 = %(seed)s",
            ]
        )
        conn.execute(statement, {"own": own, "value": value, "seed": self.seed})


def _beside_writers(shop: Shop, writers: int, work: Callable[[], None]) -> int:
    stop = threading.Event()
    threads = [Writer(shop, seed, stop) for seed in range(writers)]
    for thread in threads:
        thread.start()
    try:
        work()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    for thread in threads:
        if thread.error is not None:
            raise thread.error
    return sum(thread.transactions for thread in threads)


def test_content_is_exact_beside_writers_that_never_pause(any_shop: Shop) -> None:
    shop = any_shop
    shop.declare()
    assert set(shop.modes().values()) == {"WAL"}
    actions: list[str] = []

    def refresh() -> None:
        for turn in range(15):
            for name in QUERIES:
                actions.append(shop.pt.refresh_stream_table(name).action)
            if turn % 5 == 4:
                # What the tables hold now is the answer at their frontier, whatever was written since.
                found = shop.pt.verify(refresh=False)
                assert found.differences == 0, found
                assert not found.skipped, found.skipped

    assert _beside_writers(shop, 4, refresh) > 50
    assert set(actions) <= {"DIFFERENTIAL", "NO_DATA"}
    for name in QUERIES:
        shop.pt.refresh_stream_table(name)
        assert shop.differences(name) == []
    assert shop.rows("SELECT count(*) FROM pgtrickle.pgt_refresh_history WHERE status = 'FAILED'") == [(0,)]
