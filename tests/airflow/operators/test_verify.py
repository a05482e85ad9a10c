"""Contents held against their queries by an operator, and by the task that a graph's DAG has for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph
from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.operators import StreamTablePlanOperator, StreamTableVerifyOperator

TOTALS = "SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id"


@pytest.fixture
def pt(shop: psycopg.Connection, shop_connection: str, dsn: str) -> PgTrickle:
    client = PgTrickle(dsn, executor=lambda: PostgresExecutor(client.database))
    client.install()
    client.create_stream_table("totals", TOTALS, verify_every="1d")
    client.create_stream_table("big", "SELECT customer_id, total FROM totals WHERE total > 400")
    return client


def verify(**options: Any) -> StreamTableVerifyOperator:
    return StreamTableVerifyOperator(task_id="verify", postgres_conn_id="shop_pg", **options)


def spoil(shop: psycopg.Connection) -> None:
    with shop.transaction():
        shop.execute("SET LOCAL pgtrickle.refreshing = 'on'")
        shop.execute("UPDATE totals SET total = 0 WHERE customer_id = 3")


def test_what_holds_is_told_of_table_by_table(pt: PgTrickle, execute: Callable[..., Any]) -> None:
    run = execute(verify())
    told = {name: table["status"] for name, table in run.value.items()}
    assert told == {"public.totals": "EQUAL", "public.big": "EQUAL"}
    assert execute(verify(tables=["big"])).value.keys() == {"public.big"}


def test_a_difference_fails_the_task_at_once(
    pt: PgTrickle, shop: psycopg.Connection, execute: Callable[..., Any]
) -> None:
    spoil(shop)
    with pytest.raises(AirflowFailException, match=r"public\.totals differs from its query in 2 rows"):
        execute(verify())
    assert execute(verify(on_difference="warn")).value["public.totals"]["differences"] == 2
    with pytest.raises(UsageError, match="on_difference"):
        verify(on_difference="cry")


def test_a_difference_is_repaired_where_that_is_wanted(
    pt: PgTrickle, shop: psycopg.Connection, execute: Callable[..., Any]
) -> None:
    spoil(shop)
    told = execute(verify(tables=["totals"], repair=True)).value["public.totals"]
    assert (told["status"], told["repaired"], told["differences"]) == ("EQUAL", True, 0)


def test_only_what_is_due_is_verified(pt: PgTrickle, shop: psycopg.Connection, execute: Callable[..., Any]) -> None:
    task = verify(tables=["public.totals", "public.big"], only_due=True)
    assert execute(task).value.keys() == {"public.totals"}
    assert (execute(task).state, execute(task).reason) == ("skipped", "no verification is due")
    shop.execute("UPDATE pgtrickle.pgt_verifications SET ended_at = ended_at - interval '25 hours'")
    assert execute(task).value.keys() == {"public.totals"}


@pytest.mark.parametrize("granularity", ["unit", "graph"])
def test_a_graph_verifies_what_asks_for_it_after_its_refresh(
    granularity: Any, pt: PgTrickle, shop: psycopg.Connection, execute: Callable[..., Any]
) -> None:
    tables = [
        StreamTable("totals", TOTALS, schedule="5m", verify_every="1d"),
        StreamTable("big", "SELECT customer_id, total FROM totals WHERE total > 400"),
    ]
    (dag,) = StreamTableGraph("g", tables, "shop_pg", granularity=granularity).dags()
    task, plan = dag.get_task("verify-contents"), dag.get_task("plan")
    assert isinstance(task, StreamTableVerifyOperator)
    assert isinstance(plan, StreamTablePlanOperator)
    assert task.upstream_task_ids == {"plan", "totals" if granularity == "unit" else "refresh"}
    assert (task.trigger_rule, list(task.tables or ())) == ("none_failed", ["public.totals"])
    assert "verify-contents" not in execute(plan).skipped
    assert execute(task).value["public.totals"]["status"] == "EQUAL"
    assert "verify-contents" in execute(plan).skipped


@pytest.mark.parametrize("granularity", ["unit", "graph"])
def test_a_graph_in_which_nobody_asks_has_no_such_task(granularity: Any) -> None:
    (dag,) = StreamTableGraph("g", [StreamTable("totals", TOTALS)], "shop_pg", granularity=granularity).dags()
    assert not dag.has_task("verify-contents")
    plan: Any = dag.get_task("plan")
    assert plan.verifies is None
