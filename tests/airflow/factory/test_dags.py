"""The DAGs of a graph: their shape, their ids, and that they are the same at each parse."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.models.taskinstance import TaskInstance
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, CronTriggerTimetable, DeltaTriggerTimetable, MultipleCronTriggerTimetable
from airflow.sdk.definitions.mappedoperator import MappedOperator
from airflow.serialization.serialized_objects import DagSerialization

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph, StreamTableGroup, Unit
from airflow_provider_pgtrickle.engine.errors import CycleDetected, UsageError
from airflow_provider_pgtrickle.operators import StreamTableGraphRefreshOperator, StreamTablePlanOperator

SHOP = Path(__file__).parents[3] / "dags" / "shop.py"


def table(name: str, *sources: str, **options: Any) -> StreamTable:
    return StreamTable(name, f"SELECT * FROM {', '.join(sources)}", **options)


def dags(*tables: StreamTable | Unit, **options: Any) -> dict[str, DAG]:
    return {dag.dag_id: dag for dag in StreamTableGraph("shop", tables, **options).dags()}


def edges(dag: DAG) -> dict[str, list[str]]:
    return {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks}


def test_a_chain_is_one_task_after_the_other() -> None:
    (dag,) = dags(table("b", "a"), table("a", "orders")).values()
    assert dag.dag_id == "shop"
    assert edges(dag) == {"plan": [], "a": ["plan"], "b": ["a"]}


def test_what_is_added_changes_neither_the_id_of_the_dag_nor_those_of_its_tasks() -> None:
    tables = [table("b", "a"), table("a", "orders"), table("z", "items"), table("r", "z", "b"), table("0", "sums")]
    before: dict[str, list[str]] = {}
    for count in range(1, len(tables) + 1):
        (dag,) = dags(*tables[:count]).values()
        assert dag.dag_id == "shop"
        assert before.keys() <= set(edges(dag))
        before = edges(dag)


def test_a_graph_that_is_split_is_a_dag_for_each_component_named_by_the_table_that_reads_no_other() -> None:
    made = dags(table("b", "a"), table("a", "orders"), table("z", "orders"), split=True)
    assert sorted(made) == ["shop__a", "shop__z"]
    assert edges(made["shop__z"]) == {"plan": [], "z": ["plan"]}
    assert list(dags(table("a", "orders"), split=True)) == ["shop__a"]


def test_a_table_that_would_make_the_id_of_a_component_doubtful_is_refused_until_somebody_names_it() -> None:
    parts = [table("m", "orders"), table("n", "m"), table("a", "items")]
    assert sorted(dags(*parts, split=True)) == ["shop__a", "shop__m"]
    joined = [*parts, table("both", "a", "n")]
    with pytest.raises(UsageError, match=r'a and m of graph .shop. are connected.* component="…"'):
        dags(*joined, split=True)
    named = [table("m", "orders", component="m"), *joined[1:]]
    assert list(dags(*named, split=True)) == ["shop__m"]
    assert list(dags(*reversed(named), split=True)) == ["shop__m"]
    with pytest.raises(UsageError, match=r"components left and right of graph 'shop' are connected"):
        dags(table("a", "o", component="left"), table("b", "a", component="right"), split=True)
    with pytest.raises(UsageError, match=r"Two components of graph 'shop' would be the DAG shop__a"):
        dags(table("a", "o"), table("b", "o", component="a"), split=True)


def test_a_diamond_is_one_task() -> None:
    (dag,) = dags(table("t", "o"), table("x", "t"), table("y", "t"), table("r", "x", "y"), table("e", "r")).values()
    assert edges(dag) == {"plan": [], "t": ["plan"], "x__y__r": ["t"], "e": ["x__y__r"]}
    assert dag.get_task("x__y__r").task_display_name == "x, y, r"


def test_a_declared_unit_is_one_task_of_its_name_whatever_joins_it() -> None:
    a, b, c = table("a", "orders"), table("b", "items"), table("c", "b")
    (dag,) = dags(Unit("ledger", [a, b]), c).values()
    assert edges(dag) == {"plan": [], "ledger": ["plan"], "c": ["ledger"]}
    assert [t.options["unit"] for t in (a, b, c)] == ["ledger", "ledger", None]
    (dag,) = dags(Unit("ledger", [table("a", "orders"), table("b", "items"), table("c", "b")])).values()
    assert edges(dag) == {"plan": [], "ledger": ["plan"]}
    (dag,) = dags(table("a", "orders", unit="ledger"), table("b", "items", unit="ledger"), split=False).values()
    assert edges(dag) == {"plan": [], "ledger": ["plan"]}


def test_a_unit_of_unconnected_tables_is_one_dag_of_a_graph_that_is_split() -> None:
    made = dags(table("z", "orders"), Unit("ledger", [table("a", "x", component="a"), table("b", "y")]), split=True)
    assert sorted(made) == ["shop__a", "shop__z"]
    assert edges(made["shop__a"]) == {"plan": [], "ledger": ["plan"]}


def test_a_table_of_a_unit_keeps_the_asset_that_others_follow() -> None:
    a, b = table("a", "orders"), table("b", "items")
    StreamTableGraph("shop", [Unit("ledger", [a, b])], "shop_pg").dags()
    assert a.asset.uri == "pgtrickle://shop_pg/public/a"


def test_a_unit_that_cannot_be_is_an_error_of_the_file() -> None:
    with pytest.raises(UsageError, match=r"a: It is in unit 'one', and can't be in 'two', too"):
        Unit("two", [table("a", "orders", unit="one")])
    with pytest.raises(UsageError, match=r"a: .*IMMEDIATE can't be in unit 'ledger'"):
        Unit("ledger", [table("a", "orders", refresh_mode="IMMEDIATE")])
    with pytest.raises(UsageError, match="would both be called c"):
        dags(Unit("c", [table("a", "orders"), table("b", "items")]), table("c", "b"))
    with pytest.raises(UsageError, match="can't be called 'plan'"):
        dags(Unit("plan", [table("a", "orders"), table("b", "items")]))


def test_names_that_airflow_does_not_allow_are_told_apart() -> None:
    ids = edges(
        *dags(table('"my table"', "o"), table('"my_table"', "o", '"my table"', diamond_consistency="none")).values()
    )
    assert len(ids) == 3
    assert "my_table" in ids


def test_a_table_called_plan_leaves_the_plan_its_name() -> None:
    (dag,) = dags(table("plan", "orders")).values()
    assert edges(dag) == {"plan": [], "public.plan": ["plan"]}


def test_every_table_of_another_schema_carries_it() -> None:
    (dag,) = dags(table("sales.totals", "orders")).values()
    assert "sales.totals" in edges(dag)


@pytest.mark.parametrize(
    ("schedules", "expected"),
    [
        (["5m", "1h"], CronTriggerTimetable("*/5 * * * *", timezone="UTC")),
        ([None, None], CronTriggerTimetable("* * * * *", timezone="UTC")),
        (["7m", None], DeltaTriggerTimetable.__name__),
        (["1h", "30 9 * * *"], MultipleCronTriggerTimetable("0 * * * *", "30 9 * * *", timezone="UTC")),
        (["7m", "30 9 * * *"], MultipleCronTriggerTimetable("*/6 * * * *", "30 9 * * *", timezone="UTC")),
        (["@daily", "@daily"], CronTriggerTimetable("0 0 * * *", timezone="UTC")),
    ],
)
def test_a_dag_ticks_often_enough_for_each_of_its_tables(schedules: list[str | None], expected: Any) -> None:
    (dag,) = dags(table("a", "orders", schedule=schedules[0]), table("b", "a", schedule=schedules[1])).values()
    if isinstance(expected, str):
        assert type(dag.timetable).__name__ == expected
    else:
        assert repr(dag.timetable) == repr(expected)


def test_a_table_that_writers_maintain_has_no_clock() -> None:
    (alone,) = dags(table("a", "orders", refresh_mode="immediate"), table("b", "a", refresh_mode="IMMEDIATE")).values()
    assert repr(alone.timetable) == repr(CronTriggerTimetable("*/5 * * * *", timezone="UTC"))
    live = table("a", "orders", refresh_mode="IMMEDIATE")
    (read,) = dags(live, table("b", "a", schedule="1h"), table("c", "a", refresh_mode="IMMEDIATE")).values()
    assert repr(read.timetable) == repr(CronTriggerTimetable("0 * * * *", timezone="UTC"))
    assert "Schedule none, mode IMMEDIATE" in (read.get_task("a").doc_md or "")


def test_one_run_at_a_time_and_nothing_to_catch_up() -> None:
    (dag,) = dags(table("a", "orders")).values()
    assert (dag.max_active_runs, dag.catchup) == (1, False)


def test_a_skipped_table_does_not_hold_up_what_reads_it() -> None:
    (dag,) = dags(table("a", "orders"), table("b", "a")).values()
    assert dag.get_task("b").trigger_rule == "none_failed"


def test_what_the_user_says_reaches_the_dag_and_its_tasks() -> None:
    (dag,) = dags(
        table("a", "orders", description="All of it."),
        default_args={"retries": 7, "owner": "sales"},
        pool="spark",
        tags=["mine"],
        dag_args={"dagrun_timeout": None, "description": "Told"},
    ).values()
    assert dag.tags == {"pgtrickle", "mine"}
    assert dag.description == "Told"
    assert (dag.get_task("a").retries, dag.get_task("a").owner, dag.get_task("a").pool) == (7, "sales", "spark")
    assert dag.get_task("plan").pool == "default_pool"
    told = dag.get_task("a").doc_md or ""
    assert "All of it." in told
    assert "SELECT * FROM orders" in told
    assert "orders (base table)" in (dag.doc_md or "")


def test_tables_stand_in_no_groups_and_edges_run_from_table_to_table() -> None:
    (dag,) = dags(table("a", "orders"), table("b", "a"), table("c", "a"), table("d", "c")).values()
    assert [name for name in dag.task_group_dict if name] == []
    assert edges(dag) == {"plan": [], "a": ["plan"], "b": ["a"], "c": ["a"], "d": ["c"]}


def test_a_task_shows_the_assets_that_it_reads_and_those_that_it_produces() -> None:
    (dag,) = dags(table("a", "orders", "sales.items"), table("b", "a"), postgres_conn_id="shop_pg").values()
    a, b = dag.get_task("a"), dag.get_task("b")
    assert [asset.name for asset in a.inlets] == ["shop_pg.orders", "shop_pg.sales.items"]
    assert [(asset.name, asset.uri, asset.group) for asset in a.outlets] == [
        ("shop_pg.a", "pgtrickle://shop_pg/public/a", "shop_pg")
    ]
    # What one table produces is what the next one reads, to the last letter.
    assert b.inlets == a.outlets
    (whole,) = dags(table("a", "orders"), table("b", "a"), granularity="graph").values()
    assert [asset.name for asset in whole.get_task("refresh").inlets] == ["pgtrickle_default.orders"]
    outcomes = whole.get_task("outcomes")
    assert isinstance(outcomes, MappedOperator)
    assert len(outcomes.partial_kwargs["outlets"]) == 2


def test_a_person_who_triggers_it_can_ask_for_more() -> None:
    (dag,) = dags(table("a", "orders"), dag_args={"params": {"mine": 1}}).values()
    assert dict(dag.params) == {"full_refresh": False, "tables": None, "mine": 1}


@pytest.mark.parametrize(
    ("select", "exclude", "expected"),
    [
        (None, None, {"plan": ["load"], "t": ["plan"], "x__y__r": ["t"], "e": ["x__y__r"], "z": ["plan"]}),
        ("+r", None, {"plan": ["load"], "t": ["plan"], "x__y__r": ["t"]}),
        (["t", "e"], None, {"plan": ["load"], "t": ["plan"], "e": ["t"]}),
        ("tag:daily", None, {"plan": ["load"], "z": ["plan"]}),
        ("t+1", "x", {"plan": ["load"], "t": ["plan"], "x__y__r": ["t"]}),
        (None, ["+e"], {"plan": ["load"], "z": ["plan"]}),
    ],
)
def test_a_graph_stands_as_a_group_in_a_dag_of_the_users(
    select: str | None, exclude: str | None, expected: dict[str, list[str]]
) -> None:
    tables = [table("t", "o"), table("x", "t"), table("y", "t"), table("r", "x", "y"), table("e", "r")]
    shop = StreamTableGraph("shop", [*tables, table("z", "o", tags=["daily"], verify_every="1d")], pool="spark")
    with DAG("nightly", schedule="@daily") as dag:
        (
            EmptyOperator(task_id="load")
            >> StreamTableGroup(shop, select=select, exclude=exclude)
            >> EmptyOperator(task_id="report")
        )
    found = {
        name.removeprefix("shop."): [above.removeprefix("shop.") for above in read] for name, read in edges(dag).items()
    }
    # What comes after the group waits for one task, which isn't skipped where a table has no change.
    assert found.pop("report") == ["up-to-date"]
    assert dag.get_task("shop.up-to-date").trigger_rule == "none_failed"
    assert [found.pop("load"), bool(found.pop("up-to-date"))] == [[], True]
    assert ("verify-contents" in found) == ("z" in expected)
    assert {name: read for name, read in found.items() if name != "verify-contents"} == expected
    plan = dag.get_task("shop.plan")
    assert isinstance(plan, StreamTablePlanOperator)
    assert {unit.task_id for unit in plan.units} == {f"shop.{name}" for name in expected if name != "plan"}
    assert plan.due_only is False
    assert DagSerialization.to_dict(dag)


def test_a_group_of_granularity_graph_has_its_ids_under_its_own() -> None:
    shop = StreamTableGraph("shop", [table("a", "orders"), table("b", "a")], granularity="graph")
    with DAG("nightly", schedule="@daily") as dag:
        StreamTableGroup(shop, "tables", due_only=True)
    assert edges(dag) == {
        "tables.plan": [],
        "tables.refresh": ["tables.plan"],
        "tables.outcomes": ["tables.refresh"],
        "tables.a": ["tables.refresh"],
        "tables.b": ["tables.a", "tables.refresh"],
        "tables.up-to-date": ["tables.b", "tables.outcomes"],
    }
    refresh = dag.get_task("tables.refresh")
    assert isinstance(refresh, StreamTableGraphRefreshOperator)
    assert ([unit.task_id for unit in refresh.units], refresh.due_only) == (["tables.a", "tables.b"], True)


def test_a_group_that_selects_nothing_says_so() -> None:
    shop = StreamTableGraph("shop", [table("a", "orders")])
    with DAG("nightly", schedule=None):
        with pytest.raises(UsageError, match=r"Nothing of graph 'shop' is selected"):
            StreamTableGroup(shop, exclude="a")
        with pytest.raises(UsageError, match=r"No table of the graph is called 'aa'. Did you mean a\?"):
            StreamTableGroup(shop, select="aa+")


FORGOTTEN = """
from airflow_provider_pgtrickle import StreamTable, StreamTableGraph
shop = StreamTableGraph("shop", [StreamTable("totals", "SELECT id FROM orders")])
"""


@pytest.mark.parametrize(
    ("rest", "found", "error"),
    [
        ("", [], "UsageError: The stream tables of graph 'shop' are declared, but no DAG is made of them"),
        ("shop.register(globals())", ["shop"], None),
        ("shop.register({})", [], None),
        ("made = shop.dags()[0]", ["shop"], None),
    ],
)
def test_a_graph_that_nobody_registers_is_an_import_error(
    tmp_path: Path, rest: str, found: list[str], error: str | None
) -> None:
    file = tmp_path / "shop.py"
    file.write_text(FORGOTTEN + rest + "\n# airflow dag\n")
    bag = DagBag(tmp_path, bundle_path=tmp_path, bundle_name="b")
    assert sorted(bag.dags) == found
    assert [told.partition(".")[0] for told in bag.import_errors.values()] == ([error] if error else [])


def test_granularity_graph_refreshes_all_in_one_task() -> None:
    (dag,) = dags(table("a", "orders"), table("b", "a"), granularity="graph").values()
    assert edges(dag) == {
        "plan": [],
        "refresh": ["plan"],
        "outcomes": ["refresh"],
        "a": ["refresh"],
        "b": ["a", "refresh"],
    }
    assert dag.get_task("b").task_type == "StreamTableStateOperator"


def test_the_scheduler_settles_state_tasks_without_a_process() -> None:
    (dag,) = dags(table("a", "orders"), table("b", "a"), granularity="graph").values()
    scheduled = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    assert [task.task_id for task in scheduled.tasks if not TaskInstance.is_task_schedulable(task)] == ["a", "b"]


def test_another_granularity_is_refused() -> None:
    with pytest.raises(UsageError, match="granularity"):
        dags(table("a", "orders"), granularity="table")


def test_a_circle_is_an_error_of_the_file_with_its_path() -> None:
    with pytest.raises(CycleDetected, match=r"public\.a → public\.b → public\.a"):
        dags(table("a", "b"), table("b", "a"))


def test_a_view_can_be_declared_as_an_edge() -> None:
    (dag,) = dags(table("a", "orders"), table("b", "view_on_a", depends_on=["a"])).values()
    assert edges(dag)["b"] == ["a"]


def test_register_puts_the_dags_where_airflow_finds_them_and_returns_them() -> None:
    namespace: dict[str, Any] = {}
    made = StreamTableGraph("shop", [table("a", "orders"), table("z", "orders")], split=True).register(namespace)
    assert [dag.dag_id for dag in made] == ["shop__a", "shop__z"]
    assert list(namespace.values()) == made


def test_register_overwrites_no_variable_of_the_users() -> None:
    graph = StreamTableGraph("shop", [table("a", "orders")])
    with pytest.raises(UsageError, match="The variable shop holds a list"):
        graph.register({"shop": ["mine"]})


def test_a_graph_that_is_called_like_its_dag_keeps_its_variable() -> None:
    graph = StreamTableGraph("shop", [table("a", "orders")])
    namespace: dict[str, Any] = {"shop": graph}
    for _ in range(2):
        (dag,) = graph.register(namespace)
        assert namespace == {"shop": graph, "shop_dag": dag}


def test_a_deadline_reaches_every_dag_and_names_the_tables_at_its_end() -> None:
    tables = [table("a", "orders"), table("b", "a"), table("c", "a"), table("z", "orders")]
    made = dags(*tables, deadline=timedelta(minutes=10), postgres_conn_id="shop_pg", split=True)
    for dag_id, ends in {"shop__a": "public.b, public.c", "shop__z": "public.z"}.items():
        deadline = made[dag_id].deadline
        assert isinstance(deadline, list)
        (deadline,) = deadline
        assert deadline.interval == timedelta(minutes=10)
        assert deadline.callback.kwargs["stream_table"] == ends
        assert deadline.callback.kwargs["postgres_conn_id"] == "shop_pg"
        assert DagSerialization.to_dict(made[dag_id])["dag"]["deadline"]


def test_a_worker_builds_the_one_dag_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "shop__z")
    assert list(dags(table("a", "orders"), table("z", "orders"), split=True)) == ["shop__z"]


def many(count: int) -> list[StreamTable]:
    return [table(f"t{i:03}", f"t{i - 1:03}" if i % 10 else "orders", "customers", schedule="5m") for i in range(count)]


def serialized(tables: list[StreamTable]) -> list[str]:
    return [json.dumps(DagSerialization.to_dict(dag)) for dag in StreamTableGraph("shop", tables).dags()]


def test_two_parses_give_the_same_bytes_whatever_the_order_of_declaration() -> None:
    assert serialized(many(40)) == serialized(list(reversed(many(40))))


def test_another_process_gives_the_same_whatever_its_hash_seed() -> None:
    code = (
        "import json, runpy; from airflow.serialization.serialized_objects import DagSerialization as S\n"
        f"shop = runpy.run_path({str(SHOP)!r})['shop']\n"
        # Airflow itself writes a DAG's fields in the order of a set.
        "print(json.dumps([S.to_dict(dag) for dag in shop.dags()], sort_keys=True))"
    )
    one, other = (
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in "12"
    )
    assert one
    assert one == other


def test_five_hundred_tables_are_built_without_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psycopg.connect", lambda *_, **__: pytest.fail("a database was asked at parse time"))
    started = time.perf_counter()
    made = StreamTableGraph("shop", many(500)).dags()
    print(f"\n500 tables parsed into {len(made)} DAGs in {time.perf_counter() - started:.2f} s")
    assert [len(dag.tasks) for dag in made] == [501]
    assert len(StreamTableGraph("shop", many(500), split=True).dags()) == 50


def test_sources_that_are_followed_start_the_dag() -> None:
    tables = [StreamTable("totals", "SELECT a FROM orders JOIN sales.items USING (a)", schedule="5m")]
    graph = StreamTableGraph("g", tables, "shop_pg", follows=["orders", Asset("elsewhere")])
    (dag,) = graph.dags()
    condition: Any = dag.timetable.asset_condition
    assert [asset.name for asset in condition.objects] == ["shop_pg.orders", "elsewhere"]
    assert graph.source("sales.items") in dag.get_task("totals").inlets


@pytest.mark.parametrize(
    ("follows", "sentence"),
    [
        (["order"], "reads no public.order. Did you mean public.orders"),
        (["w.x"], "It reads public.orders"),
        ("orders", "must be a list"),
    ],
)
def test_what_is_followed_is_checked(follows: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        StreamTableGraph("g", [StreamTable("totals", "SELECT a FROM orders")], follows=follows)
