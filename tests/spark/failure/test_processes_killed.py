"""Drivers, executors and servers get SIGKILL in mid-refresh; the next refresh makes the content the query's."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Any

import pytest

from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.servers import ConnectServer
from airflow_provider_pgtrickle.engine.spark.session import limit_patience
from tests.spark.conftest import client
from tests.spark.failure.application import by_python, submitted
from tests.spark.failure.shop import DEADLINE, Shop, children, in_thread


@pytest.mark.parametrize(
    ("step", "killed", "then"),
    [
        ("compute", "FAILED", "DIFFERENTIAL"),
        # The server has been told to commit, and does.
        ("commit", "COMPLETED", "NO_DATA"),
    ],
)
def test_the_driver_is_killed(spark, shop: Shop, tmp_path, step, killed, then):
    shop.change()
    with shop.halted(step, lambda _: submitted("local[2]", shop.dsn, tmp_path, "killed")) as halted:
        halted.running.kill()
    shop.wait_for_sessions_to_end()
    assert shop.refresh(spark, "next").action == then
    assert shop.differences() == []
    assert [status for status, _ in shop.history()] == ["COMPLETED", killed, "COMPLETED"]


def test_a_connect_server_is_killed(spark, spark_alone, shop: Shop, tmp_path):
    shop.change()
    with ConnectServer(tmp_path, Settings.load()) as server, client(server) as session:
        limit_patience(session)
        with shop.halted("compute", in_thread(lambda: shop.refresh(session))) as halted:
            server.kill()
        failure = halted.failure()
        assert isinstance(failure, PgTrickleError)
        assert not failure.permanent, failure
    shop.change()
    assert shop.refresh(spark).action == "DIFFERENTIAL"
    assert shop.differences() == []


# Before the test below, whose session takes all of the cluster's cores for as long as this module lasts.
def test_the_application_runs_by_spark_submit_on_a_cluster(cluster, shop: Shop, tmp_path):
    shop.change()
    small = ("spark.executor.memory=512m", "spark.cores.max=1", "spark.driver.memory=512m")
    told = submitted(cluster.url, shop.dsn, tmp_path, "submitted", *small).result()
    assert told == [{"name": "public.st", "action": "DIFFERENTIAL", "status": "COMPLETED", "run_token": "submitted"}]
    assert shop.differences() == []


@pytest.mark.parametrize("large", [False, True], ids=["by the driver", "by the executors"])
def test_executors_are_killed_and_their_tasks_run_again(cluster, on_cluster, shop: Shop, large):
    settings: dict[str, Any] = {"collect_max_rows": 1} if large else {}
    shop.change()
    with shop.halted(
        "stage" if large else "compute", in_thread(lambda: shop.refresh(on_cluster, **settings))
    ) as halted:
        for worker in cluster.workers:
            for pid in children(worker.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    assert halted.running.result(DEADLINE).action == "DIFFERENTIAL"
    assert shop.differences() == []


def test_the_application_runs_against_a_connect_server(connect_server, shop: Shop, tmp_path):
    shop.change()
    first = by_python(connect_server.url, shop.dsn, tmp_path, "run").result()
    again = by_python(connect_server.url, shop.dsn, tmp_path, "run").result()
    assert [told["action"] for told in (*first, *again)] == ["DIFFERENTIAL", "NO_DATA"]
    assert shop.differences() == []
