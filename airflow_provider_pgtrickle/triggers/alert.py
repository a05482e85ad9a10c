"""Fires an event for every alert: a table is stale, suspended or to be reinitialized, buffers grow, refreshes fail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from airflow_provider_pgtrickle.engine.catalog.alerts import Event
from airflow_provider_pgtrickle.engine.catalog.records import HALTED_STATUSES
from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.triggers.record import Record, TableState
from airflow_provider_pgtrickle.triggers.stream import DEFAULT_POLL_INTERVAL, Observation, RecordTrigger

#: The events that a person should act on; `resumed` and `refresh_completed` are good news, `requested` is for servers.
_OTHERS = (Event.RESUMED, Event.REFRESH_COMPLETED, Event.REQUESTED)
ALERTS: tuple[str, ...] = tuple(event.value for event in Event if event not in _OTHERS)


class AlertTrigger(RecordTrigger):
    """Fires for the alerts named in `events`, each once for as long as its condition lasts.

    Conditions that the catalog shows (stale, suspended, to be reinitialized, failed, differing, no longer append-only,
    buffers grown) are read there, so an alert that was sent while nobody listened is announced on the next connect.
    Only `diamond_partial_failure` is passed on as it arrives; its tables also show `refresh_failed`.

    :param events: names of alerts, all by default
    :param stream_tables: only alerts of these; all by default
    """

    def __init__(
        self,
        *,
        postgres_conn_id: str = "pgtrickle_default",
        events: Sequence[str] = ALERTS,
        stream_tables: Sequence[str] | None = None,
        poll_interval: float = DEFAULT_POLL_INTERVAL,
    ) -> None:
        super().__init__(postgres_conn_id=postgres_conn_id, poll_interval=poll_interval)
        unknown = sorted(set(events) - set(ALERTS))
        if unknown:
            raise UsageError(f"There is no alert named {unknown[0]!r}", remedy=f"Known: {', '.join(ALERTS)}.")
        self.needs_pending = Event.BUFFER_GROWTH_WARNING in events
        self.buffer_warning_rows = Settings.load().change_buffer_warning_rows
        self.events = list(events)
        self.stream_tables = list(stream_tables) if stream_tables is not None else None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            f"{type(self).__module__}.{type(self).__name__}",
            {
                "postgres_conn_id": self.postgres_conn_id,
                "events": self.events,
                "stream_tables": self.stream_tables,
                "poll_interval": self.poll_interval,
            },
        )

    def news(self, seen: Observation, cursor: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        announced: dict[str, int] = cursor.get("announced", {})
        # The cursor keeps only conditions that last, so one that ended is announced again when it comes back.
        standing: dict[str, int] = {}
        events: list[dict[str, Any]] = []
        for event, table, identity, details in _conditions(seen.record, self.buffer_warning_rows):
            if not self._wanted(event.value, table):
                continue
            key = f"{event.value} {table} {details.get('source', '')}".rstrip()
            standing[key] = identity
            if announced.get(key) != identity:
                events.append({"event": event.value, "stream_table": table, **details})
        for alert in seen.alerts:
            if alert.event == Event.DIAMOND_PARTIAL_FAILURE and self._wanted(alert.event, alert.stream_table):
                events.append({"event": alert.event, "stream_table": alert.stream_table, **alert.details})
        return events, {"announced": standing}

    def _wanted(self, event: str, table: str | None) -> bool:
        if event not in self.events:
            return False
        if self.stream_tables is None:
            return True
        return table in {str(QualifiedName.parse(name)) for name in self.stream_tables}


def _conditions(record: Record, buffer_warning_rows: int) -> Iterable[tuple[Event, str, int, dict[str, Any]]]:
    """Every condition that lasts: alert, stream table, a number that tells it from an earlier one, and details."""
    for table in record.tables.values():
        if table.stale:
            yield Event.STALE_DATA, table.name, 0, {"data_timestamp": table.data_timestamp}
        if table.status in HALTED_STATUSES and table.consecutive_errors > 0:
            yield Event.AUTO_SUSPENDED, table.name, 0, _failure(table)
        if table.needs_reinit:
            yield Event.REINITIALIZE_NEEDED, table.name, 0, {"reason": table.reinit_reason}
        if table.last_failure and table.consecutive_errors > 0:
            yield Event.REFRESH_FAILED, table.name, table.last_failure, _failure(table)
        if table.differed:
            yield Event.CONTENT_DIFFERS, table.name, table.differed, {}
        if table.append_only_ended:
            yield Event.APPEND_ONLY_ENDED, table.name, 0, {"reason": table.append_only_ended}
    for (stream_table, source), rows in sorted(record.pending.items()):
        if rows > buffer_warning_rows:
            yield Event.BUFFER_GROWTH_WARNING, stream_table, 0, {"source": source, "pending_rows": rows}


def _failure(table: TableState) -> dict[str, Any]:
    return {"consecutive_errors": table.consecutive_errors, "error": table.last_error}
