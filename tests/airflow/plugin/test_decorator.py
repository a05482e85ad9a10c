"""`@task.stream_table`: the function's SELECT becomes a stream table."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowException

from airflow_provider_pgtrickle.decorators.stream_table import stream_table_task
from tests.airflow.listened import CONN_ID, Catalog


def decorated(function: Any, **options: Any) -> Any:
    with DAG("shop", schedule=None):
        made: Any = stream_table_task(function, postgres_conn_id=CONN_ID, **options)()
    return made.operator


def totals(region: str = "north") -> str:
    return f"SELECT customer, sum(total) AS spent FROM orders WHERE region = '{region}' GROUP BY customer"


def shop(catalog: Catalog) -> None:
    catalog.connection.execute("CREATE TABLE orders (id int PRIMARY KEY, region text, customer int, total numeric)")


def declared(catalog: Catalog) -> list[tuple[Any, ...]]:
    return catalog.connection.execute(
        "SELECT pgt_name, original_query, schedule FROM pgtrickle.pgt_stream_tables"
    ).fetchall()


def test_the_table_has_the_functions_name_and_its_options(catalog: Catalog) -> None:
    shop(catalog)
    operator = decorated(totals, options={"schedule": "5m"})
    operator.declare({})
    assert operator.stream_tables == ["public.totals"]
    assert declared(catalog) == [("totals", totals(), "5m")]


def test_a_second_run_with_the_same_select_changes_nothing(catalog: Catalog) -> None:
    def version() -> list[tuple[Any, ...]]:
        return catalog.connection.execute("SELECT xmin::text FROM pgtrickle.pgt_stream_tables").fetchall()

    shop(catalog)
    operator = decorated(totals, name="public.spending")
    operator.declare({})
    before = version()
    operator.declare({})
    assert version() == before


def test_arguments_reach_the_function(catalog: Catalog) -> None:
    shop(catalog)
    with DAG("shop", schedule=None):
        made: Any = stream_table_task(totals, postgres_conn_id=CONN_ID)(region="south")
    made.operator.declare({})
    assert declared(catalog)[0][1] == totals("south")


def test_the_context_reaches_a_function_that_asks_for_it(catalog: Catalog) -> None:
    def of_the_day(ds: str | None = None) -> str:
        return f"SELECT id, '{ds}' AS day FROM orders"

    shop(catalog)
    decorated(of_the_day).declare({"ds": "2026-01-01"})
    assert "'2026-01-01' AS day" in declared(catalog)[0][1]


@pytest.mark.parametrize("returned", [None, "", 7])
def test_a_function_that_returns_no_select_fails_saying_so(catalog: Catalog, returned: Any) -> None:
    def nothing() -> Any:
        return returned

    operator = decorated(nothing)
    with pytest.raises(AirflowException, match=r"nothing must return the SELECT"):
        operator.declare({})


def test_airflow_knows_the_decorator_by_its_name() -> None:
    with DAG("shop", schedule=None) as dag:
        named: Any = task.stream_table
        named(totals, options={"schedule": "5m"})()
    operator: Any = dag.get_task("totals")
    assert operator.custom_operator_name == "@task.stream_table"
