"""Fires an event for every refresh that changed rows of a stream table: the trigger for an `AssetWatcher`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.triggers.stream import DEFAULT_POLL_INTERVAL, Observation, RecordTrigger


class StreamTableRefreshedTrigger(RecordTrigger):
    """Fires when a refresh changed rows of `stream_table`, whoever ran it: Airflow, the command line, a script.

    Several refreshes between two reads make one event, that of the newest. A watcher without a cursor, on its first
    start, announces the newest refresh.

    :param stream_table: name of the stream table, `schema.name` or `name` (then in `public`)
    :param postgres_conn_id: the connection of its database
    :param poll_interval: seconds after which the catalog is read even without a notification
    """

    def __init__(
        self,
        *,
        stream_table: str,
        postgres_conn_id: str = "pgtrickle_default",
        poll_interval: float = DEFAULT_POLL_INTERVAL,
    ) -> None:
        super().__init__(postgres_conn_id=postgres_conn_id, poll_interval=poll_interval)
        self.stream_table = stream_table

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            f"{type(self).__module__}.{type(self).__name__}",
            {
                "stream_table": self.stream_table,
                "postgres_conn_id": self.postgres_conn_id,
                "poll_interval": self.poll_interval,
            },
        )

    def news(self, seen: Observation, cursor: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        table = seen.record.tables.get(str(QualifiedName.parse(self.stream_table)))
        # The ids are compared for inequality, because a catalog that was installed anew counts from 1 again.
        if table is None or table.last_change is None or table.last_change.refresh_id == cursor.get("refresh_id"):
            return [], cursor
        event = {"event": "refresh_completed", "stream_table": table.name, **asdict(table.last_change)}
        return [event], {"refresh_id": table.last_change.refresh_id}
