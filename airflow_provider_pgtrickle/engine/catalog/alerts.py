"""Alerts by NOTIFY on `pg_trickle_alert`. They are hints for listeners; the record is the catalog."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from psycopg import sql

from airflow_provider_pgtrickle.engine.errors import redact

if TYPE_CHECKING:
    from psycopg import Connection

CHANNEL = "pg_trickle_alert"
#: Tells when the capture of a source changes between triggers and the WAL.
TRANSITIONS = "pg_trickle_cdc_transition"

#: Whether `stale_data` is due for a row `i` of `pgtrickle.stream_tables_info`: at twice the schedule, because every
#: table is as old as its schedule just before its refresh. A warm table takes twice its time; one that is held back or
#: refreshed on demand may be old.
STALE = sql.SQL(
    "i.status = 'ACTIVE' AND NOT i.is_gated AND i.effective_tier IN ('hot', 'warm')"
    " AND coalesce(i.staleness > CASE i.effective_tier WHEN 'warm' THEN 4 ELSE 2 END * i.effective_schedule, false)"
)

# A payload holds 8,000 bytes. Texts are cut well below that, because a character may take four bytes.
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
    CONTENT_DIFFERS = "content_differs"
    REQUESTED = "requested"
    APPEND_ONLY_ENDED = "append_only_ended"


def tell_of_stale(conn: Connection, names: Sequence[str]) -> list[str]:
    """Announce those of the named tables that fell behind their schedule; their names."""
    stale = conn.execute(
        sql.SQL(
            "SELECT i.name, extract(epoch FROM i.staleness)::float8, i.data_timestamp"
            " FROM pgtrickle.stream_tables_info i WHERE i.name = ANY(%s) AND {stale} ORDER BY i.name"
        ).format(stale=STALE),
        (list(names),),
    ).fetchall()
    for name, seconds, data_timestamp in stale:
        send(conn, Event.STALE_DATA, name, staleness_seconds=round(seconds, 1), data_timestamp=data_timestamp)
    return [name for name, _, _ in stale]


def send(conn: Connection, event: Event, stream_table: str, **details: Any) -> None:
    """Announce an event; listeners hear of it when `conn`'s transaction commits."""
    payload = {"event": event, "stream_table": stream_table} | {
        name: redact(value)[:_LONGEST_TEXT] if isinstance(value, str) else value for name, value in details.items()
    }
    conn.execute("SELECT pg_catalog.pg_notify(%s, %s)", (CHANNEL, json.dumps(payload, default=str)))


def tell_of_transition(conn: Connection, source: str, old_mode: str, new_mode: str, reason: str | None) -> None:
    """Announce that a source is captured in another way; listeners hear of it when the transaction commits."""
    payload = {
        "event": "transition_complete" if new_mode == "WAL" else "transition_back",
        "source_table": source,
        "old_mode": old_mode,
        "new_mode": new_mode,
        "reason": redact(reason)[:_LONGEST_TEXT] if reason else None,
    }
    conn.execute("SELECT pg_catalog.pg_notify(%s, %s)", (TRANSITIONS, json.dumps(payload)))
