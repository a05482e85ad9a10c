"""Written: one transaction carries out the refresh of all tables of the unit, or of none.

It checks the lease, writes each table's difference or first content and hands it on to the table's readers, moves the
frontier, completes the history and sends the alerts. It fails rather than delete an absent row or store an identity
twice.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from airflow_provider_pgtrickle.engine.capture.guard import (
    ROW_TRIGGER,
    TRIGGER,
    guard_added_partitions,
    let_through,
)
from airflow_provider_pgtrickle.engine.catalog import alerts
from airflow_provider_pgtrickle.engine.catalog.alerts import Event
from airflow_provider_pgtrickle.engine.catalog.database import REPLANNED
from airflow_provider_pgtrickle.engine.declare import identity_index, lookup_index, replica_identity, row_id_index
from airflow_provider_pgtrickle.engine.declare.storage import rebuild
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES, ROW_ID, buffer_name
from airflow_provider_pgtrickle.engine.errors import InvariantViolated, TableAltered, TransientFault
from airflow_provider_pgtrickle.engine.refresh import history, lease, stage
from airflow_provider_pgtrickle.engine.refresh.compute import Computed, rows_of
from airflow_provider_pgtrickle.engine.refresh.decision import Action
from airflow_provider_pgtrickle.engine.refresh.executor import Staged
from airflow_provider_pgtrickle.engine.refresh.history import Finished, RefreshResult
from airflow_provider_pgtrickle.engine.refresh.lease import RunToken
from airflow_provider_pgtrickle.engine.refresh.sameness import agree
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection, Frontier, Snapshot
from airflow_provider_pgtrickle.engine.refresh.stage import (
    DELETE,
    DUPLICATE,
    INSERT,
    OP,
    UPDATE,
    Difference,
    Target,
    analyze,
    consolidate,
    names,
)
from airflow_provider_pgtrickle.engine.settings import Settings

# For this many rows or more, building an index anew is cheaper than adding to it.
_MANY = 20_000

# A row trigger that runs before a row is written may change that row, and so may a rule.
_BEFORE_ROW = """
    WITH RECURSIVE tree(oid) AS (
        SELECT pg_catalog.to_regclass(%(table)s)::oid
        UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid
    )
    SELECT g.tgname FROM pg_catalog.pg_trigger g JOIN tree ON tree.oid = g.tgrelid
     WHERE NOT g.tgisinternal AND g.tgtype & 3 = 3 AND g.tgenabled <> 'D' AND g.tgname <> ALL(%(ours)s)
    UNION ALL
    SELECT r.rulename FROM pg_catalog.pg_rewrite r JOIN tree ON tree.oid = r.ev_class
    ORDER BY 1 LIMIT 1
"""

_REMEDY = (
    "Nothing was written. Refresh it in full (--full, in Python force_full=True); if its rows were not changed by hand,"
    " please report this."
)


@dataclass(frozen=True)
class Applied:
    """The number of rows of the stream table that were written."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


def write(
    conn: Connection,
    unit: Mapping[str, Computed],
    at: Snapshot,
    token: RunToken,
    trace: history.Trace,
    settings: Settings,
) -> dict[str, RefreshResult] | None:
    """Write the computed rows of all tables, or of none. Returns None if a frontier had moved, so nothing was written.

    `conn` is in autocommit and idle, and holds the tables' locks.
    """
    try:
        return _commit(conn, unit, at, token, trace, settings)
    except (psycopg.errors.ProgramLimitExceeded, psycopg.errors.ObjectNotInPrerequisiteState) as error:
        if not _mended(conn, unit, error):
            raise
    return _commit(conn, unit, at, token, trace, settings)


def _commit(
    conn: Connection,
    unit: Mapping[str, Computed],
    at: Snapshot,
    token: RunToken,
    trace: history.Trace,
    settings: Settings,
) -> dict[str, RefreshResult] | None:
    ids = [member.stored.id for member in unit.values()]
    with conn.transaction():
        if any(member.action is not Action.NO_DATA for member in unit.values()):
            # A crash of the server may lose bookkeeping, or a frontier that moved without rows, but not written rows.
            conn.execute(f"SET LOCAL synchronous_commit TO DEFAULT; {REPLANNED}")
        frontiers = lease.verify(conn, ids, token)
        if any(frontiers[member.stored.id] != member.stored.frontier for member in unit.values()):
            return None
        with trace.phase("apply"):
            written = {key: _timed(conn, member, settings) for key, member in unit.items()}
        results = {key: _result(member, written[key].applied, at, unit, token, trace) for key, member in unit.items()}
        _advance(conn, unit, at, results)
        done = [_finished(member, results[key], written[key].ms) for key, member in unit.items()]
        history.finish(conn, done, trace)
        for key, member in unit.items():
            _announce(conn, member, results[key])
    return {member.name: results[key] for key, member in unit.items()}


