"""What keeps a driver's heap level, however many refreshes its JVM has run.

Measured with TPC-H's 22 queries, 88 refreshes in one session: `docs/how-to/tuning.md` has the figures.
"""

from __future__ import annotations

#: May be set on a running session, a Connect server's and the caller's own too.
ON_SESSION = {
    # Spark keeps the text of every plan it ran, and writes it anew at each step of an adaptive one. A part that is
    # kept stands in it wherever it is read: 38 million characters for TPC-H's q02.
    "spark.sql.maxPlanStringLength": "20000",
    # Else each part that is kept gets a clone of the session, with all its views, in which to be planned, and the
    # threads that worked for it hold the clone for a minute after.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
}

#: Taken only when a JVM starts.
AT_START = {
    # The smallest table to be broadcast takes a page, by default 32 MB of a heap of 1 GB.
    "spark.buffer.pageSize": "2m",
    # What its UI, which nobody looks at, would show of the past.
    "spark.sql.ui.retainedExecutions": "50",
    "spark.ui.retainedStages": "500",
    "spark.ui.retainedTasks": "2000",
}
