"""A refresh reports what it did: in a result for its caller, and in the catalog's history.

A RUNNING row is written first, so that a run that dies leaves a trace; the outcome completes it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from psycopg import sql
from psycopg.types.json import Jsonb

from airflow_provider_pgtrickle.engine import progress
from airflow_provider_pgtrickle.engine.catalog.locks import HELD, second_half
from airflow_provider_pgtrickle.engine.errors import redact
from airflow_provider_pgtrickle.engine.refresh.cost import GivenUp, spark_memory
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection
from airflow_provider_pgtrickle.engine.settings import Settings


@dataclass(frozen=True)
class RefreshResult:
    """The result of a refresh for one stream table; its history row has the same figures."""

    name: str
    action: str
    """The effective action: NO_DATA, DIFFERENTIAL, FULL, REINITIALIZE, TOPK or SKIP."""
    fallback_reason: str | None = None
    """Why the action is not what was asked for, in words."""
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    source_changes: int = 0
    duration_ms: float = 0.0
    data_timestamp: datetime | None = None
    rows_read: int = 0
    reads: int = 0
    spark_jobs: int = 0
    run_token: str = ""
    way: str | None = None
    """Who computed it: `database`, or through Spark `pushed` or `lowered`; None if nothing was computed."""
    status: str = "COMPLETED"
    held_by: str | None = None
    """The table of its unit for which it was skipped; None if it was not, or for a reason of its own."""

    @property
    def changed(self) -> bool:
        """Whether any row of the stream table has changed."""
        return bool(self.rows_inserted or self.rows_updated or self.rows_deleted)


@dataclass(frozen=True)
class Finished:
    """One table's part in a refresh, for its row of the history."""

    pgt_id: int
    result: RefreshResult
    plan: str
    candidates: Mapping[str, float] | None = None
    """The ways that competed, by what each was predicted to take in milliseconds."""
    actual_ms: float | None = None
    """What this table's computation and its writing took; None if nothing was computed."""
    source_rows: float | None = None
    net_changes: int | None = None
    """The changes that were computed, many of one row as one where they were netted."""
    given_up: GivenUp | None = None
    doubt: float | None = None


_LOST = "The run ended without a word: its process or its database session was killed."


# A plan may carry thousands of pending rows in its SQL.
_LONGEST_PLAN = 20_000


@dataclass
class Trace:
    """The history of one attempt: its rows, and the time that each phase takes."""

    rows: dict[int, int] = field(default_factory=dict)
    """`refresh_id` by stream table."""
    lacking: dict[int, dict[str, float]] = field(default_factory=dict)
    """By stream table, the ways for which memory was too short, with the size: changed rows, or for FULL all rows."""
    spark_memory: str = ""
    phases: dict[str, float] = field(default_factory=dict)
    _start: float = field(default_factory=time.perf_counter)

    def lack(self, pgt_id: int, way: str, size: float, settings: Settings) -> None:
        """Note that memory was too short for a way to refresh a table."""
        self.lacking.setdefault(pgt_id, {})[way] = size
        self.spark_memory = spark_memory(settings)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        progress.phase(name)
        begun = time.perf_counter()
        try:
            yield
        finally:
            spent = (time.perf_counter() - begun) * 1000
            self.phases[name] = round(self.phases.get(name, 0.0) + spent, 3)

    @property
    def total_ms(self) -> float:
        return round((time.perf_counter() - self._start) * 1000, 3)


def start(conn: Connection, ids: Sequence[int], unit: Sequence[str], run: str, initiated_by: str, trace: Trace) -> None:
    """Write the RUNNING rows. The caller holds the tables, so older RUNNING rows belong to dead runs."""
    recover(conn, ids)
    rows = conn.execute(
        "INSERT INTO pgtrickle.pgt_refresh_history (pgt_id, run_token, unit, initiated_by, start_time, status)"
        " SELECT id, %s, %s, %s, pg_catalog.clock_timestamp(), 'RUNNING'"
        " FROM unnest(%s::bigint[]) AS t(id) RETURNING pgt_id, refresh_id",
        (run, list(unit), initiated_by, list(ids)),
    ).fetchall()
    trace.rows = dict(rows)


def recover(conn: Connection, ids: Sequence[int] | None = None) -> int:
    """Mark the RUNNING rows of dead runs as FAILED: those of these tables, or of all tables that no refresh holds."""
    return conn.execute(
        sql.SQL(
            "UPDATE pgtrickle.pgt_refresh_history h SET status = 'FAILED', end_time = pg_catalog.clock_timestamp(),"
            " error_message = %s WHERE status = 'RUNNING' AND (pgt_id = ANY(%s::bigint[]) OR %s::bigint[] IS NULL"
            " AND NOT EXISTS (SELECT FROM {} WHERE l.key = {}"
            # A lock counts only if its role has the right to refresh.
            " AND EXISTS (SELECT FROM pg_catalog.pg_stat_activity a WHERE a.pid = l.pid AND"
            " pg_catalog.has_any_column_privilege(a.usesysid, 'pgtrickle.pgt_stream_tables', 'UPDATE'))))"
        ).format(HELD, second_half(sql.Identifier("h", "pgt_id"))),
        (_LOST, _array(ids), _array(ids)),
    ).rowcount


