"""Create, alter, drop and cleanup by operators, on a real database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_pgtrickle.operators import (
    ChangeBufferCleanupOperator,
    StreamTableAlterOperator,
    StreamTableCreateOperator,
    StreamTableDropOperator,
)

QUERY = "SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id"


def create(**options: Any) -> StreamTableCreateOperator:
    return StreamTableCreateOperator(
        task_id="create", **{"name": "totals", "query": QUERY, "postgres_conn_id": "shop_pg", **options}
    )


def declared(shop: psycopg.Connection) -> list[tuple[Any, ...]]:
    return shop.execute("SELECT pgt_name, schedule, refresh_mode FROM pgtrickle.pgt_stream_tables").fetchall()


@pytest.fixture(autouse=True)
def _connected(shop: psycopg.Connection, shop_connection: str) -> None:
    """Every test here has the shop and its connection."""


def test_create_installs_and_declares(shop: psycopg.Connection, execute: Callable[..., Any]) -> None:
    assert execute(create(options={"schedule": "5m"})).value == "public.totals"
    assert declared(shop) == [("totals", "5m", "AUTO")]


def test_creating_again_changes_what_differs(shop: psycopg.Connection, execute: Callable[..., Any]) -> None:
    execute(create(options={"schedule": "5m"}))
    execute(create(options={"schedule": "10m", "refresh_mode": "FULL"}))
    assert declared(shop) == [("totals", "10m", "FULL")]


def test_without_replace_a_second_creation_fails_at_once(execute: Callable[..., Any]) -> None:
    execute(create())
    with pytest.raises(AirflowFailException, match="totals"):
        execute(create(replace=False))


def test_alter_changes_the_options_it_is_given(shop: psycopg.Connection, execute: Callable[..., Any]) -> None:
    execute(create(options={"schedule": "5m"}))
    alter = StreamTableAlterOperator(
        task_id="alter", name="totals", changes={"schedule": "@daily"}, postgres_conn_id="shop_pg"
    )
    execute(alter)
    assert declared(shop) == [("totals", "@daily", "AUTO")]


def test_drop_leaves_no_trigger_and_no_buffer(shop: psycopg.Connection, execute: Callable[..., Any]) -> None:
    execute(create())
    drop = StreamTableDropOperator(task_id="drop", name="totals", postgres_conn_id="shop_pg")
    assert execute(drop).value == ["public.totals"]
    left = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'orders'::regclass AND NOT tgisinternal"
    assert shop.execute(left).fetchone() == (0,)
    assert execute(drop).value == []


def test_cleanup_keeps_what_somebody_still_has_to_read(shop: psycopg.Connection, execute: Callable[..., Any]) -> None:
    execute(create())
    shop.execute("UPDATE orders SET amount = amount + 1")
    cleanup = ChangeBufferCleanupOperator(task_id="cleanup", postgres_conn_id="shop_pg")
    assert execute(cleanup).value["rows"] == 0
