"""The DAGs of a graph: their shape, their ids, and that they are the same at each parse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.models.taskinstance import TaskInstance
from airflow.sdk import DAG, CronTriggerTimetable, DeltaTriggerTimetable, MultipleCronTriggerTimetable
from airflow.serialization.serialized_objects import DagSerialization

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph
from airflow_provider_pgtrickle.engine.errors import CycleDetected, UsageError

SHOP = Path(__file__).parents[3] / "dags" / "shop.py"


def table(name: str, *sources: str, **options: Any) -> StreamTable:
    return StreamTable(name, f"SELECT * FROM {', '.join(sources)}", **options)


def dags(*tables: StreamTable, **options: Any) -> dict[str, DAG]:
    return {dag.dag_id: dag for dag in StreamTableGraph("shop", tables, **options).dags()}


def edges(dag: DAG) -> dict[str, list[str]]:
    return {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks}


def test_a_chain_is_one_task_after_the_other() -> None:
    (dag,) = dags(table("b", "a"), table("a", "orders")).values()
    assert dag.dag_id == "shop"
    assert edges(dag) == {"plan": [], "a": ["plan"], "b": ["a"]}


def test_each_connected_part_is_a_dag_named_by_its_first_table() -> None:
    made = dags(table("b", "a"), table("a", "orders"), table("z", "orders"))
    assert sorted(made) == ["shop__a", "shop__z"]
    assert edges(made["shop__z"]) == {"plan": [], "z": ["plan"]}


def test_a_diamond_is_one_task() -> None:
    (dag,) = dags(table("t", "o"), table("x", "t"), table("y", "t"), table("r", "x", "y"), table("e", "r")).values()
    assert edges(dag) == {"plan": [], "t": ["plan"], "x__y__r": ["t"], "e": ["x__y__r"]}


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


def test_levels_are_task_groups() -> None:
    (dag,) = dags(table("a", "orders"), table("b", "a")).values()
    assert sorted(k for k in dag.task_group_dict if k) == ["level-0", "level-1"]


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
    made = StreamTableGraph("shop", [table("a", "orders"), table("z", "orders")]).register(namespace)
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
    made = dags(*tables, deadline=timedelta(minutes=10), postgres_conn_id="shop_pg")
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
    assert list(dags(table("a", "orders"), table("z", "orders"))) == ["shop__z"]


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
    assert sum(len(dag.tasks) for dag in made) == 50 + sum(
        len(component.units) for component in StreamTableGraph("shop", many(500)).components
    )
