"""On a database without the catalog every task says what the command line says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import psycopg
import pytest
from airflow.sdk import BaseOperator

from airflow_provider_pgtrickle.operators import (
    ChangeBufferCleanupOperator,
    StreamTableAlterOperator,
    StreamTableCreateOperator,
    StreamTableDropOperator,
    StreamTableRefreshOperator,
)
from airflow_provider_pgtrickle.sensors import ChangeBufferSensor, StreamTableFreshnessSensor
from airflow_provider_pgtrickle.triggers.freshness import FreshnessTrigger
from tests.airflow.listened import event_of

SAID = "The pgtrickle catalog is not installed in this database. Run `pgtrickle install`"


def _operators(conn_id: str) -> list[BaseOperator]:
    return [
        StreamTableRefreshOperator(task_id="refresh", tables=["t"], postgres_conn_id=conn_id),
        StreamTableAlterOperator(task_id="alter", name="t", changes={"tier": "cold"}, postgres_conn_id=conn_id),
        StreamTableDropOperator(task_id="drop", name="t", postgres_conn_id=conn_id),
        ChangeBufferCleanupOperator(task_id="cleanup", postgres_conn_id=conn_id),
        StreamTableFreshnessSensor(task_id="fresh", stream_table="t", max_staleness=60, postgres_conn_id=conn_id),
        ChangeBufferSensor(task_id="pending", stream_table="t", postgres_conn_id=conn_id),
    ]


@pytest.mark.parametrize("number", range(6))
def test_a_task_says_what_to_install(shop_connection: str, execute: Callable[..., object], number: int) -> None:
    operator = _operators(shop_connection)[number]
    with pytest.raises(Exception, match="pgtrickle install") as told:
        execute(operator)
    assert SAID in str(told.value)


def test_a_sensor_in_the_triggerer_says_it_too(shop_connection: str) -> None:
    trigger = FreshnessTrigger(stream_table="t", max_staleness=60, postgres_conn_id=shop_connection, poll_interval=60)
    event = asyncio.run(event_of(trigger.run()))
    assert event.payload["status"] == "error"
    assert event.payload["message"].startswith(SAID)


def test_whoever_creates_installs(shop_connection: str, execute: Callable[..., object], dsn: str) -> None:
    execute(
        StreamTableCreateOperator(task_id="create", name="t", query="SELECT 1 AS a", postgres_conn_id=shop_connection)
    )
    with psycopg.connect(dsn) as conn:
        assert conn.execute("SELECT pgt_name FROM pgtrickle.pgt_stream_tables").fetchall() == [("t",)]
