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
from airflow.models.asset import AssetModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.db import initdb
from airflow.utils.session import create_session
from sqlalchemy import delete, insert

from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.operators.outcome import run_token
from airflow_provider_pgtrickle.stream_table import Home, asset_of
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
        where = {"bundle_name": "dags", "relative_fileloc": "team/shop.py", "fileloc": "/dags/team/shop.py"}
        session.merge(DagModel(dag_id=DAG, is_paused=True, is_stale=False, **where))
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


def owner(graph: str, file: str = "team/gone.py", bundle: str = "dags", removed: str | None = None) -> dict[str, Any]:
    return {"bundle": bundle, "file": file, "graph": graph, "removed_at": removed}


@pytest.mark.parametrize(
    ("initiator", "declared", "gone"),
    [
        (f"airflow {DAG}.{TASK}", None, None),
        ("airflow other.task", None, "other"),
        ("manual", None, None),
        (None, None, None),
        # A graph and its file, removed together.
        (None, owner("shop"), "shop"),
        ("airflow shop.totals", owner("shop"), "shop"),
        # A graph that was removed from a file with others.
        ("airflow shop.totals", owner("shop", "team/shop.py"), "shop"),
        # A graph in a DAG of the user's own, which its first task names; until then its file does.
        (f"airflow {DAG}.shop.totals", owner("shop"), None),
        (None, owner("shop", "team/shop.py"), None),
        (None, owner("shop", "/dags/team/shop.py", ""), None),
        (None, owner("shop", "team/shop.py", "another"), "shop"),
        # The catalog says itself that it is declared no more.
        (None, owner("shop", removed="yesterday"), None),
    ],
)
def test_a_dag_that_is_there_no_more_is_told(
    initiator: str | None, declared: dict[str, Any] | None, gone: str | None
) -> None:
    owners = {"public.t": declared} if declared else {}
    assert metadata.gone({"public.t": initiator}, owners) == ({"public.t": gone} if gone else {})


def test_a_dag_that_airflow_has_put_aside_is_gone() -> None:
    by = {"public.t": f"airflow {DAG}.{TASK}"}
    with create_session() as session:
        session.merge(DagModel(dag_id=DAG, bundle_name="dags", is_stale=True))
    # Its own name, and not one that has a part of its task's.
    assert metadata.gone(by, {}) == {"public.t": DAG}
    assert metadata.gone(by, {"public.t": owner(DAG, "team/shop.py")}) == {"public.t": DAG}


def test_a_dag_that_somebody_may_not_see_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(get_auth_manager()), "is_authorized_dag", lambda self, **_: False)
    assert metadata.gone({"public.t": f"airflow {DAG}.{TASK}"}, {}) == {}


def test_a_table_leads_to_its_asset_if_dags_know_one(monkeypatch: pytest.MonkeyPatch) -> None:
    home, other = Home("shop_pg"), Home("other_pg")
    orders, odd = QualifiedName("public", "orders"), QualifiedName("sales", "50%_off é")
    with create_session() as session:
        known = [asset_of(home, orders), asset_of(home, odd), asset_of(other, orders)]
        models = [AssetModel(name=a.name, uri=a.uri, group=a.group, extra=a.extra) for a in known]
        session.add_all(models)
        session.flush()
        ids = [model.id for model in models]
    try:
        names = [str(orders), str(odd), "public.unknown"]
        found = metadata.assets(ADMIN, "shop_pg", names)
        assert found == {str(orders): f"assets/{ids[0]}", str(odd): f"assets/{ids[1]}"}
        monkeypatch.setattr(type(get_auth_manager()), "is_authorized_asset", lambda self, **_: False)
        assert metadata.assets(ADMIN, "shop_pg", names) == {}
    finally:
        with create_session() as session:
            session.execute(delete(AssetModel).where(AssetModel.id.in_(ids)))


def test_who_may_see_a_dag_and_not_run_it_gets_no_button() -> None:
    viewer = SimpleAuthManagerUser(username="someone", role="viewer")
    (found,) = metadata.dags(viewer, {"public.t": f"airflow {DAG}.{TASK}"}, {}).values()
    assert found["may_trigger"] is False
