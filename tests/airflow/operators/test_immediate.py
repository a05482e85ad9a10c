"""IMMEDIATE tables in a graph's DAG: it declares and fills them, and then leaves them to their sources' writers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph
from airflow_provider_pgtrickle.backends import selection
from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests.airflow.operators.test_refresh_graph import PostgresBackend

TOTALS = "SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id"
BIG = "SELECT customer_id, total FROM totals WHERE total > 400"
REGIONS = "SELECT region, count(*) AS n FROM customers GROUP BY region"
BOTH = "SELECT b.total, r.n FROM big b JOIN customers c ON c.id = b.customer_id JOIN regions r USING (region)"
REASON = "maintained by its sources' writers"


def declared(**more: Any) -> list[StreamTable]:
    options = {"refresh_mode": "DIFFERENTIAL", "differential_max_change_ratio": 0.0, **more}
    return [
        StreamTable("totals", TOTALS, refresh_mode="IMMEDIATE"),
        StreamTable("big", BIG, **options),
        StreamTable("regions", REGIONS, **options),
        # It makes one DAG of all.
        StreamTable("all_of_them", BOTH, **options),
    ]


@dataclass
class Dag:
    """A graph's DAG, whose tasks are executed in their order, as each run's scheduler would."""

    made: Any
    execute: Callable[..., Any]
    shop: psycopg.Connection
    runs: int = 0

    def run(self, run_type: str = "manual") -> dict[str, Any]:
        """By task id: how each task that wasn't skipped by another one ended."""
        self.runs += 1
        done: dict[str, Any] = {}
        skipped: set[str] = set()
        for task in self.made.topological_sort():
            if task.task_id in skipped or task.task_id == "outcomes" or task.task_type == "StreamTableStateOperator":
                continue
            done[task.task_id] = self.execute(task, f"r{self.runs}", run_type)
            skipped |= set(done[task.task_id].skipped)
        for table in self.made.get_task("plan").tables:
            assert differences(self.shop, table) == [], table.name
        return done

    def live(self) -> list[str]:
        rows = self.shop.execute("SELECT pgt_name FROM pgtrickle.stream_tables_info WHERE is_live ORDER BY 1")
        return [name for (name,) in rows.fetchall()]

    def history(self) -> list[tuple[str, str]]:
        """Table and action of each refresh in the history, oldest first."""
        rows = self.shop.execute(
            "SELECT pgt_name, action FROM pgtrickle.pgt_refresh_history JOIN pgtrickle.pgt_stream_tables USING (pgt_id)"
            " ORDER BY refresh_id"
        ).fetchall()
        return [(name, action) for name, action in rows]


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> PostgresBackend:
    made = PostgresBackend()
    monkeypatch.setattr(selection, "backend_for", lambda *_: made)
    return made


@pytest.fixture
def dag_of(
    backend: PostgresBackend, shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any]
) -> Callable[..., Dag]:
    def made(tables: list[StreamTable], **options: Any) -> Dag:
        (dag,) = StreamTableGraph("g", tables, shop_connection, **options).dags()
        return Dag(dag, execute, shop)

    return made


def differences(shop: psycopg.Connection, table: StreamTable) -> list[tuple[Any, ...]]:
    """What tells the stream table from its query, both ways."""
    columns = ", ".join(
        name
        for (name,) in shop.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
            " AND NOT starts_with(attname, '__pgt_') ORDER BY attnum",
            [table.name],
        ).fetchall()
    )
    return shop.execute(
        f"(SELECT {columns} FROM {table.name} EXCEPT ALL ({table.query})) UNION ALL "
        f"(({table.query}) EXCEPT ALL SELECT {columns} FROM {table.name})"
    ).fetchall()


def torn(shop: psycopg.Connection) -> None:
    """Write what no trigger sees."""
    shop.execute("ALTER TABLE orders DISABLE TRIGGER USER")
    shop.execute("UPDATE orders SET amount = amount + 7 WHERE customer_id = 2")
    shop.execute("ALTER TABLE orders ENABLE TRIGGER USER")


@pytest.mark.parametrize("granularity", ["unit", "graph"])
def test_it_is_filled_once_and_then_left_to_its_writers(granularity: str, dag_of: Callable[..., Dag]) -> None:
    dag = dag_of(declared(), granularity=granularity)
    dag.run()
    assert dag.live() == ["totals"]
    before = len(dag.history())
    dag.shop.execute("UPDATE orders SET amount = amount + 100 WHERE customer_id IN (1, 3)")
    dag.shop.execute("DELETE FROM orders WHERE customer_id = 4")
    done = dag.run()
    if granularity == "unit":
        assert sorted(done["plan"].skipped) == ["regions", "totals"]
        assert done["plan"].value["skipped"] == {REASON: 1, "no change": 1}
        assert done["big"].value["public.big"]["action"] == "DIFFERENTIAL"
    else:
        assert sorted(done["refresh"].skipped) == ["regions", "totals"]
    told = dict(dag.history()[before:])
    assert told == {"big": "DIFFERENTIAL", "regions": "NO_DATA", "all_of_them": "DIFFERENTIAL"}
    # A run without a change leaves no trace of it either.
    dag.run()
    assert [action for name, action in dag.history() if name == "totals"] == ["FULL", "NO_DATA"]


