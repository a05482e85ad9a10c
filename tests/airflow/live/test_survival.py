"""kill -9 in the middle of a refresh, then the retry: the dead run is fenced, the content right, and written once.

A lock of the test's own holds the commit, so each victim dies at the same point: all computed, nothing committed.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

import psutil
import pytest

from tests.airflow.live.running import RunningAirflow, descendants
from tests.airflow.live.shop import Case

Filled = Callable[[str], Case]
#: Left to `make live`; one death is in `make test`.
slow = pytest.mark.slow


def test_a_killed_task_is_retried_and_its_session_ended(airflow: RunningAirflow, filled: Filled) -> None:
    worker = filled("worker")
    worker.change()
    with worker.commits_held():
        run = airflow.trigger("worker")
        dead = worker.waiting_session()
        psutil.Process(airflow.task("worker", run, "worker_totals")["pid"]).send_signal(signal.SIGKILL)
        worker.waiting_session(other_than=dead)
    equal_and_once(airflow, worker, run)


@slow
def test_a_driver_that_outlives_its_spark_submit_cannot_commit(airflow: RunningAirflow, filled: Filled) -> None:
    driver = filled("driver")
    driver.change()
    with driver.commits_held():
        run = airflow.trigger("driver")
        orphan = driver.waiting_session()
        for jvm in descendants(airflow.task("driver", run, "driver_totals")["pid"], "java"):
            jvm.send_signal(signal.SIGKILL)
        driver.waiting_session(other_than=orphan)
    equal_and_once(airflow, driver, run)


@slow
def test_a_task_of_a_killed_scheduler_is_taken_over_by_the_next_one(airflow: RunningAirflow, filled: Filled) -> None:
    scheduler = filled("scheduler")
    scheduler.change()
    with scheduler.commits_held():
        run = airflow.trigger("scheduler")
        dead = scheduler.waiting_session()
        with airflow.scheduler_killed():
            scheduler.waiting_session(other_than=dead)
    airflow.wait_until_healthy()
    equal_and_once(airflow, scheduler, run)


def equal_and_once(airflow: RunningAirflow, case: Case, run: str) -> None:
    assert airflow.finished(case.name, run) == "success", airflow.log(case.name, run, f"{case.name}_totals")
    assert case.differences == []
    assert case.committed == ["FULL", "DIFFERENTIAL"]
    assert airflow.task(case.name, run, f"{case.name}_totals")["try_number"] > 1
    assert case.leases == 0
