"""The JVM of a classic session that this process started: that it ends when it is out of memory, and what then."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: With the process that launched it: a fork of that has the list, and not the JVM.
_launched: list[tuple[subprocess.Popen[Any], int]] = []
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def launching() -> Iterator[None]:
    """A JVM that is launched in the block ends with it where the block fails, by an interrupt too.

    PySpark keeps the process to itself until it answers, so it is caught where it is made. It leads a session of its
    own, by which it and all that it started can be ended.
    """
    from pyspark import SparkContext, java_gateway

    def popen(*arguments: Any, preexec_fn: Callable[[], object], **options: Any) -> subprocess.Popen[Any]:
        def prepared() -> None:
            preexec_fn()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

        # No interrupt between its birth and the note of it: nobody would know of it.
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
        # PySpark takes Ctrl-C for itself, also from whoever has a way of their own.
        signal.signal(signal.SIGINT, interrupted)


def end() -> bool:
    """End the JVM that was launched here at once, and all that it started; whether there was one.

    Whoever waits for its answer learns that none will come.
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
    """Let the JVM end when a thread of it dies for want of memory, as Spark's executors do.

    Else it goes on without the thread, and whoever waits for that one's answer waits for ever: PySpark's `toArrow`
    for its `serve-Arrow`, every job for the scheduler. Memory that Spark asks for and can do without is no such death.
    """
    java: Any = session.sparkContext._jvm
    only_fatal = java.org.apache.spark.util.SparkUncaughtExceptionHandler(False)
    java.java.lang.Thread.setDefaultUncaughtExceptionHandler(only_fatal)


def has_ended() -> bool:
    """Whether this process had a JVM that is gone. Under spark-submit the JVM is the parent, and None of ours."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None


def let_go() -> None:
    """Forget a JVM that has ended, which PySpark itself never does, so that the next session starts a new one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession, SQLContext

    gateway: Any = SparkContext._gateway
    context: Any = SparkContext._active_spark_context
    if context is not None:
        # There is nobody to be asked to stop; the rest of `stop` is about this process.
        context._jsc = None
        context.stop()
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
    SparkContext._gateway = SparkContext._jvm = None
    gateway.proc.stdin.close()
    gateway.close()
