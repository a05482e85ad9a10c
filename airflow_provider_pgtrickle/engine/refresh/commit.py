"""The one transaction that makes a refresh true: fence, apply, hand on, frontier, history, NOTIFY."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from airflow_provider_pgtrickle.engine.capture.guard import guard_added_partitions
from airflow_provider_pgtrickle.engine.capture.layout import CHANGES
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.declare import lookup_index
from airflow_provider_pgtrickle.engine.errors import TransientFault
from airflow_provider_pgtrickle.engine.refresh import alerts, apply, history, invariants, lease, stage
from airflow_provider_pgtrickle.engine.refresh.alerts import Event
from airflow_provider_pgtrickle.engine.refresh.apply import Applied
from airflow_provider_pgtrickle.engine.refresh.consolidate import Sink, consolidate
from airflow_provider_pgtrickle.engine.refresh.decision import Action
from airflow_provider_pgtrickle.engine.refresh.frontier import Frontier
from airflow_provider_pgtrickle.engine.refresh.lease import RunToken
from airflow_provider_pgtrickle.engine.refresh.member import Member, stage_name
from airflow_provider_pgtrickle.engine.refresh.result import RefreshResult
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection, Snapshot
from airflow_provider_pgtrickle.engine.settings import Settings

Rebuild = Callable[[Any, StreamTable, Settings], StreamTable]

_MUCH = 50_000
_WORK_MEM = "128MB"


def commit(
    conn: Connection,
    unit: Mapping[str, Member],
    at: Snapshot,
    token: RunToken,
    trace: history.Trace,
    settings: Settings,
    rebuild: Rebuild,
) -> dict[str, RefreshResult] | None:
    """Write what was computed, all members or none; None where the frontier had moved, and so nothing was to be done.

    `conn` is in autocommit, idle, and holds the members' locks.
    """
    ids = [member.stored.id for member in unit.values()]
    with conn.transaction():
        if any(member.action is not Action.NO_DATA for member in unit.values()):
            # Bookkeeping may be lost in a crash of the server, and so may a frontier with nothing behind it.
            conn.execute("SET LOCAL synchronous_commit TO DEFAULT")
        frontiers = lease.verify(conn, ids, token)
        if any(frontiers[member.stored.id] != member.stored.frontier for member in unit.values()):
            return None
        with trace.phase("apply"):
            written = {key: _write(conn, member, settings, rebuild) for key, member in unit.items()}
        results = {}
        for key, member in unit.items():
            result = _result(member, written[key], at, unit, token, trace)
            _advance(conn, member, unit, at, result)
            history.finish(conn, member.stored.id, result, trace, str(member.plan))
            _announce(conn, member, result)
            results[member.name] = result
    return results


def _write(conn: Connection, member: Member, settings: Settings, rebuild: Rebuild) -> Applied:
    if member.action is Action.REINITIALIZE:
        rebuilt = rebuild(conn, member.stored, settings)
        if (rebuilt.storage, rebuilt.fingerprint) != (member.st.storage, member.st.fingerprint):
            raise TransientFault("Its sources changed once more during the refresh", stream_table=member.name)
    if member.staged is None:
        return Applied()
    _allow_memory(conn, member.staged.rows)
    apply.unlock_table(conn)
    sink = member.sink(conn)
    invariants.nothing_changes_what_is_written(conn, sink)
    if member.st.partition_by and member.st.relid is not None:
        guard_added_partitions(conn, member.st.relid)
    with invariants.refusals_named(sink):
        return _applied(conn, member, sink)


def _applied(conn: Connection, member: Member, sink: Sink) -> Applied:
    assert member.staged is not None
    staged = _stage(conn, member, sink)
    if staged is not None and _is_first_content(conn, member, sink):
        applied, rows = apply.populate(conn, sink, staged, member.staged.rows), staged
    else:
        difference = member.difference
        if difference is None:
            assert staged is not None
            assert member.plan is not None
            difference = consolidate(conn, sink, member.st.id, staged, whole=member.plan.whole)
        applied, rows = apply.apply(conn, sink, difference), difference.table
    if member.plan is not None and member.plan.whole:
        lookup_index.ensure(conn, sink.table, member.query.lookups)
    buffer = f"changes_{member.stored.key}"
    if applied != Applied() and _exists(conn, buffer):
        apply.write_buffer(conn, sink, buffer, member.visible(), rows)
    stage.drop_shared(conn, member.st.id)
    return applied


def _stage(conn: Connection, member: Member, sink: Sink) -> sql.Identifier | None:
    """The stage, loaded; None where the difference is made already."""
    if member.difference is not None:
        return None
    shared = stage_name(member)
    if shared is not None:
        assert member.staged is not None
        stage.analyze(conn, shared, member.staged.rows)
        stage.finish(conn, shared, member.staged.late)
        return shared
    assert member.staged is not None
    assert member.staged.arrow is not None
    table = stage.temporary(conn, sink.table, member.st.id, sink.names)
    stage.copy_arrow(conn, table, member.staged.arrow)
    stage.finish(conn, table, member.staged.late)
    return table


def _is_first_content(conn: Connection, member: Member, sink: Sink) -> bool:
    assert member.plan is not None
    return member.plan.whole and apply.is_empty(conn, sink)


def _allow_memory(conn: Connection, rows: int) -> None:
    """Grouping many rows, or building an index over them, on disk would take several times as long."""
    if rows >= _MUCH:
        for setting in ("work_mem", "maintenance_work_mem"):
            conn.execute(
                "SELECT pg_catalog.set_config(%(name)s, %(least)s, true) WHERE"
                " pg_catalog.pg_size_bytes(pg_catalog.current_setting(%(name)s)) < pg_catalog.pg_size_bytes(%(least)s)",
                {"name": setting, "least": _WORK_MEM},
            )


def _exists(conn: Connection, buffer: str) -> bool:
    row = conn.execute(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_class WHERE relname = %s"
        " AND relnamespace = pg_catalog.to_regnamespace(%s))",
        (buffer, CHANGES),
    ).fetchone()
    return row is not None and bool(row[0])


def _advance(conn: Connection, member: Member, unit: Mapping[str, Member], at: Snapshot, result: RefreshResult) -> None:
    """Move the frontier, and mend what the table's state says."""
    upstream = [key for key in member.states if key in unit]
    # What an upstream member writes in this transaction lies beyond the snapshot, and is consumed already.
    own: tuple[int, ...] = ()
    if upstream:
        row = conn.execute("SELECT pg_catalog.pg_current_xact_id()::text::bigint").fetchone()
        assert row is not None
        own = (int(row[0]),)
    assert result.data_timestamp is not None
    # What was written has the table locked against those who alter it.
    rewritten, table = invariants.own_rows(conn, member.stored)
    if rewritten and member.action is not Action.REINITIALIZE:
        raise TransientFault("Its table was altered while it was refreshed", stream_table=member.name)
    moved: Frontier = member.frontier.advanced(
        {
            key: at.frontier(state.buffer, own if key in upstream else (), state.epoch)
            for key, state in member.states.items()
        },
        result.data_timestamp.isoformat(),
        table,
    )
    conn.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET frontier = %s, data_timestamp = %s,"
        " last_refresh_at = pg_catalog.clock_timestamp(), is_populated = true, status = 'ACTIVE',"
        " consecutive_errors = 0, last_error = NULL, needs_reinit = false, reinit_reason = NULL,"
        " lease_token = NULL, lease_pid = NULL, lease_expires = NULL, updated_at = pg_catalog.now() WHERE pgt_id = %s",
        (Jsonb(moved.to_json()), result.data_timestamp, member.stored.id),
    )


