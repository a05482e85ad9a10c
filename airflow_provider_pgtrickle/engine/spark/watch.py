"""How far Spark is with an action, told while somebody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from airflow_provider_pgtrickle.engine import progress
from airflow_provider_pgtrickle.engine.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.shell.progress import StageInfo

_EVERY_SECONDS = 0.5


@contextmanager
def watched(spark: SparkSession, group: str) -> Iterator[None]:
    """In the block `progress` hears how far the jobs of this group are; of a Connect session, whatever it runs."""
    if not progress.is_heard():
        yield
    elif is_connect(spark):
        session: Any = spark
        session.registerProgressHandler(_reported)
        try:
            yield
        finally:
            session.removeProgressHandler(_reported)
    else:
        with _asking(spark.sparkContext.statusTracker(), group):
            yield


def _reported(stages: Iterable[StageInfo] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
    """The server's report, which comes twice a second."""
    if known := list(stages or ()):
        progress.tasks(sum(s.num_completed_tasks for s in known), sum(s.num_tasks for s in known), inflight_tasks)


@contextmanager
def _asking(tracker: Any, group: str) -> Iterator[None]:
    """A thread of its own asks the driver, because this one waits for the action."""
    from pyspark import InheritableThread

    ended = threading.Event()

    def ask() -> None:
        while not ended.wait(_EVERY_SECONDS):
            jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)))
            stages = [s for job in jobs for s in map(tracker.getStageInfo, job.stageIds) if s is not None]
            if stages:
                progress.tasks(
                    sum(s.numCompletedTasks for s in stages),
                    sum(s.numTasks for s in stages),
                    sum(s.numActiveTasks for s in stages),
                )

    # The listener is this thread's.
    context = copy_context()
    thread = InheritableThread(target=lambda: context.run(ask), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
