"""A long Spark query says in the task's log how far it is; a short one says nothing."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from airflow_provider_pgtrickle.backends.spark_connect import LoggedProgress


@dataclass
class Stage:
    """As the client's `StageInfo`."""

    num_tasks: int
    num_completed_tasks: int


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_line_every_five_seconds_and_none_of_what_is_shorter(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    progress = LoggedProgress(clock)
    with caplog.at_level("INFO"):
        for second in range(12):
            clock.now = float(second)
            progress([Stage(40, second), Stage(2, 0)], 2, "first", False)
        progress([Stage(40, 40), Stage(2, 2)], 0, "first", True)
        for second in range(12, 16):
            clock.now = float(second)
            progress([Stage(1, 0)], 1, "second", False)
    assert caplog.messages == [
        "Spark: 5 of 42 tasks done, 2 running",
        "Spark: 10 of 42 tasks done, 2 running",
    ]
