"""What whoever watches an action makes of what it hears; the actions themselves are in `tests/spark/io`."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from airflow_provider_pgtrickle.engine.errors import NoWorkers, OutOfTime
from airflow_provider_pgtrickle.engine.spark import watch
from airflow_provider_pgtrickle.engine.spark.watch import Limits, _Tasks, _Watch

MANY = 50


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_EVERY_SECONDS", 0.001)


def watched(hear: Callable[[int], _Tasks], limits: Limits) -> OutOfTime | NoWorkers | None:
    """The verdict on an action that ends when it is cancelled, or was asked about often."""
    asked, ended = 0, threading.Event()

    def ask() -> _Tasks:
        nonlocal asked
        asked += 1
        if asked == MANY:
            ended.set()
        return hear(asked)

    watching = _Watch(ask, ended.set, limits)
    with watching.going_on():
        assert ended.wait(60)
    return watching.verdict


ALWAYS = Limits(wait_seconds=1e-9)


def test_tasks_that_nobody_takes_end_it() -> None:
    verdict = watched(lambda _: _Tasks(1, 4, 0), ALWAYS)
    assert isinstance(verdict, NoWorkers)
    assert "1 of 4 are done, and Spark has no free executor" in str(verdict)
    assert "spark_wait_seconds" in str(verdict)


@pytest.mark.parametrize(
    "hear",
    [
        lambda asked: _Tasks(0, 4, 1),
        lambda asked: _Tasks(4, 4, 0),
        lambda asked: _Tasks(),
        lambda asked: _Tasks(asked, MANY + 1, 0),
        lambda asked: _Tasks(0, 4, asked % 2),
    ],
    ids=["one runs long", "all are done", "none is known", "they are done between two looks", "they come and go"],
)
def test_what_goes_on_is_let_go_on(hear: Callable[[int], _Tasks]) -> None:
    assert watched(hear, ALWAYS) is None


@pytest.mark.parametrize("limits", [Limits(1e9), Limits(1e9, 1e18)])
def test_within_the_limits_it_goes_on(limits: Limits) -> None:
    assert watched(lambda _: _Tasks(0, 4, 0), limits) is None


@pytest.mark.parametrize("tasks", [_Tasks(0, 4, 1), _Tasks(4, 4, 0)], ids=["as running", "as done"])
@pytest.mark.parametrize(("is_at_work", "ends"), [(True, False), (False, True)])
def test_tasks_that_a_server_counts_need_a_session(tasks: _Tasks, is_at_work: bool, ends: bool) -> None:
    """A Connect server goes on counting the tasks of workers that died."""
    verdict = watched(lambda _: tasks, Limits(1e-9, is_at_work=lambda: is_at_work))
    assert isinstance(verdict, NoWorkers) is ends
    assert not ends or "no task has a session of the database" in str(verdict)


def test_time_that_is_up_ends_what_runs() -> None:
    assert isinstance(watched(lambda _: _Tasks(0, 4, 4), Limits(1e9, 0.0)), OutOfTime)


def test_a_driver_that_cannot_be_asked_leaves_the_verdict_to_the_action() -> None:
    gone = threading.Event()

    def ask() -> _Tasks:
        gone.set()
        raise ConnectionError("the driver has gone")

    watching = _Watch(ask, gone.set, ALWAYS)
    with watching.going_on():
        assert gone.wait(60)
    assert watching.verdict is None


def test_an_action_that_is_short_is_not_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_EVERY_SECONDS", 600)
    watching = _Watch(_never, _never, ALWAYS)
    with watching.going_on():
        pass
    assert watching.verdict is None


def _never() -> _Tasks:
    raise AssertionError("nobody should have asked")
