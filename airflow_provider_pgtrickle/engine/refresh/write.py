"""Written: one transaction carries out the refresh of all tables of the unit, or of none.

It checks the lease, writes each table's difference or first content and hands it on to the table's readers, moves the
frontier, completes the history and sends the alerts. It fails rather than delete an absent row or store an identity
twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from airflow_provider_pgtrickle.engine.capture.guard import (
    LET_THROUGH,
    ROW_TRIGGER,
    TRIGGER,
    guard_added_partitions,
)
from airflow_provider_pgtrickle.engine.catalog import alerts
from airflow_provider_pgtrickle.engine.catalog.alerts import Event
from airflow_provider_pgtrickle.engine.catalog.database import PLANNED_ONCE, REPLANNED
from airflow_provider_pgtrickle.engine.catalog.zone import in_zone
from airflow_provider_pgtrickle.engine.declare import identity_index, lookup_index, replica_identity, row_id_index
from airflow_provider_pgtrickle.engine.declare.partitions import Member, Partitions, Touched
from airflow_provider_pgtrickle.engine.dvm import InPlace
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES, ROW_ID, buffer_name
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.errors import InvariantViolated, RefreshError, TableAltered, TransientFault
from airflow_provider_pgtrickle.engine.refresh import history, lease, stage
from airflow_provider_pgtrickle.engine.refresh.compute import Computed, of_memory, rows_of
from airflow_provider_pgtrickle.engine.refresh.decision import Action
from airflow_provider_pgtrickle.engine.refresh.executor import Staged
from airflow_provider_pgtrickle.engine.refresh.history import Finished, RefreshResult
from airflow_provider_pgtrickle.engine.refresh.lease import RunToken
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection, Frontier, Snapshot
from airflow_provider_pgtrickle.engine.refresh.stage import (
    DELETE,
    DUPLICATE,
    INSERT,
    OP,
    REPLACED,
    UPDATE,
    Difference,
    Target,
    analyze,
    consolidate,
    names,
)
from airflow_provider_pgtrickle.engine.settings import Settings

_log = logging.getLogger(__name__)

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
    writes = any(member.action is not Action.NO_DATA for member in unit.values())
    with conn.transaction():
        if writes:
            # A crash of the server may lose bookkeeping, or a frontier that moved without rows, but not written rows.
            conn.execute("SET LOCAL synchronous_commit TO DEFAULT")
        frontiers = lease.verify(conn, ids, token)
        if any(frontiers[member.stored.id] != member.stored.frontier for member in unit.values()):
            return None
        with trace.phase("apply"), _let_through(conn) if writes else nullcontext():
            written = {
                key: _timed(conn, member, member.data_timestamp(at, unit), settings, trace)
                for key, member in unit.items()
            }
        if writes:
            stage.drop_shared(conn, ids)
        results = {key: _result(member, written[key].applied, at, unit, token, trace) for key, member in unit.items()}
        _advance(conn, unit, at, results)
        _end_breached(conn, unit)
        done = [_finished(member, results[key], written[key].ms) for key, member in unit.items()]
        history.finish(conn, done, trace)
        for key, member in unit.items():
            _announce(conn, member, results[key])
    return {member.name: results[key] for key, member in unit.items()}


@contextmanager
def _let_through(conn: Connection) -> Iterator[None]:
    """In the block the guards are off, and users' functions and triggers may run, planned as anywhere else.

    Around it statements about the catalog are planned once.
    """
    conn.execute(f"{REPLANNED}; {LET_THROUGH}")
    yield
    conn.execute(PLANNED_ONCE)


@dataclass(frozen=True)
class _Timed:
    applied: Applied
    ms: float


def _timed(conn: Connection, member: Computed, instant: datetime, settings: Settings, trace: history.Trace) -> _Timed:
    begun = time.perf_counter()
    try:
        applied = _write(conn, member, instant, settings)
    except (psycopg.Error, RefreshError) as error:
        if of_memory(error) and member.plan.computation is not None:
            trace.lack(member.stored.id, member.plan.taken.title, member.plan.size, settings)
        raise
    return _Timed(applied, (time.perf_counter() - begun) * 1000)


def _finished(member: Computed, result: RefreshResult, writing_ms: float) -> Finished:
    plan, actual = member.plan, round(member.spent_ms + writing_ms, 3)
    return Finished(
        member.stored.id,
        result,
        str(plan),
        {candidate.title: candidate.predicted_ms for candidate in plan.candidates} or None,
        # What is kept of an altered query tells nothing about the refreshes to come.
        actual if plan.computation is not None and not plan.decision.keeps else None,
        plan.source_rows,
        plan.net_changes,
        plan.given_up,
        plan.doubt,
    )


def _write(conn: Connection, member: Computed, instant: datetime, settings: Settings) -> Applied:
    if member.action is Action.REINITIALIZE:
        from airflow_provider_pgtrickle.engine.declare.storage import rebuild

        rebuilt = rebuild(conn, member.stored, settings)
        if (rebuilt.storage, rebuilt.fingerprint) != (member.st.storage, member.st.fingerprint):
            raise TransientFault("Its sources changed once more during the refresh", stream_table=member.name)
    if member.plan.decision.keeps:
        lookup_index.ensure(conn, member.st.qualified, member.query.lookups)
    if member.staged is None and member.plan.in_place is None:
        return Applied()
    stage.allow_memory(conn, member.staged.rows if member.staged is not None else 0)
    target = member.described or member.target(conn)
    _nothing_changes_what_is_written(conn, target)
    partitions = Partitions.of(member.st, target.table, {column.name: column.type for column in target.columns})
    if partitions is not None and member.st.relid is not None:
        partitions.hold(conn)
        _nobody_has_moved_rows(conn, member)
        guard_added_partitions(conn, member.st.relid)
    into = _Into(target, partitions, instant)
    with _refusals_named(target):
        updated = _set_in_place(conn, member, target, member.plan.in_place) if member.plan.in_place is not None else 0
        applied = _applied(conn, member, member.staged, into) if member.staged is not None else Applied()
        return replace(applied, updated=applied.updated + updated)


def _set_in_place(conn: Connection, member: Computed, target: Target, in_place: InPlace) -> int:
    """Set the new columns of rows that stay; the number of rows. It fails unless each of them is there once."""
    aside = stage.aside(member.st.id)
    wanted = conn.execute(sql.SQL("SELECT count(*) FROM {}").format(aside)).fetchone()
    found = conn.execute(stage.setting(target, aside, in_place.names)).rowcount
    _every_row_was_there(target, "changed", int(wanted[0]) if wanted else 0, found)
    return found


@dataclass(frozen=True)
class _Into:
    """What is written into."""

    target: Target
    partitions: Partitions | None
    instant: datetime
    """The content's data timestamp."""

    def make(self, conn: Connection, rows: sql.Composable) -> None:
        """Make the partitions that rows lack."""
        if self.partitions is not None:
            self.partitions.make(conn, rows, (ROW_ID, *self.target.names))

    def touched(self, conn: Connection, difference: Difference, *operations: str) -> Touched | None:
        """The partitions that hold the difference's rows with these operations."""
        if self.partitions is None or not any(difference.counts.get(operation) for operation in operations):
            return None
        return self.partitions.touched(conn, stage.rows_that(difference.table, *operations))