@pytest.mark.parametrize("granularity", ["unit", "graph"])
def test_what_writers_may_have_missed_is_computed_anew(granularity: str, dag_of: Callable[..., Dag]) -> None:
    dag = dag_of(declared(), granularity=granularity)
    dag.run()
    before = len(dag.history())
    torn(dag.shop)
    dag.run()
    assert dag.live() == ["totals"]
    assert ("totals", "FULL") in dag.history()[before:]
    dag.shop.execute("UPDATE orders SET amount = amount + 1 WHERE customer_id = 2")
    dag.run()
    assert [action for name, action in dag.history() if name == "totals"].count("FULL") == 2


@pytest.mark.parametrize("granularity", ["unit", "graph"])
def test_a_chain_is_declared_and_filled_in_the_first_run(granularity: str, dag_of: Callable[..., Dag]) -> None:
    above = "SELECT count(*) AS n, sum(total) AS total FROM totals"
    chain = [StreamTable("above", above, refresh_mode="IMMEDIATE"), declared()[0]]
    dag = dag_of(chain, granularity=granularity)
    dag.run()
    assert dag.live() == ["above", "totals"]
    dag.shop.execute("INSERT INTO orders VALUES (1000, 77, 'open', 5)")
    before = len(dag.history())
    dag.run()
    assert dag.history()[before:] == []
    torn(dag.shop)
    dag.run()
    assert dag.live() == ["above", "totals"]


@pytest.mark.parametrize("granularity", ["unit", "graph"])
def test_in_a_diamond_the_others_are_refreshed(granularity: str, dag_of: Callable[..., Dag]) -> None:
    options: dict[str, Any] = {"differential_max_change_ratio": 0.0}
    tables = [
        StreamTable("totals", TOTALS, refresh_mode="IMMEDIATE"),
        StreamTable("big", BIG, refresh_mode="IMMEDIATE"),
        StreamTable("small", "SELECT customer_id, total FROM totals WHERE total < 550", **options),
        StreamTable("middle", "SELECT customer_id, b.total FROM big b JOIN small s USING (customer_id)", **options),
    ]
    dag = dag_of(tables, granularity=granularity)
    unit = "big__small__middle"
    assert unit in dag.made.task_dict
    dag.run()
    assert dag.live() == ["big", "totals"]
    before = len(dag.history())
    dag.shop.execute("UPDATE orders SET amount = amount + 1 WHERE customer_id IN (1, 9)")
    done = dag.run()
    assert sorted(dag.history()[before:]) == [("middle", "DIFFERENTIAL"), ("small", "DIFFERENTIAL")]
    if granularity == "unit":
        assert sorted(done[unit].value) == ["public.middle", "public.small"]
    torn(dag.shop)
    dag.run()
    assert dag.live() == ["big", "totals"]


@pytest.mark.parametrize("granularity", ["unit", "graph"])
def test_plan_tells_of_what_writers_have_changed(granularity: str, dag_of: Callable[..., Dag]) -> None:
    dag = dag_of(declared(), granularity=granularity)
    dag.run()
    uri = "pgtrickle://shop_pg/public/totals"
    assert dag.run()["plan"].events == {}
    with psycopg.connect(dag.shop.info.dsn, password=dag.shop.info.password, autocommit=True) as writer:
        writer.execute("UPDATE orders SET amount = amount + 1 WHERE customer_id IN (1, 2)")
        writer.execute("INSERT INTO orders VALUES (1000, 77, 'open', 5)")
        # What is no change of the content is none of its rows.
        writer.execute("UPDATE orders SET status = 'seen'")
    told = dag.run()["plan"].events
    assert list(told) == [uri]
    assert (told[uri]["action"], told[uri]["rows"]) == ("IMMEDIATE", {"inserted": 1, "updated": 2, "deleted": 0})
    assert dag.run()["plan"].events == {}


@pytest.mark.parametrize("granularity", ["unit", "graph"])
def test_over_a_table_that_its_task_refreshes(granularity: str, dag_of: Callable[..., Dag]) -> None:
    options: dict[str, Any] = {"differential_max_change_ratio": 0.0}
    tables = [
        StreamTable("totals", TOTALS, **options),
        StreamTable("big", BIG, refresh_mode="IMMEDIATE"),
        StreamTable("top", "SELECT count(*) AS n FROM big", **options),
    ]
    dag = dag_of(tables, granularity=granularity)
    # The task of `big` is skipped: `top` waits for that of `totals`.
    assert {task.task_id for task in dag.made.get_task("top").upstream_list} >= {"totals"}
    dag.run()
    assert dag.live() == ["big"]
    before = len(dag.history())
    dag.shop.execute("UPDATE orders SET amount = amount + 500 WHERE customer_id IN (1, 9)")
    done = dag.run()
    assert dag.history()[before:] == [("totals", "DIFFERENTIAL"), ("top", "DIFFERENTIAL")]
    assert "big" in done["plan" if granularity == "unit" else "refresh"].skipped