def _result(
    member: Member,
    applied: Applied,
    at: Snapshot,
    unit: Mapping[str, Member],
    token: RunToken,
    trace: history.Trace,
) -> RefreshResult:
    assert member.plan is not None
    staged = member.staged
    return RefreshResult(
        name=member.name,
        action=str(member.action),
        fallback_reason=member.plan.decision.fallback_reason,
        rows_inserted=applied.inserted,
        rows_updated=applied.updated,
        rows_deleted=applied.deleted,
        source_changes=member.plan.source_changes,
        duration_ms=trace.total_ms,
        data_timestamp=member.data_timestamp(at, unit),
        rows_read=staged.rows_read if staged else 0,
        reads=staged.reads if staged else 0,
        spark_jobs=staged.jobs if staged else 0,
        run_token=token.run,
    )


def _announce(conn: Connection, member: Member, result: RefreshResult) -> None:
    if member.stored.status in ("SUSPENDED", "ERROR"):
        alerts.send(conn, Event.RESUMED, member.name)
    if member.action is not Action.NO_DATA:
        alerts.send(
            conn,
            Event.REFRESH_COMPLETED,
            member.name,
            action=result.action,
            fallback_reason=result.fallback_reason,
            rows_inserted=result.rows_inserted,
            rows_updated=result.rows_updated,
            rows_deleted=result.rows_deleted,
            data_timestamp=result.data_timestamp,
            run_token=result.run_token,
        )
