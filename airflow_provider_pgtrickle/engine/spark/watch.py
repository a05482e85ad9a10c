"""While an action of Spark runs, somebody watches it: tells how far it is, and ends it where it would not end itself.

Spark waits for executors without limit: after its last worker has gone it says so in its log, and goes on waiting. And
it computes what it was given, however long that takes.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from airflow_provider_pgtrickle.engine import progress
from airflow_provider_pgtrickle.engine.errors import NoWorkers, OutOfTime
from airflow_provider_pgtrickle.engine.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.shell.progress import StageInfo

_EVERY_SECONDS = 0.5
# PostgreSQL is asked so often before a wait is over.
_GLANCES = 20


@dataclass(frozen=True)
class Limits:
    """When an action is ended."""

    wait_seconds: float = 0.0
    """After so long in which there are tasks and nobody has one; 0 for never."""
    ends_at: float | None = None
    """At this moment of the monotonic clock."""
    is_at_work: Callable[[], bool] | None = None
    """Whether a task has a session of the database. Asked where PostgreSQL computes, so that each task has one, and of
    a Connect session: its server counts tasks as running, or even as done, whose workers have died."""


@dataclass(frozen=True)
class _Tasks:
    """How far an action is."""

    done: int = 0
    of: int = 0
    running: int = 0

    @property
    def wait(self) -> bool:
        """Whether there is something to do, and nobody does it."""
        return self.done < self.of and not self.running


@contextmanager
def watched(spark: SparkSession, group: str, limits: Limits) -> Iterator[None]:
    """In the block `progress` hears how far the jobs of this group are; of a Connect session, what this thread runs.

    An action that exceeds a limit is cancelled, and the block ends with `NoWorkers` or `OutOfTime`.
    """
    with _asking(spark, group) as (ask, cancel):
        watch = _Watch(ask, cancel, limits, _thread_for(spark))
        try:
            with watch.going_on():
                yield
        except Exception as error:
            if watch.verdict is None:
                raise
            raise watch.verdict from error


@contextmanager
def _asking(spark: SparkSession, group: str) -> Iterator[tuple[Callable[[], _Tasks], Callable[[], object]]]:
    """The functions that say how far the action is, and that cancel it."""
    if not is_connect(spark):
        context: Any = spark.sparkContext
        tracker = context.statusTracker()
        yield lambda: _told_by(tracker, group), lambda: context.cancelJobGroup(group)
        return
    session: Any = spark
    # A handler of its own for each action, because the session calls each of them for whatever any thread runs.
    thread, last, tag = threading.get_ident(), [_Tasks()], f"pgtrickle-{uuid.uuid4()}"

    def report(stages: Iterable[StageInfo] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        # The server reports what has changed, in the thread that waits for the operation.
        if threading.get_ident() == thread and (known := list(stages or ())):
            of = sum(s.num_tasks for s in known)
            last[0] = _Tasks(sum(s.num_completed_tasks for s in known), of, inflight_tasks)

    session.registerProgressHandler(report)
    session.addTag(tag)
    try:
        yield lambda: last[0], lambda: session.interruptTag(tag)
    finally:
        session.removeTag(tag)
        session.removeProgressHandler(report)


def _thread_for(spark: SparkSession) -> type[threading.Thread]:
    """A thread that asks a driver in this process has one of the JVM's, which Spark's own kind gives back.

    Through Connect it asks nothing that depends on the thread.
    """
    if is_connect(spark):
        return threading.Thread
    from pyspark import InheritableThread

    return InheritableThread


def _told_by(tracker: Any, group: str) -> _Tasks:
    jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)))
    # What of a job is done already, or not needed, is in it as well.
    stages = [s for job in jobs for s in map(tracker.getStageInfo, job.stageIds) if s is not None]
    return _Tasks(
        sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages), sum(s.numActiveTasks for s in stages)
    )


class _Watch:
    """A thread of its own asks, because the one that started the action waits for it."""

    def __init__(
        self,
        ask: Callable[[], _Tasks],
        cancel: Callable[[], object],
        limits: Limits,
        kind: type[threading.Thread] = threading.Thread,
    ) -> None:
        self._ask, self._cancel, self._limits, self._kind = ask, cancel, limits, kind
        self._ended = threading.Event()
        self.verdict: OutOfTime | NoWorkers | None = None
        """Why the action was cancelled."""

    @contextmanager
    def going_on(self) -> Iterator[None]:
        # The listener is this thread's.
        context = copy_context()
        thread = self._kind(target=lambda: context.run(self._look), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _look(self) -> None:
        since, before, looked, is_at_work = None, _Tasks(), -inf, True
        # An action that is short isn't asked about.
        while not self._ended.wait(self._pause()):
            now = monotonic()
            if self._limits.ends_at is not None and now >= self._limits.ends_at:
                return self._end(OutOfTime("Spark has not computed the change in time"))
            wait = self._limits.wait_seconds
            if not (wait or progress.is_heard()):
                continue
            try:
                tasks = self._ask()
                if self._limits.is_at_work is not None and wait and now - looked >= wait / _GLANCES:
                    is_at_work, looked = self._limits.is_at_work(), now
            except Exception:  # the driver or the database may be gone, which the action itself reports
                return None
            if tasks.of:
                progress.tasks(tasks.done, tasks.of, tasks.running)
            since = (since or now) if (tasks.wait or not is_at_work) and tasks == before else None
            before = tasks
            if wait and since is not None and now - since >= wait:
                return self._end(
                    NoWorkers(
                        f"Nobody has taken a task of this refresh for {wait:.0f} s:"
                        f" {tasks.done} of {tasks.of} are done, and Spark has no free executor"
                        if tasks.wait
                        else f"Nobody has been at work on this refresh for {wait:.0f} s: no task has a session of the"
                        " database, so its workers have gone",
                        remedy="See whether its cluster has workers, and cores for this application;"
                        " spark_wait_seconds says how long to wait for them.",
                    )
                )
        return None

    def _pause(self) -> float:
        if self._limits.ends_at is None:
            return _EVERY_SECONDS
        return max(min(_EVERY_SECONDS, self._limits.ends_at - monotonic()), 0.001)

    def _end(self, verdict: OutOfTime | NoWorkers) -> None:
        if not self._ended.is_set():
            self.verdict = verdict
            # A driver that can't be told has gone, and the action with it.
            with suppress(Exception):
                self._cancel()
