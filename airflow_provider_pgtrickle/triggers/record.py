"""The record behind the notifications: the state of every stream table in the catalog at one instant."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from airflow_provider_pgtrickle.engine.catalog import alerts

# A row's version (xmin) shows whether a table has changed since, so that its history need not be read again.
_TABLES = sql.SQL("""
SELECT st.pgt_id, st.pgt_schema, st.pgt_name, st.xmin::text AS row_version, st.status, st.needs_reinit,
       st.reinit_reason, st.data_timestamp, st.consecutive_errors, st.last_error,
       {stale} AS stale, CASE WHEN st.append_only THEN st.append_only_ended END AS append_only_ended,
       CASE WHEN i.verified = 'DIFFERENT' THEN extract(epoch FROM i.verified_at)::bigint ELSE 0 END AS differed
FROM pgtrickle.pgt_stream_tables st
JOIN pgtrickle.stream_tables_info i ON i.pgt_id = st.pgt_id
ORDER BY st.pgt_schema, st.pgt_name
""").format(stale=alerts.STALE)

# Refreshes of one table hold its lock, so their ids commit in order, and no smaller id can appear later.
_LAST_CHANGE = """
SELECT t.pgt_id, h.refresh_id, h.action, h.rows_inserted, h.rows_updated, h.rows_deleted, h.data_timestamp
FROM unnest(%(ids)s::bigint[], %(after)s::bigint[]) AS t(pgt_id, after)
CROSS JOIN LATERAL (
    SELECT * FROM pgtrickle.pgt_refresh_history
    WHERE pgt_id = t.pgt_id AND refresh_id > t.after AND status = 'COMPLETED'
      AND coalesce(rows_inserted, 0) + coalesce(rows_updated, 0) + coalesce(rows_deleted, 0) > 0
    ORDER BY refresh_id DESC
    LIMIT 1
) h
"""

_LAST_FAILURE = """
SELECT t.pgt_id, h.refresh_id
FROM unnest(%(ids)s::bigint[]) AS t(pgt_id)
CROSS JOIN LATERAL (
    SELECT refresh_id FROM pgtrickle.pgt_refresh_history
    WHERE pgt_id = t.pgt_id AND status = 'FAILED'
    ORDER BY refresh_id DESC
    LIMIT 1
) h
"""

_PENDING = "SELECT stream_table, source_table, pending_rows FROM pgtrickle.change_buffer_sizes() WHERE pending_rows > 0"


@dataclass(frozen=True)
class Change:
    """The newest refresh of a stream table that changed rows."""

    refresh_id: int
    action: str
    rows_inserted: int
    rows_updated: int
    rows_deleted: int
    data_timestamp: str | None


@dataclass(frozen=True)
class TableState:
    id: int
    name: str
    """`schema.name`."""
    row_version: str
    status: str
    needs_reinit: bool
    reinit_reason: str | None
    data_timestamp: str | None
    consecutive_errors: int
    last_error: str | None
    stale: bool
    differed: int = 0
    """The time, in seconds since 1970, at which its last verification found a difference; 0 if it found none."""
    append_only_ended: str | None = None
    """What ended its declaration `append_only`; None while it holds."""
    last_change: Change | None = None
    last_failure: int = 0
    """The refresh id of the newest failed refresh, 0 where none failed yet."""


@dataclass(frozen=True)
class Record:
    tables: dict[str, TableState] = field(default_factory=dict)
    """The tables' states by `schema.name`."""
    pending: dict[tuple[str, str], int] = field(default_factory=dict)
    """Pending rows by (stream table, source), where there are any."""


async def read(connection: psycopg.AsyncConnection, before: Record | None, *, with_pending: bool) -> Record:
    """The record now. The history of tables that haven't changed since `before` isn't read again."""
    known = {table.id: table for table in before.tables.values()} if before else {}
    async with connection.cursor(row_factory=dict_row) as cursor:
        rows = await (await cursor.execute(_TABLES)).fetchall()
        touched = [
            row["pgt_id"]
            for row in rows
            if row["pgt_id"] not in known or known[row["pgt_id"]].row_version != row["row_version"]
        ]
        changes: dict[int, Change] = {}
        failures: dict[int, int] = {}
        if touched:
            after = [_known_change(known.get(pgt_id)) for pgt_id in touched]
            await cursor.execute(_LAST_CHANGE, {"ids": touched, "after": after})
            changes = {row.pop("pgt_id"): _change(row) for row in await cursor.fetchall()}
            await cursor.execute(_LAST_FAILURE, {"ids": touched})
            failures = {row["pgt_id"]: row["refresh_id"] for row in await cursor.fetchall()}
        pending: dict[tuple[str, str], int] = {}
        if with_pending:
            await cursor.execute(_PENDING)
            pending = {
                (row["stream_table"], row["source_table"]): row["pending_rows"] for row in await cursor.fetchall()
            }
    states = []
    for row in rows:
        state = _state(row, known.get(row["pgt_id"]))
        if state.id in touched:
            state = replace(
                state,
                last_change=changes.get(state.id, state.last_change),
                last_failure=failures.get(state.id, state.last_failure),
            )
        states.append(state)
    return Record({state.name: state for state in states}, pending)


def _known_change(state: TableState | None) -> int:
    return state.last_change.refresh_id if state and state.last_change else 0


def _change(row: dict[str, Any]) -> Change:
    return Change(
        refresh_id=row["refresh_id"],
        action=row["action"],
        rows_inserted=row["rows_inserted"] or 0,
        rows_updated=row["rows_updated"] or 0,
        rows_deleted=row["rows_deleted"] or 0,
        data_timestamp=row["data_timestamp"].isoformat() if row["data_timestamp"] else None,
    )


def _state(row: dict[str, Any], before: TableState | None) -> TableState:
    return TableState(
        id=row["pgt_id"],
        name=f"{row['pgt_schema']}.{row['pgt_name']}",
        row_version=row["row_version"],
        status=row["status"],
        needs_reinit=bool(row["needs_reinit"]),
        reinit_reason=row["reinit_reason"],
        data_timestamp=row["data_timestamp"].isoformat() if row["data_timestamp"] else None,
        consecutive_errors=row["consecutive_errors"] or 0,
        last_error=row["last_error"],
        stale=bool(row["stale"]),
        differed=row["differed"],
        append_only_ended=row["append_only_ended"],
        last_change=before.last_change if before else None,
        last_failure=before.last_failure if before else 0,
    )
