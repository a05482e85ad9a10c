"""Writers that commit late and roll back while refreshes run; then the content is the query's, to the row."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg

from tests.database.refresh.handwritten import filtered, grouped
from tests.database.refresh.workshop import Workshop

WRITERS = 8
TRANSACTIONS = 25
BIG = "SELECT id, amount FROM orders WHERE amount > 50"
TOTALS = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"


def test_eight_writers_during_refreshes_lose_nothing_and_double_nothing(any_workshop: Workshop) -> None:
    orders = any_workshop.source("orders")
    any_workshop.stream_table("big", "id int, amount numeric", filtered(orders, ("id", "amount"), "amount > 50"))
    totals = grouped(orders, "customer", "sum(amount)", "total", ("customer", "amount"))
    any_workshop.stream_table("totals", "customer int, total numeric", totals, key=["customer"])
    any_workshop.refresh("big", "totals")
    failures: list[BaseException] = []

    def write(seed: int) -> None:
        chance = random.Random(seed)
        try:
            with psycopg.connect(any_workshop.database.dsn) as conn:
                for number in range(TRANSACTIONS):
                    for _ in range(chance.randint(1, 4)):
                        _change(conn, chance, 1000 * (seed + 1) + number * 10)
                        # Transactions of different writers overlap, so many begin early and commit late.
                        conn.execute("SELECT pg_sleep(%s)", (chance.random() / 200,))
                    if chance.random() < 0.25:
                        conn.rollback()
                    else:
                        conn.commit()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(WRITERS)]
    for thread in threads:
        thread.start()
    actions = []
    while any(thread.is_alive() for thread in threads):
        # Together and apart, as plans change in life.
        for unit in (("big", "totals"), ("big",), ("totals",)):
            actions += [result.action for result in any_workshop.refresh(*unit).values()]
    for thread in threads:
        thread.join()
    assert failures == []
    any_workshop.refresh("big", "totals")
    assert any_workshop.differs("big", BIG) == []
    assert any_workshop.differs("totals", TOTALS) == []
    assert set(actions) <= {"DIFFERENTIAL", "NO_DATA"}
    assert actions.count("DIFFERENTIAL") > 3


def _change(conn: psycopg.Connection[tuple[object, ...]], chance: random.Random, first: int) -> None:
    amount, customer = chance.randint(0, 100), chance.choice([None, *range(12)])
    match chance.randint(0, 3):
        case 0 | 1:
            new = first + chance.randint(0, 9)
            conn.execute(
                "INSERT INTO orders VALUES (%s, %s, %s, NULL) ON CONFLICT (id) DO UPDATE SET amount = excluded.amount",
                (new, customer, amount),
            )
        case 2:
            # Each writer has its own rows of the first hundred, so that none waits for another.
            conn.execute(
                "UPDATE orders SET amount = %s, customer = %s WHERE id = %s",
                (amount, customer, (first // 1000 - 1) * 10 + chance.randint(1, 10)),
            )
        case 3:
            conn.execute("DELETE FROM orders WHERE id = %s", (first - 10 + chance.randint(0, 9),))


def test_an_attempt_takes_no_table_over_from_its_own_process(any_workshop: Workshop) -> None:
    """Units that are refreshed side by side share their run. One is alive, whatever a retry may take over."""
    orders = any_workshop.source("orders")
    any_workshop.stream_table("big", "id int, amount numeric", filtered(orders, ("id", "amount"), "amount > 50"))
    any_workshop.refresh("big")
    any_workshop.run("UPDATE orders SET amount = amount + 100 WHERE id < 4")
    with psycopg.connect(any_workshop.database.dsn) as blocking, ThreadPoolExecutor(1) as threads:
        blocking.execute("LOCK TABLE big IN SHARE MODE")
        first = threads.submit(any_workshop.refresh, "big", run_token="run#1")
        while not any_workshop.rows("SELECT FROM pg_locks WHERE NOT granted"):
            assert not first.done()
        (second,) = any_workshop.refresh("big", run_token="run#1").values()
        assert (second.action, second.fallback_reason) == ("SKIP", "locked")
        blocking.rollback()
        assert [result.action for result in first.result().values()] == ["DIFFERENTIAL"]
    assert any_workshop.differs("big", BIG) == []