def _applied(conn: Connection, member: Computed, staged: Staged, into: _Into) -> Applied:
    rows: sql.Composable
    target = into.target
    if member.difference is not None:
        applied, rows = _apply(conn, into, member.difference), member.difference.table
    else:
        rows = rows_of(conn, member, staged, target)
        if member.plan.whole and _is_empty(conn, target):
            into.make(conn, sql.SQL("SELECT * FROM {}").format(rows))
            applied = _populate(conn, target, rows, staged.rows)
        else:
            whole, repairs = member.plan.whole, member.plan.repairs
            with in_zone(conn, member.st.timezone):
                difference = consolidate(
                    conn, target, member.st.id, rows, whole=whole, repairs=repairs, sizes=staged.sizes
                )
            applied, rows = _apply(conn, into, difference), difference.table
    if member.plan.whole:
        lookup_index.ensure(conn, target.table, member.query.lookups)
    buffer = buffer_name(member.stored.key)
    if applied != Applied() and _exists(conn, buffer):
        conn.execute(stage.handing_on(target, buffer, member.visible(), rows))
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
        # Partitions that this transaction has made or dropped are no change of anybody else's.
        is_own = member.st.partition_by is not None and member.staged is not None
        if rewritten and member.action is not Action.REINITIALIZE and not is_own:
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


def _end_breached(conn: Connection, unit: Mapping[str, Computed]) -> None:
    """End the declaration `append_only` of tables whose sources had rows updated or deleted; of a part, its owner's."""
    for member in unit.values():
        breached = [
            f"{state.source.schema}.{state.source.name}"
            for state in member.states.values()
            if state.is_rewritten and state.source.kind != "STREAM_TABLE"
        ]
        if not (breached and member.st.append_only):
            continue
        words = f"rows of {', '.join(sorted(breached))} were updated or deleted"
        # A role that may only refresh, and was set up by an older version, may not write this column.
        with suppress(psycopg.errors.InsufficientPrivilege), conn.transaction():
            ended = conn.execute(
                "UPDATE pgtrickle.pgt_stream_tables SET append_only_ended = %s, updated_at = pg_catalog.now()"
                " WHERE pgt_id = %s AND append_only_ended IS NULL RETURNING pgt_schema || '.' || pgt_name",
                (words, member.st.part_of or member.st.id),
            ).fetchone()
            if ended is not None:
                _log.warning("%s is not append-only any more: %s", ended[0], words)
                alerts.send(conn, Event.APPEND_ONLY_ENDED, ended[0], reason=words)


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


