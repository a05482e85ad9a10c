"""Sends the figures of every refresh to Airflow's metrics (StatsD, Datadog, OpenTelemetry).

| metric | kind | tags |
| --- | --- | --- |
| `pgtrickle.refresh.duration` | timer, ms | stream_table, action |
| `pgtrickle.refresh.action` | counter of refreshes | stream_table, action |
| `pgtrickle.refresh.rows` | counter of rows | stream_table, change (inserted, updated, deleted) |
| `pgtrickle.refresh.rows_read` | counter of rows | stream_table |
| `pgtrickle.refresh.lag` | gauge, s between the content's time and its commit | stream_table |
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from airflow.sdk.observability import stats

from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult


def record(results: Iterable[RefreshResult]) -> None:
    """Send the figures of refreshes that have just been committed."""
    for result in results:
        _record(result)


def _record(result: RefreshResult) -> None:
    table = {"stream_table": result.name}
    by_action = {**table, "action": result.action}
    stats.incr("pgtrickle.refresh.action", tags=by_action)
    stats.timing("pgtrickle.refresh.duration", timedelta(milliseconds=result.duration_ms), tags=by_action)
    rows = {"inserted": result.rows_inserted, "updated": result.rows_updated, "deleted": result.rows_deleted}
    for change, count in rows.items():
        if count:
            stats.incr("pgtrickle.refresh.rows", count, tags={**table, "change": change})
    if result.rows_read:
        stats.incr("pgtrickle.refresh.rows_read", result.rows_read, tags=table)
    if result.data_timestamp is not None:
        lag = (datetime.now(UTC) - result.data_timestamp).total_seconds()
        stats.gauge("pgtrickle.refresh.lag", round(max(lag, 0.0), 3), tags=table)