@dataclass(frozen=True)
class _Timed:
    applied: Applied
    ms: float


def _timed(conn: Connection, member: Computed, settings: Settings) -> _Timed:
    begun = time.perf_counter()
    applied = _write(conn, member, settings)
    return _Timed(applied, (time.perf_counter() - begun) * 1000)


def _finished(member: Computed, result: RefreshResult, writing_ms: float) -> Finished:
    plan, actual = member.plan, round(member.spent_ms + writing_ms, 3)
    return Finished(
        member.stored.id,
        result,
        str(plan),
        {candidate.title: candidate.predicted_ms for candidate in plan.candidates} or None,
        actual if plan.computation is not None else None,
        plan.source_rows,
        plan.net_changes,
        plan.given_up_ms,
    )


def _write(conn: Connection, member: Computed, settings: Settings) -> Applied:
    if member.action is Action.REINITIALIZE:
        rebuilt = rebuild(conn, member.stored, settings)
        if (rebuilt.storage, rebuilt.fingerprint) != (member.st.storage, member.st.fingerprint):
            raise TransientFault("Its sources changed once more during the refresh", stream_table=member.name)
    if member.staged is None:
        return Applied()
    stage.allow_memory(conn, member.staged.rows)
    let_through(conn)
    target = member.described or member.target(conn)
    _nothing_changes_what_is_written(conn, target)
    if member.st.partition_by and member.st.relid is not None:
        guard_added_partitions(conn, member.st.relid)
    with _refusals_named(target):
        return _applied(conn, member, member.staged, target)


def _applied(conn: Connection, member: Computed, staged: Staged, target: Target) -> Applied:
    rows: sql.Composable
    if member.difference is not None:
        applied, rows = _apply(conn, target, member.difference), member.difference.table
    else:
        rows = rows_of(conn, member, staged, target)
        if member.plan.whole and _is_empty(conn, target):
            applied = _populate(conn, target, rows, staged.rows)
        else:
            whole, repairs = member.plan.whole, member.plan.repairs
            difference = consolidate(conn, target, member.st.id, rows, whole=whole, repairs=repairs)
            applied, rows = _apply(conn, target, difference), difference.table
    if member.plan.whole:
        lookup_index.ensure(conn, target.table, member.query.lookups)
    buffer = buffer_name(member.stored.key)
    if applied != Applied() and _exists(conn, buffer):
        conn.execute(stage.handing_on(target, buffer, member.visible(), rows))
    stage.drop_shared(conn, member.st.id)
    return applied


def _exists(conn: Connection, buffer: str) -> bool:
    row = conn.execute(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_class WHERE relname = %s"
        " AND relnamespace = pg_catalog.to_regnamespace(%s))",
        (buffer, CHANGES),
    ).fetchone()
    return row is not None and bool(row[0])


def _advance(
    conn: Connection, unit: Mapping[str, Computed], at: Snapshot, results: Mapping[str, RefreshResult]
) -> None:
    """Move the frontiers, and clear what earlier failures left in the tables' rows of the catalog."""
    # The changes that an upstream table of the unit writes in this transaction lie beyond the snapshot, and are
    # consumed already. If that table was rebuilt, it wrote them into a new buffer.
    own, files = _written_upstream(conn, [key for member in unit.values() for key in member.states if key in unit])
    # The writing has locked the tables, so nobody can alter them any more.
    tables = _own_rows(conn, unit)
    moved = []
    for key, member in unit.items():
        rewritten, table = tables[member.stored.id]
        if rewritten and member.action is not Action.REINITIALIZE:
            raise TransientFault("Its table was altered while it was refreshed", stream_table=member.name)
        instant = results[key].data_timestamp
        assert instant is not None
        frontier: Frontier = member.frontier.advanced(
            {
                source: at.frontier(files.get(source, state.buffer), own if source in files else (), state.epoch)
                for source, state in member.states.items()
            },
            instant.isoformat(),
            table,
        )
        moved.append((Jsonb(frontier.to_json()), instant, member.stored.id))
    conn.cursor().executemany(
        "UPDATE pgtrickle.pgt_stream_tables SET frontier = %s, data_timestamp = %s,"
        " last_refresh_at = pg_catalog.clock_timestamp(), is_populated = true, status = 'ACTIVE',"
        " consecutive_errors = 0, last_error = NULL, needs_reinit = false, reinit_reason = NULL,"
        " lease_token = NULL, lease_pid = NULL, lease_expires = NULL, updated_at = pg_catalog.now() WHERE pgt_id = %s",
        moved,
    )