def _apply(conn: Connection, into: _Into, difference: Difference) -> Applied:
    """Write a difference. Deletions and replacements come first, so that no old row is in the way of a new one."""
    target = into.target
    _no_identity_comes_twice(target, difference)
    into.make(conn, stage.rows_that(difference.table, INSERT, UPDATE))
    count = difference.counts.get
    left = _left_to_drop(conn, into, difference)
    held = into.touched(conn, difference, DELETE, REPLACED)
    deleted = _deleted(conn, target, left.others, count(DELETE, 0) - left.rows, held)
    updated = conn.execute(stage.replacement(target, difference.table, held)).rowcount if count(UPDATE) else 0
    _every_row_was_there(target, "replaced", count(UPDATE, 0), updated)
    # To look for all rows in a large table takes as long as to write them, and the index looks for each anyway.
    is_many = into.partitions is None and count(INSERT, 0) >= _MANY
    proof = identity_index.proof(conn, target.table) if target.keyed and is_many else None
    if target.keyed and proof is None:
        _no_identity_is_there_already(conn, into, difference)
    try:
        inserted = conn.execute(stage.insertion(target, difference.table)).rowcount if count(INSERT) else 0
    except psycopg.errors.UniqueViolation as error:
        if proof is None or error.diag.constraint_name != proof:
            raise
        raise _is_there_already(target) from error
    return Applied(inserted, updated, deleted + _dropped(conn, target, into.partitions, left, held))


def _deleted(conn: Connection, target: Target, rows: sql.Composable, wanted: int, held: Touched | None) -> int:
    deleted = conn.execute(stage.deletion(target, rows, held)).rowcount if wanted else 0
    _every_row_was_there(target, "deleted", wanted, deleted)
    return deleted


@dataclass(frozen=True)
class _LeftToDrop:
    """What a difference deletes from partitions of which nothing is kept, and what it does besides."""

    members: Sequence[Member]
    theirs: sql.Composable
    others: sql.Composable
    rows: int = 0


def _left_to_drop(conn: Connection, into: _Into, difference: Difference) -> _LeftToDrop:
    """The rows that needn't be deleted one by one, because their partitions can be dropped with them."""
    nothing = _LeftToDrop((), difference.table, difference.table)
    members = into.partitions.outdated(conn, into.instant) if into.partitions is not None else []
    if into.partitions is None or not members or into.partitions.are_heard(conn, members):
        return replace(nothing, members=members)
    in_them = into.partitions.rows_in(members, "d")
    rows = [
        sql.SQL("(SELECT * FROM {} AS d WHERE {}{})").format(difference.table, sql.SQL(sign), in_them)
        for sign in ("", "NOT ")
    ]
    found = conn.execute(
        sql.SQL("SELECT coalesce(sum(abs({})), 0)::bigint FROM {} AS d WHERE {} = {}").format(
            sql.Identifier(WEIGHT), rows[0], sql.Identifier(OP), DELETE
        )
    ).fetchone()
    return _LeftToDrop(members, rows[0], rows[1], int(found[0]) if found else 0)


def _dropped(
    conn: Connection, target: Target, partitions: Partitions | None, left: _LeftToDrop, held: Touched | None
) -> int:
    """Drop the partitions of which nothing is kept, as far as nobody reads them now; the number of their rows.

    What can't be dropped is emptied, and dropped by a later refresh.
    """
    if partitions is None or not left.members:
        return 0
    dropped = partitions.drop(conn, left.members)
    if dropped is None:
        return _deleted(conn, target, left.theirs, left.rows, held)
    _every_row_was_there(target, "deleted", left.rows, dropped)
    return dropped


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


def _nobody_has_moved_rows(conn: Connection, member: Computed) -> None:
    """Raise if partitions came with rows or went since the content was looked at; `hold` keeps them from now on."""
    if member.action is Action.REINITIALIZE:
        return
    rewritten, _ = _own_rows(conn, {member.stored.key: member})[member.stored.id]
    if rewritten:
        raise TransientFault("Its partitions were changed while it was refreshed", stream_table=member.name)


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


def _no_identity_is_there_already(conn: Connection, into: _Into, difference: Difference) -> None:
    """Raise if the identity of a row to insert is stored already. The check runs after the deletions."""
    if not difference.counts.get(INSERT):
        return
    target, partitions = into.target, into.partitions
    # An identity without the partitions' column may be stored in any of them.
    is_told = partitions is not None and partitions.column in target.identity
    touched = into.touched(conn, difference, INSERT) if is_told else None
    met = conn.execute(stage.existing(target, difference.table, touched)).fetchone()
    if met is not None and met[0]:
        raise _is_there_already(target)


def _is_there_already(target: Target) -> InvariantViolated:
    return InvariantViolated(
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
