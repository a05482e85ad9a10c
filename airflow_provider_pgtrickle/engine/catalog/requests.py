"""What SQL asked for: rows of `pgt_requests`, each begun by whoever works, and answered once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from airflow_provider_pgtrickle.engine.errors import redact
from airflow_provider_pgtrickle.engine.names import QualifiedName

DECLARE, REFRESH, DROP, ALTER = "DECLARE", "REFRESH", "DROP", "ALTER"

#: First half of the key of a request's lock, "pgrq" in ASCII. It is held by the session that carries the request out.
_LOCK_SPACE = int.from_bytes(b"pgrq")
#: After so many begins without an answer a request is the reason that its processes die.
MOST_BEGUN = 3

# The lock is tried in the order of the numbers, one by one: what was asked for first is done first.
_NEXT = """
SELECT request_id, kind, pgt_schema, pgt_name, query, options, search_path, force_full, initialize, begun
FROM pgtrickle.pgt_requests
WHERE answered_at IS NULL AND request_id > %(after)s
  AND (%(kinds)s::text[] IS NULL OR kind = ANY(%(kinds)s))
  AND (%(names)s::text[] IS NULL OR pgt_schema || '.' || pgt_name = ANY(%(names)s))
ORDER BY request_id LIMIT 1
"""
_KEY = sql.SQL("{}, (%s::bigint %% 2147483647)::int").format(sql.Literal(_LOCK_SPACE))
# Anybody who may connect can take an advisory lock; only who may answer is believed to be at work.
_RIGHTFUL_HOLDER = sql.SQL("""
SELECT FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid = {}
  AND l.objid::bigint = %s::bigint %% 2147483647
  AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
  AND l.pid <> pg_catalog.pg_backend_pid()
  AND pg_catalog.has_any_column_privilege(a.usesysid, 'pgtrickle.pgt_requests', 'UPDATE')
""").format(sql.Literal(_LOCK_SPACE))

# A refresh that began after the request was seen is its answer, whoever ran it. One that began earlier may not know
# what the asking transaction did. Who serves the request tries a failed one again, and says himself when he gives up.
_SETTLE = """
WITH answered AS (
    SELECT r.request_id, h.*
    FROM pgtrickle.pgt_requests r
    JOIN pgtrickle.pgt_stream_tables t USING (pgt_schema, pgt_name)
    CROSS JOIN LATERAL (
        SELECT h.refresh_id, h.status AS outcome, h.action, h.fallback_reason, h.rows_inserted, h.rows_updated,
               h.rows_deleted, h.duration_ms, h.data_timestamp, h.error_message
        FROM pgtrickle.pgt_refresh_history h
        WHERE h.pgt_id = t.pgt_id AND h.start_time >= r.seen_at
          AND (h.status = 'FAILED' AND r.status = 'PENDING' OR h.status = 'COMPLETED'
               AND (NOT r.force_full OR h.action IN ('FULL', 'REINITIALIZE', 'IMMEDIATE')))
        ORDER BY h.refresh_id LIMIT 1
    ) h
    WHERE r.kind = 'REFRESH' AND r.answered_at IS NULL
      AND (%(names)s::text[] IS NULL OR r.pgt_schema || '.' || r.pgt_name = ANY(%(names)s))
)
UPDATE pgtrickle.pgt_requests r
SET status = CASE a.outcome WHEN 'COMPLETED' THEN 'DONE' ELSE 'FAILED' END,
    answered_at = pg_catalog.clock_timestamp(),
    error = CASE a.outcome WHEN 'FAILED' THEN coalesce(a.error_message, 'The refresh failed.') END,
    answer = CASE a.outcome WHEN 'COMPLETED' THEN pg_catalog.jsonb_build_object(
        'stream_table', r.pgt_schema || '.' || r.pgt_name, 'action', a.action, 'fallback_reason', a.fallback_reason,
        'rows_inserted', a.rows_inserted, 'rows_updated', a.rows_updated, 'rows_deleted', a.rows_deleted,
        'duration_ms', a.duration_ms, 'data_timestamp', a.data_timestamp, 'refresh_id', a.refresh_id) END
