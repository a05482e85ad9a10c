"""The JVM of a classic session that this process started: it ends with an interrupt and when it is out of memory."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: Each JVM with the pid that launched it: a forked child inherits the list but not the JVM.
_launched: list[tuple[subprocess.Popen[Any], int]] = []
# Its shutdown hooks take seconds where the machine has other work.
_END_SECONDS = 30
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def launching() -> Iterator[None]:
    """If the block fails, also by an interrupt, a JVM that was launched in it ends.

    PySpark doesn't expose the process until it answers, so `Popen` is wrapped. The JVM leads a session of its own, so
    that it can be ended with all that it started.
    """
    from pyspark import SparkContext, java_gateway

    def popen(*arguments: Any, preexec_fn: Callable[[], object], **options: Any) -> subprocess.Popen[Any]:
        def prepared() -> None:
            preexec_fn()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

        # An interrupt between the start and the entry in the list would leave a JVM that nobody knows of.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            options |= {"preexec_fn": prepared, "start_new_session": True}
            process: subprocess.Popen[Any] = subprocess.Popen(*arguments, **options)
            _launched.append((process, os.getpid()))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return process

    module: Any = java_gateway
    before, module.Popen = module.Popen, popen
    interrupted = signal.getsignal(signal.SIGINT)
    try:
        yield
    except BaseException:
        if end() and SparkContext._gateway is not None:
            let_go()
        raise
    finally:
        module.Popen = before
    if interrupted not in (None, signal.default_int_handler, signal.getsignal(signal.SIGINT)):
        # PySpark replaces the handler for Ctrl-C, also one that the caller has set.
        signal.signal(signal.SIGINT, interrupted)


def end() -> bool:
    """End the JVM that was launched here at once, with all that it started; whether there was one.

    Whoever waits for its answer then gets an error.
    """
    ours = [process for process, owner in _launched if owner == os.getpid()]
    _launched.clear()
    for process in ours:
        if process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return bool(ours)


def end_when_exhausted(session: SparkSession) -> None:
    """Let the JVM end when one of its threads dies for lack of memory, as Spark's executors do.

    Otherwise it goes on without the thread, and whoever waits for that thread waits for ever: PySpark's `toArrow` for
    `serve-Arrow`, every job for the scheduler. Spark's own requests for memory that may fail don't count.
    """
    java: Any = session.sparkContext._jvm
    only_fatal = java.org.apache.spark.util.SparkUncaughtExceptionHandler(False)
    java.java.lang.Thread.setDefaultUncaughtExceptionHandler(only_fatal)


def has_ended() -> bool:
    """Whether this process had a JVM that is gone. Under spark-submit the JVM is the parent process and isn't ours."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None


def ended_with() -> int | None:
    """The exit code of this process's JVM, where it is ending or has ended; None if it goes on, or isn't ours."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    try:
        return None if process is None else int(process.wait(_END_SECONDS))
    except subprocess.TimeoutExpired:
        return None


def let_go() -> None:
    """Forget a JVM that has ended, so that the next session starts a new one. PySpark itself never does that."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession, SQLContext

    gateway: Any = SparkContext._gateway
    context: Any = SparkContext._active_spark_context
    if context is not None:
        # No JVM is left that could be told to stop; the rest of `stop` is about this process.
        context._jsc = None
        context.stop()
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
    SparkContext._gateway = SparkContext._jvm = None
    gateway.proc.stdin.close()
    gateway.close()
