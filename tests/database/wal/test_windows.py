"""Windows are exact under writers that never pause: nothing visible is left out, nothing comes twice."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.capture import pump as pumping
from airflow_provider_pgtrickle.engine.refresh import decoded
from tests.database.wal.conftest import QUERIES, Shop

pytestmark = pytest.mark.timeout(120)


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
    names = ("totals", "regions")
    shop.declare(*names)
    assert set(shop.modes().values()) == {"WAL"}
    actions: list[str] = []

    def refresh() -> None:
        for turn in range(9):
            for name in names:
                actions.append(shop.pt.refresh_stream_table(name).action)
            if turn % 3 == 2:
                # What the tables hold now is the answer at their frontier, whatever was written since.
                found = shop.pt.verify(refresh=False)
                assert found.differences == 0, found
                assert not found.skipped, found.skipped

    assert _beside_writers(shop, 3, refresh) > 20
    assert set(actions) <= {"DIFFERENTIAL", "NO_DATA"}
    for name in names:
        shop.pt.refresh_stream_table(name)
        assert shop.differences(name) == []
    assert shop.rows("SELECT count(*) FROM pgtrickle.pgt_refresh_history WHERE status = 'FAILED'") == [(0,)]


def test_several_units_share_a_slot_beside_writers(shop: Shop) -> None:
    shop.declare()
    failures: list[BaseException] = []

    def refresh(name: str) -> None:
        client = shop.client()
        try:
            for _ in range(8):
                client.refresh_stream_table(name)
        except BaseException as error:
            failures.append(error)
        finally:
            client.close()

    def all_at_once() -> None:
        threads = [threading.Thread(target=refresh, args=(name,)) for name in QUERIES]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    _beside_writers(shop, 2, all_at_once)
    assert failures == []
    for name in QUERIES:
        assert shop.pt.refresh_stream_table(name).action in ("DIFFERENTIAL", "NO_DATA")
        assert shop.differences(name) == []


def test_what_commits_between_pump_and_snapshot_is_in_the_window_once(
    any_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = any_shop
    shop.declare()
    changed = iter(range(1000, 2000))
    pumped: list[int] = []

    def pump_and_write(*arguments: object) -> pumping.Pumped:
        found = pumping.pump(*arguments)  # type: ignore[arg-type]
        number = next(changed)
        # Texts of every awkward kind travel as literals now.
        shop.conn.execute(
            "INSERT INTO orders VALUES (%s, 3, 1.50, %s), (%s, 4, NULL, NULL)",
            (number, 'a\t"b"\\n{c},(d)\'e\n', number + 5000),
        )
        shop.conn.execute("UPDATE orders SET amount = amount + 1, note = '' WHERE id = 50")
        shop.conn.execute("DELETE FROM orders WHERE id = %s", (number - 999,))
        pumped.append(number)
        return found

    monkeypatch.setattr(decoded, "pump", pump_and_write)
    for _ in range(3):
        for name in QUERIES:
            assert shop.pt.refresh_stream_table(name).action == "DIFFERENTIAL"
            # Nothing was written since the snapshot, so the content is the answer of now.
            assert shop.differences(name) == []
    assert len(pumped) == 9
    monkeypatch.undo()
    for name in QUERIES:
        shop.pt.refresh_stream_table(name)
        assert shop.differences(name) == []
    assert shop.pt.verify(refresh=False).differences == 0


def test_much_that_commits_between_pump_and_snapshot_is_pumped_too(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.declare("totals")
    pumps: list[int] = []

    def pump_and_write(*arguments: object) -> pumping.Pumped:
        found = pumping.pump(*arguments)  # type: ignore[arg-type]
        pumps.append(found.rows)
        shop.conn.execute("UPDATE orders SET amount = amount + 1")
        shop.conn.execute(
            "INSERT INTO orders SELECT %s + i, i %% 10, i FROM generate_series(1, 1001) AS i", (len(pumps) * 10_000,)
        )
        return found

    monkeypatch.setattr(decoded, "pump", pump_and_write)
    result = shop.pt.refresh_stream_table("totals")
    # It ends although the writer never does: the last time the rows are literals, however many.
    assert len(pumps) == 4
    assert pumps[0] == 0
    assert all(rows > 1000 for rows in pumps[1:])
    assert result.action == "DIFFERENTIAL"
    assert shop.differences("totals") == []


def test_a_pump_of_another_session_between_snapshot_and_reading_is_noticed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock by which sessions take turns may be held by anybody, so nothing depends on it."""
    shop.declare("totals")
    other = shop.client()
    reads: list[object] = []

    def read(*arguments: object) -> object:
        if not reads:
            # More than is worth advancing the slot for.
            shop.conn.execute(
                "UPDATE orders SET note = (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 2000) AS i)"
            )
            with other.database.connect(autocommit=True) as conn:
                state = pumping.wal.state(conn)
                assert state is not None
                pumping.pump(conn, state)
        reads.append(pumping.beyond(*arguments))  # type: ignore[arg-type]
        return reads[-1]

    def write_and_pump(*arguments: object) -> pumping.Pumped:
        found = pumping.pump(*arguments)  # type: ignore[arg-type]
        shop.conn.execute("UPDATE orders SET amount = amount + 1")
        return found

    monkeypatch.setattr(decoded, "pump", write_and_pump)
    monkeypatch.setattr(decoded, "beyond", read)
    shop.pt.refresh_stream_table("totals")
    other.close()
    assert reads[0] is None
    assert reads[-1] is not None
    assert shop.differences("totals") == []


def test_the_ways_over_and_back_beside_writers_lose_nothing(any_shop: Shop) -> None:
    shop = any_shop
    names = ("totals", "regions")
    shop.declare(*names, cdc_mode="trigger")
    actions: list[str] = []
    modes: set[str] = set()

    def change_ways() -> None:
        for wish in ("wal", "trigger", "wal", "trigger", "wal"):
            for name in names:
                shop.pt.alter_stream_table(name, cdc_mode=wish)
            for _ in range(3):
                actions.extend(shop.pt.refresh_stream_table(name).action for name in names)
                modes.update(shop.modes().values())
            found = shop.pt.verify(refresh=False)
            assert found.differences == 0, found

    _beside_writers(shop, 3, change_ways)
    assert modes == {"TRIGGER", "WAL"}
    assert set(actions) <= {"DIFFERENTIAL", "NO_DATA"}
    for name in names:
        shop.pt.refresh_stream_table(name)
        assert shop.differences(name) == []