def _own_rows(conn: Connection, unit: Mapping[str, Computed]) -> dict[int, tuple[bool, tuple[str, ...]]]:
    """By id: whether ALTER TABLE has rewritten the stored rows since the last refresh, and the columns' digest now."""
    before = {member.stored.id: list(member.frontier.table) for member in unit.values()}
    rows = conn.execute(
        "SELECT t.id, pgtrickle.pgt_was_rewritten("
        " ARRAY(SELECT pg_catalog.jsonb_array_elements_text(t.digest)), n.now), n.now"
        " FROM pg_catalog.jsonb_to_recordset(%s) AS t(id bigint, digest jsonb)"
        " CROSS JOIN LATERAL (SELECT pgtrickle.pgt_table_digest(t.id) AS now) AS n",
        (Jsonb([{"id": pgt_id, "digest": digest} for pgt_id, digest in before.items()]),),
    ).fetchall()
    return {pgt_id: (bool(rewritten), tuple(now or ())) for pgt_id, rewritten, now in rows}


def _written_upstream(conn: Connection, upstream: Sequence[str]) -> tuple[tuple[int, ...], dict[str, int | None]]:
    """This transaction's id, and the files of the upstream tables' buffers by their keys."""
    if not upstream:
        return (), {}
    rows = conn.execute(
        "SELECT pg_catalog.pg_current_xact_id()::text::bigint, k.key, c.relfilenode::bigint"
        " FROM unnest(%s::text[], %s::text[]) AS k(key, buffer) LEFT JOIN pg_catalog.pg_class c"
        " ON c.relname = k.buffer AND c.relnamespace = pg_catalog.to_regnamespace(%s)",
        (list(upstream), [buffer_name(key) for key in upstream], CHANGES),
    ).fetchall()
    return (rows[0][0],), {key: file for _, key, file in rows}


def _result(
    member: Computed,
    applied: Applied,
    at: Snapshot,
    unit: Mapping[str, Computed],
    token: RunToken,
    trace: history.Trace,
) -> RefreshResult:
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
        way=str(member.plan.way) if member.plan.computation is not None else None,
    )


def _announce(conn: Connection, member: Computed, result: RefreshResult) -> None:
    if member.stored.is_halted:
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


def _mended(conn: Connection, unit: Mapping[str, Computed], error: psycopg.Error) -> bool:
    """Whether the cause of the error was removed, so that the same rows can be written now."""
    with conn.transaction():
        if isinstance(error, psycopg.errors.ObjectNotInPrerequisiteState):
            # A table was published meanwhile, and an older release filled it without setting a replica identity.
            settled = [replica_identity.settle(conn, member.stored.qualified) for member in unit.values()]
            return any(settled)
        # A value is too large for one of our indexes, so our indexes are dropped.
        dropped = [
            kind.drop(conn, member.stored.qualified)
            for member in unit.values()
            for kind in (identity_index, lookup_index)
        ]
    return any(dropped)


# -- one table's rows ------------------------------------------------------------------------------


def _apply(conn: Connection, target: Target, difference: Difference) -> Applied:
    """Write a difference. Deletions and replacements come first, so that no old row is in the way of a new one."""
    _no_identity_comes_twice(target, difference)
    count = difference.counts.get
    deleted = conn.execute(stage.deletion(target, difference.table)).rowcount if count(DELETE) else 0
    _every_row_was_there(target, "deleted", count(DELETE, 0), deleted)
    updated = conn.execute(stage.replacement(target, difference.table)).rowcount if count(UPDATE) else 0
    _every_row_was_there(target, "replaced", count(UPDATE, 0), updated)
    if target.keyed:
        _no_identity_is_there_already(conn, target, difference)
    inserted = conn.execute(stage.insertion(target, difference.table)).rowcount if count(INSERT) else 0
    return Applied(inserted, updated, deleted)


def _populate(conn: Connection, target: Target, rows: sql.Composable, number: int) -> Applied:
    """Fill an empty table, whose rows needn't be compared with anything."""
    columns = names((ROW_ID, *target.names))
    with row_id_index.built_afterwards(conn, target.table) if number >= _MANY else nullcontext():
        inserted = conn.execute(
            sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {}").format(target.table.sql, columns, columns, rows)
        ).rowcount
    _no_identity_stands_twice(conn, target)
    replica_identity.settle(conn, target.table, first=True)
    analyze(conn, target.table.sql, inserted)
    return Applied(inserted=inserted)