FROM answered a WHERE a.request_id = r.request_id AND r.answered_at IS NULL
RETURNING r.request_id
"""


@dataclass(frozen=True)
class Request:
    """An unanswered row of `pgt_requests`."""

    request_id: int
    kind: str
    pgt_schema: str
    pgt_name: str
    query: str | None
    options: dict[str, Any]
    search_path: str | None
    force_full: bool
    initialize: bool
    begun: int

    @property
    def table(self) -> QualifiedName:
        return QualifiedName(self.pgt_schema, self.pgt_name)

    def __str__(self) -> str:
        what = "refresh in full" if self.force_full else self.kind.lower()
        return f"request {self.request_id}: {what} {self.table}"


@dataclass(frozen=True)
class Wanted:
    """Which requests somebody carries out: of these kinds, for these tables by `schema.name`; None means all."""

    kinds: tuple[str, ...] | None = None
    names: tuple[str, ...] | None = None


ALL = Wanted()


def take(conn: Connection, beside: Collection[int] = (), wanted: Wanted = ALL) -> Request | None:
    """Begin the oldest wanted request that nobody works on, None if there is none `beside` these numbers.

    The session works on it until `leave`.
    """
    after = 0
    while (request := _next(conn, after, wanted)) is not None:
        after = request.request_id
        if after in beside or not _is_mine(conn, after):
            continue
        # Whoever had the lock until now may have answered it.
        begun = conn.execute(
            "UPDATE pgtrickle.pgt_requests SET status = 'RUNNING', begun = begun + 1,"
            " begun_at = pg_catalog.clock_timestamp() WHERE request_id = %s AND answered_at IS NULL",
            [after],
        )
        if begun.rowcount:
            return request
        leave(conn, after)
    return None


def leave(conn: Connection, request_id: int) -> None:
    """End the work on a request, answered or not."""
    conn.execute(sql.SQL("SELECT pg_catalog.pg_advisory_unlock({})").format(_KEY), [request_id])


def put_back(conn: Connection, request_id: int) -> None:
    """Let somebody begin it later, as if nobody had yet."""
    conn.execute(
        "UPDATE pgtrickle.pgt_requests SET status = 'PENDING', begun = begun - 1, begun_at = NULL"
        " WHERE request_id = %s AND answered_at IS NULL",
        [request_id],
    )


def answer(conn: Connection, request_id: int, done: dict[str, Any]) -> bool:
    """Answer that it was done; False if it was answered before."""
    return _answered(conn, request_id, "DONE", done, None)


def refuse(conn: Connection, request_id: int, error: str) -> bool:
    """Answer that it failed; False if it was answered before."""
    return _answered(conn, request_id, "FAILED", None, redact(error))


def see(conn: Connection, names: Iterable[str] | None = None) -> None:
    """Note that requests to refresh these tables, or all, are seen: refreshes that begin from now on answer them."""
    wanted = None if names is None else sorted(names)
    conn.execute(
        "UPDATE pgtrickle.pgt_requests SET seen_at = pg_catalog.clock_timestamp()"
        " WHERE kind = 'REFRESH' AND answered_at IS NULL AND seen_at IS NULL"
        " AND (%(names)s::text[] IS NULL OR pgt_schema || '.' || pgt_name = ANY(%(names)s))",
        {"names": wanted},
    )


def settle(conn: Connection, names: Iterable[str] | None = None) -> list[int]:
    """Answer what refreshes have answered meanwhile, of these tables or of all; the requests' numbers."""
    wanted = None if names is None else sorted(names)
    return [number for (number,) in conn.execute(_SETTLE, {"names": wanted})]


def asked(conn: Connection, names: Collection[str]) -> dict[str, bool]:
    """Those of the tables, by `schema.name`, that are to be refreshed, and are seen now; True for in full."""
    see(conn, names)
    rows = conn.execute(
        "SELECT pgt_schema || '.' || pgt_name, bool_or(force_full) FROM pgtrickle.pgt_requests"
        " WHERE kind = 'REFRESH' AND answered_at IS NULL AND pgt_schema || '.' || pgt_name = ANY(%s) GROUP BY 1",
        [sorted(names)],
    )
    return dict(rows.fetchall())


def refuse_refreshes(conn: Connection, names: Collection[str], error: str) -> None:
    """Answer that refreshes of these tables failed, as far as they have no answer."""
    conn.execute(
        "UPDATE pgtrickle.pgt_requests SET status = 'FAILED', answered_at = pg_catalog.clock_timestamp(), error = %s"
        " WHERE kind = 'REFRESH' AND answered_at IS NULL AND pgt_schema || '.' || pgt_name = ANY(%s)",
        [redact(error), sorted(names)],
    )


def prune(conn: Connection, days: int) -> None:
    """Delete answered requests that are older than the history."""
    conn.execute(
        "DELETE FROM pgtrickle.pgt_requests WHERE answered_at < pg_catalog.clock_timestamp() - %s * interval '1 day'",
        [days],
    )


def _next(conn: Connection, after: int, wanted: Wanted) -> Request | None:
    kinds, names = (None if given is None else list(given) for given in (wanted.kinds, wanted.names))
    with conn.cursor(row_factory=class_row(Request)) as cursor:
        return cursor.execute(_NEXT, {"after": after, "kinds": kinds, "names": names}).fetchone()


def waits(conn: Connection, wanted: Wanted) -> bool:
    """Whether a wanted request has no answer yet."""
    return _next(conn, 0, wanted) is not None


def _is_mine(conn: Connection, request_id: int) -> bool:
    row = conn.execute(sql.SQL("SELECT pg_catalog.pg_try_advisory_lock({})").format(_KEY), [request_id]).fetchone()
    if row is not None and row[0]:
        return True
    return conn.execute(_RIGHTFUL_HOLDER, [request_id]).fetchone() is None


def _answered(conn: Connection, request_id: int, status: str, done: dict[str, Any] | None, error: str | None) -> bool:
    updated = conn.execute(
        "UPDATE pgtrickle.pgt_requests SET status = %s, answer = %s, error = %s,"
        " answered_at = pg_catalog.clock_timestamp() WHERE request_id = %s AND answered_at IS NULL",
        [status, Jsonb(done) if done is not None else None, error, request_id],
    )
    return bool(updated.rowcount)
