"""What a Connect server tells of a query that runs, as lines of the task's log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.connect.shell.progress import StageInfo

_log = logging.getLogger(__name__)

#: A small refresh is over before its first line is due.
_EVERY_SECONDS = 5.0


class LoggedProgress:
    """A session's progress handler. The server reports twice a second or so; a log wants less."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._operation: str | None = None
        self._due = 0.0

    def __call__(
        self, stages: Iterable[StageInfo] | None, inflight_tasks: int, operation_id: str | None, done: bool
    ) -> None:
        now = self._clock()
        if operation_id != self._operation:
            self._operation, self._due = operation_id, now + _EVERY_SECONDS
        if done or now < self._due:
            return
        self._due = now + _EVERY_SECONDS
        known = list(stages or ())
        ended, all_tasks = sum(s.num_completed_tasks for s in known), sum(s.num_tasks for s in known)
        _log.info("Spark: %d of %d tasks done, %d running", ended, all_tasks, inflight_tasks)
