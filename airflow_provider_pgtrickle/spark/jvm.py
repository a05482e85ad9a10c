"""The JVM of a classic session that this process started: that it ends when it is out of memory, and what then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
