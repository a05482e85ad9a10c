"""What a metrics back end receives of a refresh."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk.observability import stats

from airflow_provider_pgtrickle import metrics
from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult


class Received:
    """A metrics back end that keeps what it gets."""

    def __init__(self) -> None:
        self.metrics: list[tuple[str, Any, dict[str, Any]]] = []

    def incr(self, stat: str, count: int = 1, rate: float = 1, *, tags: dict[str, Any]) -> None:
        self.metrics.append((stat, count, tags))

    def timing(self, stat: str, dt: timedelta, *, tags: dict[str, Any]) -> None:
        self.metrics.append((stat, dt.total_seconds(), tags))

    def gauge(self, stat: str, value: float, rate: float = 1, delta: bool = False, *, tags: dict[str, Any]) -> None:
        self.metrics.append((stat, value, tags))


@pytest.fixture
def received() -> Iterator[Received]:
    backend = Received()

    def factory() -> Any:
        return backend

    stats.initialize(factory=factory, export_legacy_names=True)
    yield backend
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger

    stats.initialize(factory=NoStatsLogger, export_legacy_names=True)


def test_a_refresh_is_its_action_duration_rows_and_lag(received: Received) -> None:
    minute_ago = datetime.now(UTC) - timedelta(minutes=1)
    metrics.record(
        [
            RefreshResult(
                "public.totals",
                "DIFFERENTIAL",
                rows_inserted=2,
                rows_deleted=1,
                duration_ms=1500,
                rows_read=10,
                data_timestamp=minute_ago,
            )
        ]
    )
    table = {"stream_table": "public.totals"}
    assert received.metrics[:5] == [
        ("pgtrickle.refresh.action", 1, {**table, "action": "DIFFERENTIAL"}),
        ("pgtrickle.refresh.duration", 1.5, {**table, "action": "DIFFERENTIAL"}),
        ("pgtrickle.refresh.rows", 2, {**table, "change": "inserted"}),
        ("pgtrickle.refresh.rows", 1, {**table, "change": "deleted"}),
        ("pgtrickle.refresh.rows_read", 10, table),
    ]
    name, lag, tags = received.metrics[5]
    assert (name, tags) == ("pgtrickle.refresh.lag", table)
    assert 60 <= lag < 90


def test_a_refresh_without_changes_counts_no_rows(received: Received) -> None:
    metrics.record([RefreshResult("public.totals", "NO_DATA")])
    assert [name for name, _, _ in received.metrics] == ["pgtrickle.refresh.action", "pgtrickle.refresh.duration"]
