"""Fires an event when somebody asks for something in SQL: the trigger for an `AssetWatcher`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import psycopg
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.triggers.listening import observe

#: An event holds no more names; the catalog has the rest.
_MOST_NAMES = 50

_UNANSWERED = """
SELECT request_id, pgt_schema || '.' || pgt_name FROM pgtrickle.pgt_requests
WHERE answered_at IS NULL AND (%(names)s::text[] IS NULL OR pgt_schema || '.' || pgt_name = ANY(%(names)s))
ORDER BY request_id
"""


class RequestsPendingTrigger(BaseEventTrigger):
    """Fires when requests came that nobody has answered: `pgtrickle.request_refresh()`, `request_declare()`, dbt.

    A DAG that it starts carries them out: that of a graph the refreshes of its tables, one with a
    `StreamTableRequestsOperator` all of them. If they aren't answered after `rearm_seconds`, the event is repeated.

    :param stream_tables: only requests for these; all by default
    :param rearm_seconds: time after which an event that led to no answer is repeated
    """

    def __init__(
        self,
        *,
        postgres_conn_id: str = "pgtrickle_default",
        stream_tables: Sequence[str] | None = None,
        rearm_seconds: float = 300.0,
        poll_interval: float = 30.0,
    ) -> None:
        super().__init__()
        self.postgres_conn_id = postgres_conn_id
        self.stream_tables = list(stream_tables) if stream_tables is not None else None
        self.rearm_seconds = rearm_seconds
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            f"{type(self).__module__}.{type(self).__name__}",
            {
                "postgres_conn_id": self.postgres_conn_id,
                "stream_tables": self.stream_tables,
                "rearm_seconds": self.rearm_seconds,
                "poll_interval": self.poll_interval,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        announced, repeat_at = 0, 0.0
        async for unanswered, _ in observe(self.postgres_conn_id, self.poll_interval, self._read):
            newest = max(unanswered, default=0)
            if newest <= announced and (not unanswered or time.monotonic() < repeat_at):
                continue
            announced, repeat_at = max(newest, announced), time.monotonic() + self.rearm_seconds
            tables = sorted(set(unanswered.values()))
            yield TriggerEvent(
                {"event": "requested", "requests": len(unanswered), "stream_tables": tables[:_MOST_NAMES]}
            )

    async def _read(self, connection: psycopg.AsyncConnection) -> dict[int, str]:
        names = self.stream_tables
        wanted = None if names is None else [str(QualifiedName.parse(name)) for name in names]
        return dict(await (await connection.execute(_UNANSWERED, {"names": wanted})).fetchall())