def _is_empty(conn: Connection, target: Target) -> bool:
    """Whether the stream table holds no row at all."""
    row = conn.execute(sql.SQL("SELECT NOT EXISTS (SELECT FROM {})").format(target.table.sql)).fetchone()
    return row is not None and bool(row[0])


# -- what each refresh keeps, or fails --------------------------------------------------------------


def _nothing_changes_what_is_written(conn: Connection, target: Target) -> None:
    """Raise if a user's own trigger or rule may change the rows that a refresh writes."""
    found = conn.execute(_BEFORE_ROW, {"table": target.table.quoted, "ours": [TRIGGER, ROW_TRIGGER]}).fetchone()
    if found is not None:
        raise TableAltered(
            f"{found[0]!r} on the stream table may change rows before they are written",
            stream_table=str(target.table),
            remedy="Drop it, or make it an AFTER trigger: those see each change and leave it as it is.",
        )


@contextmanager
def _refusals_named(target: Target) -> Iterator[None]:
    """If a user's own constraint refuses the rows that the query yields, raise an error that names the constraint."""
    try:
        yield
    except psycopg.errors.IntegrityError as error:
        name = error.diag.constraint_name or error.diag.column_name or "a constraint"
        raise TableAltered(
            f"{name!r} refuses what the query yields: {error.diag.message_primary}",
            stream_table=str(target.table),
            remedy="Drop it: a stream table takes no foreign keys, checks or unique indexes that its query may break.",
        ) from error


def _every_row_was_there(target: Target, verb: str, wanted: int, found: int) -> None:
    """Raise unless each row that the difference deletes or replaces was stored as often as the difference says."""
    if wanted != found:
        raise InvariantViolated(
            f"The difference would have {verb} {wanted} stored rows, but {found} of that content are stored",
            stream_table=str(target.table),
            remedy=_REMEDY,
        )


def _no_identity_comes_twice(target: Target, difference: Difference) -> None:
    """Raise unless each identity comes at most once and goes at most once in the difference."""
    if difference.counts.get(DUPLICATE):
        raise InvariantViolated(
            f"The difference holds the same identity ({', '.join(target.identity)}) more than once",
            stream_table=str(target.table),
            remedy=_REMEDY,
        )


def _no_identity_is_there_already(conn: Connection, target: Target, difference: Difference) -> None:
    """Raise if the identity of a row to insert is stored already. The check runs after the deletions."""
    if not difference.counts.get(INSERT):
        return
    # The query counts all such rows, though one would do: with EXISTS PostgreSQL expects to find one soon, and scans
    # the whole table for it.
    met = conn.execute(
        sql.SQL("SELECT count(*) FROM {d} d JOIN {t} t ON t.{id} = d.{id} AND {same} WHERE d.{op} = {i}").format(
            d=difference.table,
            t=target.table.sql,
            id=sql.Identifier(ROW_ID),
            same=agree(target.key, "t", "d"),
            op=sql.Identifier(OP),
            i=INSERT,
        )
    ).fetchone()
    if met is not None and met[0]:
        raise InvariantViolated(
            f"The difference would insert an identity ({', '.join(target.identity)}) that is stored already",
            stream_table=str(target.table),
            remedy=_REMEDY,
        )


def _no_identity_stands_twice(conn: Connection, target: Target) -> None:
    """Raise if a whole content holds an identity twice. A unique index proves that it doesn't, or else a search."""
    try:
        with conn.transaction():
            proven = identity_index.ensure(conn, target.table, target.identity, keyed=target.keyed)
    except psycopg.errors.UniqueViolation:
        twice = True
    else:
        twice = target.keyed and not proven and _stands_twice(conn, target)
    if twice:
        raise InvariantViolated(
            f"The query yields the same identity ({', '.join(target.identity)}) more than once",
            stream_table=str(target.table),
            remedy=_REMEDY,
        )


def _stands_twice(conn: Connection, target: Target) -> bool:
    """Whether an identity is stored twice. Equal row ids are searched first, because there are hardly any."""
    identity = sql.SQL(", ").join([sql.Identifier("s", ROW_ID), *(column.partition("s") for column in target.key)])
    found = conn.execute(
        sql.SQL(
            "SELECT EXISTS (SELECT FROM {table} s WHERE s.{id} IN"
            " (SELECT {id} FROM {table} GROUP BY 1 HAVING count(*) > 1) GROUP BY {identity} HAVING count(*) > 1)"
        ).format(table=target.table.sql, id=sql.Identifier(ROW_ID), identity=identity)
    ).fetchone()
    return found is not None and bool(found[0])
