"""Fires an event when base tables of a stream table changed, to drive refreshes without a schedule."""

from __future__ import annotations

import time
from typing import Any

from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.triggers.stream import Observation, RecordTrigger

_DEFAULT_POLL_INTERVAL = 2.0


class ChangesPendingTrigger(RecordTrigger):
    """Fires when `stream_table` has at least `min_rows` pending changes, which no refresh has consumed yet.

    After an event the next one waits until a refresh has moved the table's data timestamp. If none does, the event is
    repeated after `rearm_seconds`, so that a failed refresh can't silence the watcher.

    Writers of base tables send no notification, because that would serialize their commits. So this trigger polls; a
    writer that wants to be seen at once may `NOTIFY pg_trickle_alert`.

    :param stream_table: name of the stream table, `schema.name` or `name` (then in `public`)
    :param source_table: count only changes of this base table
    :param min_rows: pending rows from which it fires
    :param rearm_seconds: time after which an event that led to no refresh is repeated
    """

    def __init__(
        self,
        *,
        stream_table: str,
        postgres_conn_id: str = "pgtrickle_default",
        source_table: str | None = None,
        min_rows: int = 1,
        rearm_seconds: float = 300.0,
        poll_interval: float = _DEFAULT_POLL_INTERVAL,
    ) -> None:
        super().__init__(postgres_conn_id=postgres_conn_id, poll_interval=poll_interval)
        self.needs_pending = True
        self.stream_table = stream_table
        self.source_table = source_table
        self.min_rows = min_rows
        self.rearm_seconds = rearm_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            f"{type(self).__module__}.{type(self).__name__}",
            {
                "stream_table": self.stream_table,
                "postgres_conn_id": self.postgres_conn_id,
                "source_table": self.source_table,
                "min_rows": self.min_rows,
                "rearm_seconds": self.rearm_seconds,
                "poll_interval": self.poll_interval,
            },
        )

    def news(self, seen: Observation, cursor: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        name = str(QualifiedName.parse(self.stream_table))
        table = seen.record.tables.get(name)
        if table is None:
            return [], cursor
        only = str(QualifiedName.parse(self.source_table)) if self.source_table else None
        sources = {
            source: rows
            for (stream_table, source), rows in sorted(seen.record.pending.items())
            if stream_table == name and only in (None, source)
        }
        pending_rows = sum(sources.values())
        announced = cursor.get("data_timestamp", "never") == table.data_timestamp
        if pending_rows < self.min_rows or (announced and 0 < cursor["repeat_at"] - time.time() <= self.rearm_seconds):
            return [], cursor
        event = {"event": "changes_pending", "stream_table": name, "pending_rows": pending_rows, "sources": sources}
        return [event], {"data_timestamp": table.data_timestamp, "repeat_at": time.time() + self.rearm_seconds}
