"""NOTIFY on `pg_trickle_alert`: a hint for whoever listens, never the record."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

from airflow_provider_pgtrickle.errors import redact
from airflow_provider_pgtrickle.refresh.snapshot import Connection

CHANNEL = "pg_trickle_alert"

# A payload holds 8,000 bytes; texts are cut well below, in characters of up to four bytes.
_LONGEST_TEXT = 1000


class Event(StrEnum):
    STALE_DATA = "stale_data"
    AUTO_SUSPENDED = "auto_suspended"
    RESUMED = "resumed"
    REINITIALIZE_NEEDED = "reinitialize_needed"
    BUFFER_GROWTH_WARNING = "buffer_growth_warning"
    REFRESH_COMPLETED = "refresh_completed"
    REFRESH_FAILED = "refresh_failed"
    DIAMOND_PARTIAL_FAILURE = "diamond_partial_failure"


def send(conn: Connection, event: Event, stream_table: str, **details: Any) -> None:
    """Announce an event; listeners hear of it when `conn`'s transaction commits."""
    payload = {"event": event, "stream_table": stream_table} | {
        name: redact(value)[:_LONGEST_TEXT] if isinstance(value, str) else value for name, value in details.items()
    }
    conn.execute("SELECT pg_catalog.pg_notify(%s, %s)", (CHANNEL, json.dumps(payload, default=str)))
