"""From a stream table to its DAG, and from a refresh to the task that ran it, as far as the user may see them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.models import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.db import initdb
from airflow.utils.session import create_session
from sqlalchemy import delete, insert

from airflow_provider_pgtrickle.operators.outcome import run_token
from airflow_provider_pgtrickle.web import metadata

ADMIN = SimpleAuthManagerUser(username="someone", role="admin")
#: Both an id of a DAG and one of a task may have dots.
DAG, TASK, RUN = "shop.daily", "order_totals.v2", "scheduled__2026-11-19T12:00:00+00:00"


@pytest.fixture(autouse=True)
def runs() -> Iterator[None]:
    """A DAG with one run, whose task was mapped and cleared."""
    from airflow.api_fastapi.app import init_auth_manager

    initdb()
    init_auth_manager()
    with create_session() as session:
        session.merge(DagBundleModel(name="dags"))
        session.flush()
        session.merge(DagModel(dag_id=DAG, bundle_name="dags", is_paused=True, is_stale=False))
        session.flush()
        session.execute(
            insert(DagRun).values(dag_id=DAG, run_id=RUN, run_type="scheduled", run_after=datetime.now(UTC))
        )
        for map_index in (-1, 3):
            session.execute(
                insert(TaskInstance).values(
                    dag_id=DAG, run_id=RUN, task_id=TASK, map_index=map_index, pool="default_pool", max_tries=4
                )
            )
    yield
    with create_session() as session:
        for model in (TaskInstance, DagRun, DagModel):
            session.execute(delete(model).where(cast(Any, model).dag_id == DAG))


def refreshed(refresh_id: int, *, map_index: int = -1, round_: int = 0, suffix: str = "#1") -> dict[str, Any]:
    """A row of the history, as a task writes it."""
    ti = SimpleNamespace(dag_id=DAG, run_id=RUN, task_id=TASK, map_index=map_index)
    token = run_token(cast(Any, {"ti": ti}), round_)
    return {"refresh_id": refresh_id, "initiated_by": f"airflow {DAG}.{TASK}", "run_token": f"{token}{suffix}"}


def test_a_refresh_leads_to_its_task() -> None:
    page = "dags/shop.daily/runs/scheduled__2026-11-19T12%3A00%3A00%2B00%3A00/tasks/order_totals.v2"
    history = [
        refreshed(1),
        refreshed(2, suffix="/public.a#2"),
        refreshed(3, round_=4),
        refreshed(4, map_index=3),
        {**refreshed(5), "run_token": "0" * 32},
        {**refreshed(6), "initiated_by": "manual"},
    ]
    found = metadata.runs(ADMIN, history)
    assert found == {1: page, 2: page, 3: page, 4: f"{page}/mapped/3"}


def test_who_may_not_see_the_task_is_not_led_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(get_auth_manager()), "is_authorized_dag", lambda self, **_: False)
    assert metadata.runs(ADMIN, [refreshed(1)]) == {}
    assert metadata.dags(ADMIN, {"public.t": f"airflow {DAG}.{TASK}"}, {}) == {}


def test_the_dag_is_the_one_that_declares_the_table_or_refreshed_it_last() -> None:
    ours = {"dag_id": DAG, "is_paused": True, "may_trigger": True}
    by = f"airflow {DAG}.{TASK}"
    assert metadata.dags(ADMIN, {"public.t": by}, {}) == {"public.t": ours}
    assert metadata.dags(ADMIN, {"public.t": None}, {"public.t": DAG}) == {"public.t": ours}
    # A graph in a DAG of the user's own is known by its task.
    assert metadata.dags(ADMIN, {"public.t": None}, {"public.t": f"{DAG}.create"}) == {"public.t": ours}
    assert metadata.dags(ADMIN, {"public.t": "manual"}, {"public.t": "gone"}) == {}
    assert metadata.dags(ADMIN, {"public.t": "airflow other.task"}, {}) == {}


def test_who_may_see_a_dag_and_not_run_it_gets_no_button() -> None:
    viewer = SimpleAuthManagerUser(username="someone", role="viewer")
    (found,) = metadata.dags(viewer, {"public.t": f"airflow {DAG}.{TASK}"}, {}).values()
    assert found["may_trigger"] is False
