"""Start, widen and end the capture of a table's changes."""

from __future__ import annotations

from collections.abc import Iterable

from psycopg import Connection, sql

from airflow_provider_pgtrickle.engine.capture import wal
from airflow_provider_pgtrickle.engine.capture.buffer import (
    build_buffer,
    has_persistence,
    may_be_unlogged,
    survived,
)
from airflow_provider_pgtrickle.engine.capture.identity import untold
from airflow_provider_pgtrickle.engine.capture.layout import (
    Layout,
    is_by_wal,
    keep_to_owner,
    layout,
    lock_members,
)
from airflow_provider_pgtrickle.engine.capture.trigger_function import FORM, create_function
from airflow_provider_pgtrickle.engine.capture.triggers import attach, detach, is_attached
from airflow_provider_pgtrickle.engine.catalog.alerts import tell_of_transition
from airflow_provider_pgtrickle.engine.catalog.faults import translating
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES, buffer_column
from airflow_provider_pgtrickle.engine.dvm.schema import Source
from airflow_provider_pgtrickle.engine.errors import QueryError
from airflow_provider_pgtrickle.engine.names import QualifiedName

__all__ = ["buffer_column", "track", "untrack"]


def track(
    conn: Connection, source: Source, columns: Iterable[str], pgt_id: int, *, whole: bool | None = None
) -> QualifiedName:
    """Capture changes of `columns` of `source` for the stream table `pgt_id`; the buffer's name.

    A later call widens the buffer. It also mends the capture after a change of the table's schema or partitions or of
    its triggers, and then begins a new epoch, which tells every reader that changes may be missing. Rows captured
    earlier hold NULL in new columns; the reader of these columns begins with a FULL refresh anyway.
    `whole`: whether the capture was whole until the caller changed it, under a lock that keeps writers out.
    """
    wanted = set(columns)
    mended = was_whole = False
    with translating(f"{source.schema}.{source.name}", otherwise=QueryError), conn.transaction():
        unlogged = may_be_unlogged(conn, {*_readers(conn, source.relid), pgt_id})
        plan = layout(conn, source, wanted | _tracked_columns(conn, source.relid), pgt_id)
        if not _stands(conn, plan, unlogged=unlogged):
            # No statement may be running when the triggers are created. The state is read again under the lock, because
            # another session may have been faster.
            lock_members(conn, plan.name)
            plan = layout(conn, source, wanted | _tracked_columns(conn, source.relid), pgt_id)
            unlogged = may_be_unlogged(conn, {*_readers(conn, source.relid), pgt_id})
            if not _stands(conn, plan, unlogged=unlogged):
                # Under the lock nobody else changes what the digest covers.
                was_whole = _is_whole(conn, plan.relid) if whole is None else whole
                was_whole = was_whole and survived(conn, plan.buffer)
                conn.execute(create_function(plan, build_buffer(conn, plan, unlogged=unlogged)))
                keep_to_owner(conn, plan.function.sql)
                attach(conn, plan, anew=not was_whole)
                wal.publish(conn, plan)
                mended = True
        conn.execute(
            """
            INSERT INTO pgtrickle.pgt_change_tracking AS t (source_relid, source_schema, source_name, buffer, columns,
                column_types, key_columns, tracked_by_pgt_ids, slot_name, fingerprint, form)
            VALUES (%s, %s, %s, %s, %s, %s::oid[], %s, ARRAY[%s::bigint], %s, %s, %s)
            ON CONFLICT (source_relid) DO UPDATE SET
                source_schema = excluded.source_schema, source_name = excluded.source_name,
                columns = excluded.columns, column_types = excluded.column_types, key_columns = excluded.key_columns,
                fingerprint = excluded.fingerprint, form = excluded.form,
                tracked_by_pgt_ids = ARRAY(SELECT DISTINCT id FROM unnest(
                    t.tracked_by_pgt_ids || excluded.tracked_by_pgt_ids) AS id ORDER BY id)
            """,
            [
                plan.relid,
                plan.name.schema,
                plan.name.name,
                plan.buffer.name,
                [c.name for c in plan.columns],
                [c.type_oid for c in plan.columns],
                list(plan.key),
                pgt_id,
                plan.trigger,
                plan.fingerprint,
                FORM,
            ],
        )
        if mended:
            _settle_mode(conn, plan)
            conn.execute(
                "UPDATE pgtrickle.pgt_change_tracking SET digest = pgtrickle.pgt_capture_digest(source_relid),"
                " epoch = CASE WHEN %s THEN epoch ELSE pg_catalog.pg_current_xact_id()::text::bigint END"
                " WHERE source_relid = %s",
                [was_whole, plan.relid],
            )
    return plan.buffer


def go_over(conn: Connection, source: Source) -> bool:
    """Capture a tracked table from the log from now on, in the caller's transaction; whether it is.

    The lock is the one that dropping triggers takes, and taken at once: a writer that has read the table already then
    waits for it, instead of waiting in a circle.
    """
    name = QualifiedName(source.schema, source.name)
    lock_members(conn, name, "ACCESS EXCLUSIVE")
    whole = _is_whole(conn, source.relid)
    readers = conn.execute(
        "UPDATE pgtrickle.pgt_change_tracking SET mode = 'WAL', mode_since = pg_catalog.clock_timestamp(),"
        " mode_reason = NULL, wal_from = pg_catalog.pg_current_wal_insert_lsn(), wal_until = NULL"
        " WHERE source_relid = %s AND mode = 'TRIGGER' RETURNING tracked_by_pgt_ids",
        [source.relid],
    ).fetchone()
    if readers is None or not readers[0]:
        return False
    track(conn, source, (), readers[0][0], whole=whole)
    tell_of_transition(conn, str(name), "TRIGGER", "WAL", None)
    return is_by_wal(conn, source.relid)


