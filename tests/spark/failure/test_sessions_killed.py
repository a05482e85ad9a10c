"""PostgreSQL sessions end at each step of a refresh; the next refresh makes the content the query's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest

from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.engine.refresh import lease
from tests.spark.failure.shop import DEADLINE, STEPS, Shop, in_thread, until

#: Below this many rows a result comes by the driver, above it from the executors.
WAYS: dict[str, dict[str, Any]] = {"by the driver": {}, "by the executors": {"collect_max_rows": 1}}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("step", STEPS)
def test_a_session_that_ends_at_a_step_loses_nothing_and_doubles_nothing(spark, shop: Shop, step, way):
    shop.change()
    with shop.halted(step, in_thread(lambda: shop.refresh(spark, **WAYS[way]))) as halted:
        halted.terminate()
    failure = halted.failure()
    assert isinstance(failure, PgTrickleError)
    assert not failure.permanent, failure
    shop.change()
    assert shop.refresh(spark, **WAYS[way]).action == "DIFFERENTIAL"
    assert shop.differences() == []
    assert [status for status, _ in shop.history()] == ["COMPLETED", "FAILED", "COMPLETED"]
    assert shop.stages() == []


@pytest.mark.parametrize("way", WAYS)
def test_the_coordinator_ends_during_the_computation(spark, shop: Shop, way):
    shop.change()
    with shop.halted("compute", in_thread(lambda: shop.refresh(spark, **WAYS[way]))) as halted:
        halted.terminate_coordinator()
    failure = halted.failure()
    assert isinstance(failure, PgTrickleError)
    assert not failure.permanent, failure
    assert shop.refresh(spark, **WAYS[way]).rows_inserted > 0
    assert shop.differences() == []


def test_a_transient_failure_is_tried_again_within_the_refresh(spark, shop: Shop):
    shop.change()
    with shop.halted(
        "apply", in_thread(lambda: shop.refresh(spark, retry_attempts=3, retry_base_seconds=0.01))
    ) as halted:
        halted.terminate()
    assert halted.running.result(90).status == "COMPLETED"
    assert shop.differences() == []


def test_two_refreshers_of_one_table_are_one_refresh_and_one_skip(spark, shop: Shop):
    shop.change()
    with shop.halted("compute", in_thread(lambda: shop.refresh(spark))) as halted:
        second = shop.refresh(spark)
        assert (second.action, second.fallback_reason) == ("SKIP", "locked")
    assert halted.running.result(90).action == "DIFFERENTIAL"
    assert shop.differences() == []


@pytest.mark.parametrize("step", ["compute", "apply", "commit"])
def test_a_retry_of_the_same_run_takes_over_and_only_one_of_both_commits(spark, shop: Shop, step, monkeypatch):
    # Both are here in one process, where attempts of one run are side by side and none takes over from another.
    monkeypatch.setattr(lease, "at_work", lambda token: nullcontext())
    shop.change()
    with ThreadPoolExecutor(1) as pool:
        with shop.halted(step, in_thread(lambda: shop.refresh(spark, "run"))) as halted:
            first = shop.lease()
            retry = pool.submit(shop.refresh, spark, "run")
            # It ends the session of the attempt before it; then both go on.
            until(lambda: shop.lease() not in (None, first))
        assert retry.result(DEADLINE).status == "COMPLETED"
    assert isinstance(halted.failure(), PgTrickleError)
    assert shop.differences() == []
    assert sorted(status for status, _ in shop.history()) == ["COMPLETED", "COMPLETED", "FAILED"]


def test_a_duplicate_retry_with_the_same_token_does_nothing_twice(spark, shop: Shop):
    shop.change()
    assert shop.refresh(spark, "run").action == "DIFFERENTIAL"
    assert shop.refresh(spark, "run").action == "NO_DATA"
    assert shop.differences() == []