def test_a_live_member_makes_no_unit_due(dag_of: Callable[..., Dag]) -> None:
    options: dict[str, Any] = {"schedule": "1d"}
    tables = [
        StreamTable("totals", TOTALS, refresh_mode="IMMEDIATE"),
        StreamTable("big", BIG, refresh_mode="IMMEDIATE"),
        StreamTable("small", "SELECT customer_id, total FROM totals WHERE total < 550", **options),
        StreamTable("middle", "SELECT customer_id, b.total FROM big b JOIN small s USING (customer_id)", **options),
    ]
    dag = dag_of(tables)
    dag.run()
    dag.shop.execute("UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = '2000-01-01' WHERE is_live")
    dag.shop.execute("UPDATE orders SET amount = amount + 1 WHERE customer_id = 1")
    plan = dag.execute(dag.made.get_task("plan"), "r", "scheduled")
    assert plan.value["skipped"] == {REASON: 1, "not due": 1}
    # Who isn't maintained by writers now doesn't wait for a schedule.
    torn(dag.shop)
    plan = dag.execute(dag.made.get_task("plan"), "r", "scheduled")
    assert plan.skipped == []


def test_a_unit_that_fails_beside_it_does_not_keep_it_from_its_writers(dag_of: Callable[..., Dag]) -> None:
    tables = [
        StreamTable("totals", TOTALS, refresh_mode="IMMEDIATE"),
        StreamTable("broken", "SELECT customer_id, 1 / (total - 460) AS x FROM totals"),
    ]
    dag = dag_of(tables, granularity="graph")
    for task in ("plan", "refresh"):
        dag.execute(dag.made.get_task(task), "r1")
    assert dag.live() == ["totals"]


def test_its_task_run_by_hand_notices_what_writers_may_have_missed(dag_of: Callable[..., Dag]) -> None:
    dag = dag_of(declared())
    dag.run()
    torn(dag.shop)
    done = dag.execute(dag.made.get_task("totals"), "by hand")
    assert done.value["public.totals"]["action"] == "FULL"
    assert list(done.events) == ["pgtrickle://shop_pg/public/totals"]
    assert dag.live() == ["totals"]
    dag.run()


def test_what_is_declared_beside_it_leaves_it_live(
    dag_of: Callable[..., Dag], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    dag_of(declared()).run()
    more = StreamTable("open_ones", "SELECT o.status, t.total FROM orders o JOIN totals t USING (customer_id)")
    dag = dag_of([*declared(), more])
    dag.run()
    dag.shop.execute("UPDATE orders SET status = 'done', amount = 0 WHERE id = 5")
    dag.run()
    assert "computed anew" not in caplog.text + capsys.readouterr().out
    assert [action for name, action in dag.history() if name == "totals"].count("FULL") == 1


@pytest.mark.parametrize("mode", ["AUTO", "DIFFERENTIAL"])
def test_from_another_mode_and_back_by_the_declaration(
    mode: str, dag_of: Callable[..., Dag], shop: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, dsn: str
) -> None:
    # What `plan` has to compute for an altered declaration.
    monkeypatch.setattr(PgTrickle, "_executor", property(lambda client: PostgresExecutor(client.database)))
    other = [replace(declared()[0], refresh_mode=mode, schedule="5m"), *declared()[1:]]
    for tables, live in ((other, []), (declared(), ["totals"]), (other, []), (declared(), ["totals"])):
        dag = dag_of(tables)
        dag.run()
        assert dag.live() == live
        shop.execute("UPDATE orders SET amount = amount + 3 WHERE customer_id < 4")
        dag.run()
        assert dag.live() == live


def test_in_full_it_is_computed_anew_though_it_is_live(dag_of: Callable[..., Dag]) -> None:
    dag = dag_of(declared()[:1])
    dag.run()
    with dag.shop.transaction():
        dag.shop.execute("SET LOCAL pgtrickle.refreshing = 'on'")
        dag.shop.execute("UPDATE totals SET total = 0 WHERE customer_id = 3")
    task = dag.made.get_task("totals")
    by_hand = dag.execute(task, "by hand")
    assert (by_hand.state, by_hand.reason) == (
        "skipped",
        "maintained_by_writers",
    )
    task.force_full = True
    done = dag.execute(task, "in full")
    assert (done.value["public.totals"]["action"], done.value["public.totals"]["rows_updated"]) == ("FULL", 1)
    assert dag.live() == ["totals"]
    dag.run()


@pytest.mark.parametrize("granularity", ["unit", "graph"])
def test_a_name_that_needs_quotes(granularity: str, dag_of: Callable[..., Dag]) -> None:
    dag = dag_of([StreamTable('"My totals"', TOTALS, refresh_mode="IMMEDIATE")], granularity=granularity)
    for _ in range(2):
        dag.run()
        assert dag.live() == ["My totals"]
        torn(dag.shop)
    dag.run()
