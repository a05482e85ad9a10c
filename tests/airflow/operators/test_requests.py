"""What SQL asks for is carried out by a graph's own tasks, and by the operator for requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph, Unit
from airflow_provider_pgtrickle.operators.requests import StreamTableRequestsOperator

TOTALS = "SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id"


def ask(shop: psycopg.Connection, call: str) -> int:
    row = shop.execute(f"SELECT pgtrickle.{call}").fetchone()
    assert row is not None
    return int(row[0])


def answered(shop: psycopg.Connection, number: int) -> tuple[Any, ...]:
    row = shop.execute(
        "SELECT status, answer ->> 'action', error FROM pgtrickle.pgt_requests WHERE request_id = %s", [number]
    ).fetchone()
    assert row is not None
    return row


@pytest.fixture
def task(shop: psycopg.Connection, shop_connection: str, local_spark_connection: str) -> Callable[[str], Any]:
    """A task of the graph by its id, as a new process would build it."""

    def made(task_id: str) -> Any:
        tables = [StreamTable("totals", TOTALS, schedule="1d")]
        (dag,) = StreamTableGraph("g", tables, shop_connection, local_spark_connection).dags()
        return dag.get_task(task_id)

    return made


def test_the_graphs_own_tasks_answer_what_concerns_their_tables(
    task: Callable[[str], Any], shop: psycopg.Connection, spark_alone: None, execute: Callable[..., Any]
) -> None:
    execute(task("plan"), run_type="scheduled")
    first = ask(shop, "request_refresh('totals')")
    execute(task("totals"), run_type="scheduled")
    assert answered(shop, first) == ("DONE", "FULL", None)

    # Not due until tomorrow, but asked for.
    assert execute(task("plan"), "r2", run_type="scheduled").value["skipped"] == {"not due": 1}
    idle = ask(shop, "request_refresh('totals')")
    assert execute(task("plan"), "r3", run_type="scheduled").value["skipped"] == {"no change": 1}
    assert answered(shop, idle) == ("DONE", "NO_DATA", None)

    full = ask(shop, "request_refresh('totals', true)")
    assert execute(task("plan"), "r4", run_type="scheduled").value["units"] == ["totals"]
    execute(task("totals"), "r4", run_type="scheduled")
    assert answered(shop, full) == ("DONE", "FULL", None)


def test_what_no_task_will_refresh_is_answered_by_the_plan(
    task: Callable[[str], Any], shop: psycopg.Connection, execute: Callable[..., Any]
) -> None:
    execute(task("plan"))
    shop.execute("SELECT pgtrickle.gate('totals', 'a migration')")
    held = ask(shop, "request_refresh('totals')")
    execute(task("plan"), "r2")
    status, _, error = answered(shop, held)
    assert status == "FAILED"
    assert "a migration" in error
    shop.execute("SELECT pgtrickle.ungate('totals')")
    shop.execute("UPDATE pgtrickle.pgt_stream_tables SET status = 'SUSPENDED', last_error = '7 / 0'")
    halted = ask(shop, "request_refresh('totals')")
    execute(task("plan"), "r3")
    assert answered(shop, halted)[0] == "FAILED"
    assert "7 / 0" in answered(shop, halted)[2]


def test_what_another_member_of_its_unit_holds_back_is_answered_by_the_plan(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any]
) -> None:
    def plan() -> Any:
        counts = StreamTable("counts", "SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id")
        unit = Unit("ledger", [StreamTable("totals", TOTALS, schedule="1d"), counts])
        (dag,) = StreamTableGraph("g", [unit], shop_connection).dags()
        return dag.get_task("plan")

    execute(plan())
    shop.execute("SELECT pgtrickle.gate('counts', 'a migration')")
    held = ask(shop, "request_refresh('totals')")
    execute(plan(), "r2")
    assert answered(shop, held) == (
        "FAILED",
        None,
        "public.totals: It was not refreshed, because public.counts, which is refreshed together with it, is"
        " gated: a migration. End that, then ask again.",
    )
    shop.execute("SELECT pgtrickle.ungate('counts')")
    shop.execute("UPDATE pgtrickle.pgt_stream_tables SET status = 'SUSPENDED' WHERE pgt_name = 'counts'")
    # In full means the table that is named, and brings no other one back.
    for run, full in (("r3", "false"), ("r4", "true")):
        halted = ask(shop, f"request_refresh('totals', {full})")
        execute(plan(), run)
        assert answered(shop, halted)[0] == "FAILED"
        assert "public.counts is in status SUSPENDED" in answered(shop, halted)[2]


def test_the_operator_carries_out_what_no_graph_declares(
    task: Callable[[str], Any], shop: psycopg.Connection, spark: Any, shop_connection: str, execute: Callable[..., Any]
) -> None:
    execute(task("plan"))
    made = ask(shop, f"request_declare('big', '{TOTALS} HAVING sum(amount) > 400')")
    wrong = ask(shop, "request_declare('wrong', 'SELECT nothing FROM orders')")
    operator = StreamTableRequestsOperator(task_id="requests", postgres_conn_id=shop_connection)
    assert execute(operator).value == {"done": 1, "failed": 1, "waiting": 0}
    assert answered(shop, made)[0] == "DONE"
    assert "nothing" in answered(shop, wrong)[2]
    assert execute(operator).value == {"done": 0, "failed": 0, "waiting": 0}


def test_the_plan_carries_out_what_concerns_the_status_and_nothing_that_it_would_undo(
    task: Callable[[str], Any], shop: psycopg.Connection, execute: Callable[..., Any]
) -> None:
    execute(task("plan"))
    shop.execute("UPDATE pgtrickle.pgt_stream_tables SET status = 'SUSPENDED', last_error = '7 / 0'")
    undone = ask(shop, """request_alter('totals', '{"tier": "cold"}')""")
    resumed = ask(shop, """request_alter('totals', '{"status": "ACTIVE"}')""")
    other = ask(shop, f"request_declare('big', '{TOTALS} HAVING sum(amount) > 400')")
    # What it resumes it refreshes in the same run.
    assert execute(task("plan"), "r2").value["units"] == ["totals"]
    assert "declared by g in" in answered(shop, undone)[2]
    assert answered(shop, resumed) == ("DONE", None, None)
    assert answered(shop, other) == ("PENDING", None, None)
