"""Operators on a real database; those that need no Spark run no Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from airflow.sdk import BaseOperator
from airflow.sdk.bases.skipmixin import XCOM_SKIPMIXIN_KEY, XCOM_SKIPMIXIN_SKIPPED
from airflow.sdk.exceptions import AirflowSkipException, DownstreamTasksSkipped
from airflow.sdk.execution_time.context import OutletEventAccessors

SHOP = """
CREATE TABLE customers (id int PRIMARY KEY, name text, region text);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int, status text, amount numeric(10, 2));
INSERT INTO customers SELECT n, 'c' || n, (ARRAY['north', 'south'])[1 + n % 2] FROM generate_series(1, 10) n;
INSERT INTO orders SELECT n, 1 + n % 10, 'open', n FROM generate_series(1, 100) n;
"""


@dataclass
class Run:
    """What came of executing an operator."""

    state: str
    value: Any = None
    skipped: list[str] = field(default_factory=list)
    reason: str | None = None
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    log: str = ""
    noted: dict[str, str] = field(default_factory=dict)
    """What the task's page shows."""


class Heard:
    """A task's logger, which keeps what it is told."""

    def __init__(self) -> None:
        self.text = ""

    def __getattr__(self, level: str) -> Callable[..., None]:
        def hear(message: str, *values: object) -> None:
            self.text += f"{message % values}\n"
            getattr(logging.getLogger("task"), level)(message, *values)

        return hear


@pytest.fixture
def shop(dsn: str) -> Iterator[psycopg.Connection]:
    """A small shop, in autocommit."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(SHOP)
        yield connection


@pytest.fixture
def execute() -> Callable[..., Run]:
    """Execute an operator in the context that a task gets, as far as it reads it."""

    def run(
        operator: BaseOperator,
        run_id: str = "r1",
        run_type: str = "manual",
        params: dict[str, Any] | None = None,
        **ti: Any,
    ) -> Run:
        heard = Heard()
        operator._cached_logger = heard  # type: ignore[assignment]
        pushed: dict[str, Any] = {}
        noted: dict[str, str] = {}
        told = OutletEventAccessors()
        values = {"max_tries": operator.retries, "map_index": -1, **ti}
        context: Any = {
            "ti": SimpleNamespace(
                dag_id="dag",
                run_id=run_id,
                task_id=operator.task_id,
                task=operator,
                xcom_push=lambda key, value: pushed.update({key: value}),
                xcom_pull=lambda task_ids: pushed.get(task_ids),
                **values,
            ),
            "dag_run": SimpleNamespace(run_type=run_type),
            "task": operator,
            "outlet_events": told,
            "params": params or {},
            "task_state_store": SimpleNamespace(set=lambda key, value: noted.update({key: value})),
        }

        declared = operator.outlets

        def updated() -> dict[str, dict[str, Any]]:
            """What Airflow updates when the task succeeds: its outlets as they are then, with the extras told."""
            found = {asset.uri: told[asset].extra for asset in operator.outlets}
            # The next task is another process, which reads the DAG file anew.
            operator.outlets = declared
            return found

        try:
            value = operator.execute(context)
        except DownstreamTasksSkipped as skip:
            return Run("success", pushed.get("return_value"), skip.tasks, None, updated(), heard.text, noted)
        except AirflowSkipException as skip:
            return Run("skipped", pushed.get("return_value"), reason=str(skip), log=heard.text, noted=noted)
        skipped = pushed.get(XCOM_SKIPMIXIN_KEY, {}).get(XCOM_SKIPMIXIN_SKIPPED, [])
        return Run("success", value, skipped, events=updated(), log=heard.text, noted=noted)

    return run
