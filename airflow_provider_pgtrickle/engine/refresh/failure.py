"""The kind of a refresh's failure decides what follows for its tables: another try, a count, suspension or a stop."""

from __future__ import annotations

import random
from collections.abc import Sequence
from enum import Enum

from airflow_provider_pgtrickle.engine.catalog import alerts, records
from airflow_provider_pgtrickle.engine.catalog.alerts import Event
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import (
    EnvironmentFault,
    InvariantViolated,
    LeaseLost,
    NoWorkers,
    PermissionFault,
    PgTrickleError,
    QueryError,
    TableAltered,
    UsageError,
    redact,
)
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh import history, lease
from airflow_provider_pgtrickle.engine.refresh.executor import NoExecutor
from airflow_provider_pgtrickle.engine.refresh.lease import RunToken
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection
from airflow_provider_pgtrickle.engine.settings import Settings

_JITTER = 0.25


class Verdict(Enum):
    RETRY = "trying again may help"
    COUNT = "it failed, and may work with other data; too many in a row suspend the table"
    STOP = "it fails until somebody mends the definition or the rights: status ERROR"
    BLAMELESS = "not the table's fault, nor known to be: the caller, the machine or a newer run"


def judge(error: BaseException) -> Verdict:
    """The verdict on an exception."""
    if isinstance(error, (LeaseLost, UsageError, EnvironmentFault, NoWorkers)):
        return Verdict.BLAMELESS
    if isinstance(error, PgTrickleError) and not error.permanent:
        return Verdict.RETRY
    if isinstance(error, (QueryError, PermissionFault, InvariantViolated, TableAltered)):
        return Verdict.STOP
    # An interrupt or an exit says nothing about the table.
    return Verdict.COUNT if isinstance(error, Exception) else Verdict.BLAMELESS


def told(error: BaseException) -> str:
    """The history's text for an error. An interrupt has no message of its own, so it gets one here."""
    if isinstance(error, Exception):
        return str(error)
    what = "It was interrupted (Ctrl-C)" if isinstance(error, KeyboardInterrupt) else "Its process was told to end"
    return f"{what}; nothing of it was committed."


def back_off(attempt: int, settings: Settings) -> float:
    """Seconds to wait after an attempt, numbered from 1. They double up to a cap, and jitter keeps runs apart."""
    base = min(settings.retry_base_seconds * 2 ** (attempt - 1), settings.retry_max_seconds)
    return float(base * random.uniform(1 - _JITTER, 1 + _JITTER))


def record(
    database: Database,
    names: Sequence[QualifiedName],
    token: RunToken,
    error: BaseException,
    trace: history.Trace,
    settings: Settings,
    *,
    final: bool,
) -> bool:
    """Record the failure in a separate session, because the refresh's session may be broken.

    `final`: no attempt follows. Returns False if the attempt has lost its lease, so the run was taken over or killed.
    """
    verdict = judge(error)
    guilty = getattr(error, "stream_table", None)
    with database.transaction() as conn:
        rows = conn.execute(
            # A part's failure is its table's: nobody could resume a part.
            "SELECT t.pgt_id, t.pgt_schema || '.' || t.pgt_name, o.pgt_id, o.pgt_schema || '.' || o.pgt_name,"
            " t.lease_token FROM pgtrickle.pgt_stream_tables t"
            " JOIN unnest(%s::text[], %s::text[]) AS n(s, t) ON (t.pgt_schema, t.pgt_name) = (n.s, n.t)"
            " JOIN pgtrickle.pgt_stream_tables o ON o.pgt_id = coalesce(t.part_of, t.pgt_id)"
            " ORDER BY t.pgt_id FOR UPDATE OF t",
            ([name.schema for name in names], [name.name for name in names]),
        ).fetchall()
        ids = records.with_parts(conn, [row[0] for row in rows])
        guilty = {member: name for _, member, _, name, _ in rows}.get(guilty)
        kept = not trace.rows or all(holder == str(token) for *_, holder in rows)
        if isinstance(error, NoExecutor):
            history.withdraw(conn, trace)
        else:
            history.fail(conn, trace, told(error))
        if final and verdict is not Verdict.BLAMELESS:
            # A failure after the lease was lost, or before it was taken, says nothing about the table.
            charged = {pgt_id: name for _, _, pgt_id, name, holder in rows if holder == str(token)}
            for pgt_id, name in charged.items():
                _charge(conn, pgt_id, name, error, verdict, guilty, settings)
        if final and len(rows) > 1 and not isinstance(error, (LeaseLost, NoExecutor)):
            alerts.send(
                conn,
                Event.DIAMOND_PARTIAL_FAILURE,
                guilty or str(names[-1]),
                unit=[str(name) for name in names],
                error=told(error),
            )
        lease.give_back(conn, ids, token)
    return kept


def _charge(
    conn: Connection,
    pgt_id: int,
    name: str,
    error: BaseException,
    verdict: Verdict,
    guilty: str | None,
    settings: Settings,
) -> None:
    """Count the failure for a member. If another member caused it, only the alert is sent."""
    alerts.send(conn, Event.REFRESH_FAILED, name, error=str(error), permanent=verdict is Verdict.STOP)
    if guilty not in (None, name):
        return
    row = conn.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET last_error = %(error)s, consecutive_errors = consecutive_errors + 1,"
        " status = CASE WHEN %(stop)s THEN 'ERROR' WHEN consecutive_errors + 1 >= %(most)s THEN 'SUSPENDED'"
        " ELSE status END, updated_at = pg_catalog.now() WHERE pgt_id = %(id)s RETURNING status, consecutive_errors",
        {
            "error": redact(str(error)),
            "stop": verdict is Verdict.STOP,
            "most": settings.max_consecutive_errors,
            "id": pgt_id,
        },
    ).fetchone()
    if row is not None and row[0] == "SUSPENDED":
        alerts.send(conn, Event.AUTO_SUSPENDED, name, consecutive_errors=row[1], error=str(error))
