"""What a failure means, and how long to wait after it."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle import errors
from airflow_provider_pgtrickle.engine.refresh.failure import Verdict, back_off, judge
from airflow_provider_pgtrickle.engine.settings import Settings


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (errors.TransientFault("deadlock"), Verdict.RETRY),
        (errors.ConnectionFault("gone"), Verdict.RETRY),
        (errors.SyntaxFault("no such column"), Verdict.STOP),
        (errors.PermissionFault("no right"), Verdict.STOP),
        (errors.NotDifferentiable("no key"), Verdict.STOP),
        (errors.InvariantViolated("twice"), Verdict.STOP),
        (errors.RefreshError("division by zero"), Verdict.COUNT),
        (ValueError("a bug"), Verdict.COUNT),
        (errors.LeaseLost("taken"), Verdict.BLAMELESS),
        (errors.EnvironmentFault("no Java"), Verdict.BLAMELESS),
        (errors.NoWorkers("nobody is there"), Verdict.BLAMELESS),
        (errors.UnknownStreamTable("which?"), Verdict.BLAMELESS),
        (KeyboardInterrupt(), Verdict.BLAMELESS),
    ],
)
def test_verdict(error: BaseException, verdict: Verdict) -> None:
    assert judge(error) is verdict


def test_waits_double_up_to_the_longest_with_a_quarter_of_jitter() -> None:
    settings = Settings(retry_base_seconds=1.0, retry_max_seconds=10.0)
    for attempt, base in enumerate([1, 2, 4, 8, 10, 10], start=1):
        waits = [back_off(attempt, settings) for _ in range(200)]
        assert all(0.75 * base <= wait <= 1.25 * base for wait in waits)
        assert max(waits) - min(waits) > 0.2 * base
