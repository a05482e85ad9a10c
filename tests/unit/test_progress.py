"""A long Spark query says in the task's log how far it is; a short one says nothing."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pytest

from airflow_provider_pgtrickle.engine import progress


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_line_every_five_seconds_and_none_of_what_is_shorter(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    with caplog.at_level("INFO"), progress.heard(progress.Logged(logging.getLogger("task"), clock)):
        progress.phase("compute")
        for second in range(12):
            clock.now = float(second)
            progress.tasks(second, 42, 2)
        # Another computation, which is over before its first line.
        progress.phase("compute")
        for second in range(12, 16):
            clock.now = float(second)
            progress.tasks(0, 1, 1)
    assert caplog.messages == [
        "Spark: 5 of 42 tasks done, 2 running",
        "Spark: 10 of 42 tasks done, 2 running",
    ]


def test_nobody_who_listens_costs_nothing() -> None:
    assert not progress.is_heard()
    progress.tasks(1, 2, 1)
    with progress.heard(lambda what, name: None):
        assert progress.is_heard()
