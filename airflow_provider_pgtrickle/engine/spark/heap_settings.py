"""Spark settings that keep a driver's heap from growing, however many refreshes its JVM has run.

Measured with TPC-H's 22 queries, 88 refreshes in one session: `docs/how-to/tuning.md` has the figures.
"""

from __future__ import annotations

#: These may be set on a running session, also on a Connect server's or the caller's own.
ON_SESSION = {
    # Spark keeps the text of every plan, and writes it again at each step of an adaptive plan. A cached subquery is in
    # it as often as it is read: 38 million characters for TPC-H's q02.
    "spark.sql.maxPlanStringLength": "20000",
    # Without this each cached subquery is planned in a clone of the session with all its views, and the threads that
    # worked for it hold the clone for another minute.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
}

#: These count only when a JVM starts.
AT_START = {
    # Even the smallest broadcast table takes a page: by default 32 MB of a heap of 1 GB.
    "spark.buffer.pageSize": "2m",
    # Spark keeps the past for its UI, which is off.
    "spark.sql.ui.retainedExecutions": "50",
    "spark.ui.retainedStages": "500",
    "spark.ui.retainedTasks": "2000",
}
