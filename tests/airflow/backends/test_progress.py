"""A long Spark query says in the task's log how far it is; a short one says nothing."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from pyspark.sql.connect.shell.progress import StageInfo

from airflow_provider_pgtrickle.backends.spark_connect import LoggedProgress


def stage(tasks: int, completed: int) -> StageInfo:
    return StageInfo(0, tasks, completed, 0, False)


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
            progress([stage(40, second), stage(2, 0)], 2, "first", False)
        progress([stage(40, 40), stage(2, 2)], 0, "first", True)
        for second in range(12, 16):
            clock.now = float(second)
            progress([stage(1, 0)], 1, "second", False)
    assert caplog.messages == [
        "Spark: 5 of 42 tasks done, 2 running",
        "Spark: 10 of 42 tasks done, 2 running",
    ]