def come_back(conn: Connection, source: Source, reason: str, *, lost: bool) -> None:
    """Capture a table by triggers again, in the caller's transaction.

    `lost`: changes may be missing that the log doesn't tell any more, so every reader has to run FULL.
    """
    lock_members(conn, QualifiedName(source.schema, source.name))
    whole = _is_whole(conn, source.relid)
    readers = conn.execute(
        "UPDATE pgtrickle.pgt_change_tracking SET mode = 'TRIGGER', mode_since = pg_catalog.clock_timestamp(),"
        " mode_reason = %s, wal_until = pg_catalog.pg_current_wal_insert_lsn()"
        " WHERE source_relid = %s AND mode = 'WAL' RETURNING tracked_by_pgt_ids",
        [reason, source.relid],
    ).fetchone()
    if readers is None:
        return
    if readers[0]:
        track(conn, source, (), readers[0][0], whole=whole)
    if lost:
        forget_log(conn, source.relid)
    tell_of_transition(conn, f"{source.schema}.{source.name}", "WAL", "TRIGGER", reason)


def forget_log(conn: Connection, relid: int) -> None:
    """Begin a new epoch, because the log no longer tells what is missing."""
    conn.execute(
        "UPDATE pgtrickle.pgt_change_tracking SET epoch = pg_catalog.pg_current_xact_id()::text::bigint,"
        " wal_from = NULL, wal_until = NULL WHERE source_relid = %s",
        [relid],
    )


def by_triggers(plan: Layout) -> str | None:
    """What the table needs triggers for, whatever the log tells; None if nothing does."""
    if plan.is_live or plan.is_counted:
        return "writers maintain a stream table that reads it"
    if plan.frozen:
        return "a stream table refuses changes of its frozen rows"
    return "a stream table refuses that its rows are updated or deleted" if plan.is_append_only else None


def _settle_mode(conn: Connection, plan: Layout) -> None:
    """Write down how the table is captured now. Nobody writes it meanwhile, so the log's position parts the changes."""
    mode, reason = "WAL" if plan.by_wal else "TRIGGER", None
    if not plan.by_wal:
        found = untold(conn, plan.relid, [m.relid for m in plan.members], [c.name for c in plan.columns])
        reason = found.reason if found else by_triggers(plan)
    left = conn.execute(
        "UPDATE pgtrickle.pgt_change_tracking SET mode = 'TRIGGER', mode_since = pg_catalog.clock_timestamp(),"
        " mode_reason = %s, wal_until = pg_catalog.pg_current_wal_insert_lsn()"
        " WHERE source_relid = %s AND mode = 'WAL' AND NOT %s",
        [reason, plan.relid, plan.by_wal],
    )
    if left.rowcount:
        tell_of_transition(conn, str(plan.name), "WAL", "TRIGGER", reason)
    conn.execute(
        "UPDATE pgtrickle.pgt_dependencies SET cdc_mode = %s WHERE source_relid = %s AND cdc_mode <> 'NONE'"
        " AND cdc_mode <> %s",
        [mode, plan.relid, mode],
    )


def untrack(conn: Connection, relid: int, pgt_id: int) -> None:
    """Stop capturing `relid` for `pgt_id`. With the last reader the triggers and the buffer go."""
    with translating(otherwise=QueryError), conn.transaction():
        row = conn.execute(
            """
            UPDATE pgtrickle.pgt_change_tracking
            SET tracked_by_pgt_ids = array_remove(tracked_by_pgt_ids, %s::bigint)
            WHERE source_relid = %s
            RETURNING cardinality(tracked_by_pgt_ids), buffer
            """,
            [pgt_id, relid],
        ).fetchone()
        if row is None or row[0] > 0:
            return
        wal.withdraw(conn, relid)
        detach(conn, relid)
        conn.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(sql.Identifier(CHANGES, row[1])))
        conn.execute("DELETE FROM pgtrickle.pgt_change_tracking WHERE source_relid = %s", [relid])


def _tracked_columns(conn: Connection, relid: int) -> set[str]:
    row = conn.execute("SELECT columns FROM pgtrickle.pgt_change_tracking WHERE source_relid = %s", [relid]).fetchone()
    return set(row[0]) if row else set()


def _readers(conn: Connection, relid: int) -> list[int]:
    row = conn.execute(
        "SELECT tracked_by_pgt_ids FROM pgtrickle.pgt_change_tracking WHERE source_relid = %s", [relid]
    ).fetchone()
    return list(row[0]) if row else []


def _is_whole(conn: Connection, relid: int) -> bool:
    """Whether nobody but this package has touched the capture since it was made, or mended."""
    row = conn.execute(
        "SELECT digest = pgtrickle.pgt_capture_digest(source_relid) FROM pgtrickle.pgt_change_tracking"
        " WHERE source_relid = %s",
        [relid],
    ).fetchone()
    return row is not None and bool(row[0])


def _stands(conn: Connection, plan: Layout, *, unlogged: bool) -> bool:
    row = conn.execute(
        "SELECT fingerprint, form FROM pgtrickle.pgt_change_tracking WHERE source_relid = %s", [plan.relid]
    ).fetchone()
    as_planned = row == (plan.fingerprint, FORM) and is_attached(conn, plan)
    kept = as_planned and has_persistence(conn, plan.buffer, unlogged=unlogged)
    return kept and _is_whole(conn, plan.relid)
