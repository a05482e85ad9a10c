"""Units that don't read each other are refreshed side by side: in their order, no more than allowed, to the row."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph
from airflow_provider_pgtrickle.operators.side_by_side import side_by_side

#: Tables of one graph; each reads a source, or one or two of the tables before it.
_TABLES = 9


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], dict[str, set[str]]]:
    order = [f"u{number}" for number in range(draw(st.integers(0, 12)))]
    return order, {piece: draw(st.sets(st.sampled_from(order), max_size=3)) for piece in order}


@given(graphs(), st.integers(1, 5), st.sets(st.integers(0, 11), max_size=2))
def test_each_piece_follows_what_it_reads(
    graph: tuple[list[str], dict[str, set[str]]], most: int, broken: set[int]
) -> None:
    """Also where a piece reads a later one, as views can make it: then the given order counts."""
    order, reads = graph
    lock, running, ended, begun = threading.Lock(), set[str](), list[str](), list[str]()

    def work(piece: str) -> None:
        with lock:
            earlier = order[: order.index(piece)]
            assert reads[piece].intersection(earlier) <= set(ended)
            running.add(piece)
            begun.append(piece)
            assert len(running) <= most
        with lock:
            running.discard(piece)
            if order.index(piece) in broken:
                raise ValueError(piece)
            ended.append(piece)

    def interrupted() -> None:
        raise AssertionError("nobody interrupted it")

    fails = any(number < len(order) for number in broken)
    if fails:
        with pytest.raises(ValueError, match="u"):
            side_by_side(order, reads, most, work, interrupted)
    else:
        side_by_side(order, reads, most, work, interrupted)
        assert sorted(ended) == sorted(order)
    assert len(set(begun)) == len(begun)
    assert not running
    if most == 1:
        assert begun == [piece for piece in order if piece in begun]


def test_an_interruption_ends_what_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, let_go = threading.Barrier(3), threading.Event()
    begun_pieces: list[str] = []

    def work(piece: str) -> None:
        begun_pieces.append(piece)
        begun.wait(30)
        assert let_go.wait(30)

    def interrupt(*_: Any, **__: Any) -> Any:
        begun.wait(30)
        raise KeyboardInterrupt

    monkeypatch.setattr("airflow_provider_pgtrickle.operators.side_by_side.wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        side_by_side(["a", "b", "c"], {"a": [], "b": [], "c": []}, 2, work, let_go.set)
    assert sorted(begun_pieces) == ["a", "b"]


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGTRICKLE_PARALLEL_REFRESHES", "4")


def _dag(connection: str, tables: dict[str, str]) -> Any:
    declared = [StreamTable(name, query, differential_max_change_ratio=0.0) for name, query in tables.items()]
    (dag,) = StreamTableGraph("g", declared, connection, granularity="graph", placement="database").dags()
    return dag


def _differences(conn: psycopg.Connection, name: str, query: str) -> int:
    columns = ", ".join(
        column
        for (column,) in conn.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
            " AND attname !~ '^__pgt' ORDER BY attnum",
            (name,),
        )
    )
    row = conn.execute(
        f"SELECT count(*) FROM ((SELECT {columns} FROM {name} EXCEPT ALL ({query}))"
        f" UNION ALL (({query}) EXCEPT ALL SELECT {columns} FROM {name})) AS d"
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_one_that_waits_holds_back_its_readers_alone(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], dsn: str, four: None
) -> None:
    tables = {
        "slow": "SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id",
        "reader": "SELECT n, count(*) AS m FROM slow GROUP BY n",
        "quick": "SELECT id, amount FROM orders WHERE amount > 3",
        "regions": "SELECT region, count(*) AS n FROM customers GROUP BY region",
    }
    dag = _dag(shop_connection, tables)
    execute(dag.get_task("plan"))
    execute(dag.get_task("refresh"), "r1")
    shop.execute("UPDATE orders SET customer_id = 2, amount = amount + 1 WHERE id < 7")
    shop.execute("UPDATE customers SET region = 'west' WHERE id < 3")

    def done() -> set[str]:
        rows = shop.execute(
            "SELECT t.pgt_name FROM pgtrickle.pgt_refresh_history h JOIN pgtrickle.pgt_stream_tables t USING (pgt_id)"
            " WHERE action = 'DIFFERENTIAL'"
        )
        return {name for (name,) in rows}

    with psycopg.connect(dsn) as blocking, ThreadPoolExecutor(1) as threads:
        blocking.execute("LOCK TABLE slow IN SHARE MODE")
        run = threads.submit(execute, dag.get_task("refresh"), "r2")
        while done() < {"quick", "regions"}:
            assert not run.done()
        assert done() == {"quick", "regions"}
        blocking.rollback()
        assert "error" not in str(run.result().value)
    assert done() == set(tables)
    assert [_differences(shop, name, query) for name, query in tables.items()] == [0] * 4


@pytest.mark.parametrize("seed", range(2))
def test_a_graph_of_random_tables_is_exact_while_others_write(
    seed: int, shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], dsn: str, four: None
) -> None:
    chance = random.Random(seed)
    tables = dict(_random_tables(chance))
    dag = _dag(shop_connection, tables)
    execute(dag.get_task("plan"))
    ended, wrote = threading.Event(), threading.Semaphore(0)

    def write(number: int) -> None:
        mine = random.Random(seed * 100 + number)
        with psycopg.connect(dsn, autocommit=True) as conn:
            while not ended.is_set():
                _change(conn, mine)
                wrote.release()

    with ThreadPoolExecutor(2) as writers:
        written = [writers.submit(write, number) for number in range(2)]
        try:
            for cycle in range(4):
                assert all(wrote.acquire(timeout=60) for _ in range(6))
                run = execute(dag.get_task("refresh"), f"r{cycle}")
                assert "error" not in str(run.value)
        finally:
            ended.set()
        assert [one.result() for one in written] == [None, None]
    execute(dag.get_task("refresh"), "last")
    assert {name: _differences(shop, name, query) for name, query in tables.items()} == dict.fromkeys(tables, 0)
    actions = shop.execute(
        "SELECT action, fallback_reason, count(*) FROM pgtrickle.pgt_refresh_history h"
        " WHERE run_token <> (SELECT run_token FROM pgtrickle.pgt_refresh_history ORDER BY refresh_id LIMIT 1)"
        " GROUP BY 1, 2"
    ).fetchall()
    assert {action for action, _, _ in actions} <= {"DIFFERENTIAL", "NO_DATA"}, actions
    assert "DIFFERENTIAL" in {action for action, _, _ in actions}
    overlapping = shop.execute(
        "SELECT count(*) FROM pgtrickle.pgt_refresh_history a JOIN pgtrickle.pgt_refresh_history b"
        " ON a.refresh_id < b.refresh_id AND b.start_time < a.end_time"
        " WHERE a.action = 'DIFFERENTIAL' AND b.action = 'DIFFERENTIAL'"
    ).fetchone()
    assert overlapping is not None
    assert overlapping[0] > 0


def _random_tables(chance: random.Random) -> Iterator[tuple[str, str]]:
    """Chains, diamonds and tables by themselves; all have the columns k and v."""
    sources = [
        "(SELECT customer_id AS k, id AS v FROM orders) AS {a}",
        "(SELECT id AS k, length(name) AS v FROM customers) AS {a}",
    ]
    for number in range(_TABLES):
        known = [*sources, *([f"t{earlier} AS {{a}}" for earlier in range(number)] * 2)]
        one, two = (chance.choice(known).format(a=alias) for alias in "ab")
        yield (
            f"t{number}",
            chance.choice(
                [
                    f"SELECT a.k, a.v + 1 AS v FROM {one} WHERE a.v % 3 <> 1",
                    f"SELECT a.k, count(*)::int AS v FROM {one} GROUP BY a.k",
                    f"SELECT a.k % 5 AS k, max(a.v) AS v FROM {one} GROUP BY a.k % 5",
                    f"SELECT DISTINCT a.k, b.v FROM {one} JOIN {two} ON b.k = a.k",
                    f"SELECT a.k, a.v FROM {one} WHERE NOT EXISTS (SELECT FROM {two} WHERE b.k = a.k AND b.v < 4)",
                ]
            ),
        )


def _change(conn: psycopg.Connection, chance: random.Random) -> None:
    number = chance.randint(1, 60)
    conn.execute(
        chance.choice(
            [
                "UPDATE orders SET customer_id = 1 + (customer_id + 3) %% 10 WHERE id = %s",
                "DELETE FROM orders WHERE id = %s",
                "INSERT INTO orders VALUES (%s, 3, 'open', 5) ON CONFLICT (id) DO UPDATE SET customer_id = 4",
                # Names go on changing: a graph may read nothing else.
                "UPDATE customers SET name = CASE WHEN length(name) < 9 THEN name || 'x' ELSE left(name, 1) END"
                " WHERE id = %s %% 10",
            ]
        ),
        (number,),
    )