def finish(conn: Connection, done: Iterable[Finished], trace: Trace) -> None:
    """Complete RUNNING rows."""
    conn.cursor().executemany(
        "UPDATE pgtrickle.pgt_refresh_history SET status = %s, action = %s, fallback_reason = %s, data_timestamp = %s,"
        " end_time = pg_catalog.clock_timestamp(), rows_inserted = %s, rows_updated = %s, rows_deleted = %s,"
        " source_changes = %s, rows_read = %s, reads = %s, spark_jobs = %s, duration_ms = %s,"
        " phases = %s, plan = %s, way = %s, candidates = %s, actual_ms = %s, source_rows = %s,"
        " net_changes = %s,"
        " given_up_ms = %s, given_up_way = %s, doubt = %s,"
        " regime = pgtrickle.pgt_regime(pgt_id) WHERE refresh_id = %s",
        [
            (
                result.status,
                result.action,
                result.fallback_reason,
                result.data_timestamp,
                result.rows_inserted,
                result.rows_updated,
                result.rows_deleted,
                result.source_changes,
                result.rows_read,
                result.reads,
                result.spark_jobs,
                result.duration_ms,
                Jsonb(trace.phases),
                one.plan[:_LONGEST_PLAN],
                result.way,
                None if one.candidates is None else Jsonb(one.candidates),
                one.actual_ms,
                one.source_rows,
                one.net_changes,
                one.given_up.ms if one.given_up else None,
                one.given_up.way if one.given_up else None,
                one.doubt,
                trace.rows[one.pgt_id],
            )
            for one in done
            for result in [one.result]
        ],
    )
    _note_lacking(conn, trace)


def withdraw(conn: Connection, trace: Trace) -> None:
    """Delete the RUNNING rows of an attempt that gives way to others before it did anything."""
    conn.execute("DELETE FROM pgtrickle.pgt_refresh_history WHERE refresh_id = ANY(%s)", (list(trace.rows.values()),))


def fail(conn: Connection, trace: Trace, error: str) -> None:
    """Complete the RUNNING rows of an attempt that failed."""
    conn.execute(
        "UPDATE pgtrickle.pgt_refresh_history SET status = 'FAILED', end_time = pg_catalog.clock_timestamp(),"
        " error_message = %s, duration_ms = %s, phases = %s WHERE refresh_id = ANY(%s)",
        (redact(error), trace.total_ms, Jsonb(trace.phases), list(trace.rows.values())),
    )
    _note_lacking(conn, trace)


def _note_lacking(conn: Connection, trace: Trace) -> None:
    for pgt_id, ways in trace.lacking.items():
        conn.execute(
            "UPDATE pgtrickle.pgt_refresh_history SET lacked = %s, memory = pgtrickle.pgt_memory(%s),"
            " regime = pgtrickle.pgt_regime(pgt_id) WHERE refresh_id = %s",
            (Jsonb(ways), trace.spark_memory, trace.rows[pgt_id]),
        )


def skip(conn: Connection, reasons: Mapping[int, str | None], unit: Sequence[str], run: str, initiated_by: str) -> None:
    """Record a refresh that was not begun: why, by the id of each table."""
    conn.execute(
        "INSERT INTO pgtrickle.pgt_refresh_history"
        " (pgt_id, run_token, unit, initiated_by, start_time, end_time, action, status, fallback_reason, duration_ms)"
        " SELECT id, %s, %s, %s, pg_catalog.clock_timestamp(), pg_catalog.clock_timestamp(), 'SKIP', 'SKIPPED', why, 0"
        " FROM unnest(%s::bigint[], %s::text[]) AS t(id, why)",
        (run, list(unit), initiated_by, list(reasons), list(reasons.values())),
    )


_PRUNE = """
WITH old AS (
    DELETE FROM pgtrickle.pgt_refresh_history h
    WHERE start_time < pg_catalog.now() - %s * interval '1 day' AND status <> 'RUNNING'
      AND EXISTS (SELECT FROM pgtrickle.pgt_refresh_history l WHERE l.pgt_id = h.pgt_id AND l.refresh_id > h.refresh_id)
    RETURNING h.*
), kept AS (
    INSERT INTO pgtrickle.pgt_totals AS t (pgt_id, completed, failed, skipped, rows_inserted, rows_updated,
                                           rows_deleted, duration_ms, max_duration_ms)
    SELECT pgt_id, count(*) FILTER (WHERE o.status = 'COMPLETED'), count(*) FILTER (WHERE o.status = 'FAILED'),
           count(*) FILTER (WHERE o.status = 'SKIPPED'), sum(o.rows_inserted), sum(o.rows_updated), sum(o.rows_deleted),
           coalesce(sum(o.duration_ms) FILTER (WHERE o.status = 'COMPLETED'), 0),
           coalesce(max(o.duration_ms) FILTER (WHERE o.status = 'COMPLETED'), 0)
    FROM old o JOIN pgtrickle.pgt_stream_tables s USING (pgt_id)
    GROUP BY pgt_id
    ON CONFLICT (pgt_id) DO UPDATE SET
        completed = t.completed + excluded.completed, failed = t.failed + excluded.failed,
        skipped = t.skipped + excluded.skipped, rows_inserted = t.rows_inserted + excluded.rows_inserted,
        rows_updated = t.rows_updated + excluded.rows_updated, rows_deleted = t.rows_deleted + excluded.rows_deleted,
        duration_ms = t.duration_ms + excluded.duration_ms,
        max_duration_ms = greatest(t.max_duration_ms, excluded.max_duration_ms)
)
SELECT count(*) FROM old
"""


def prune(conn: Connection, days: int) -> int:
    """Delete the refreshes older than `days`, except each table's last one and those that are running.

    What they add up to is kept.
    """
    row = conn.execute(_PRUNE, (days,)).fetchone()
    return row[0] if row is not None else 0


def _array(ids: Sequence[int] | None) -> list[int] | None:
    return None if ids is None else list(ids)
