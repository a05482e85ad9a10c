"""One attempt at a unit: lock, lease, snapshot, decide, compute, commit. A failure leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import psycopg

from airflow_provider_pgtrickle.engine.capture.cleanup import clean_buffers
from airflow_provider_pgtrickle.engine.catalog import fingerprint, records
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.declare import identity_index, lookup_index, replica_identity, table
from airflow_provider_pgtrickle.engine.declare.storage import rebuild, recapture
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, RefreshError, TableAltered, TransientFault
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh import alerts, compute, facts, history, invariants, lease, snapshot
from airflow_provider_pgtrickle.engine.refresh.alerts import Event
from airflow_provider_pgtrickle.engine.refresh.commit import commit
from airflow_provider_pgtrickle.engine.refresh.decision import Fallback
from airflow_provider_pgtrickle.engine.refresh.executor import Executor
from airflow_provider_pgtrickle.engine.refresh.lease import RunToken
from airflow_provider_pgtrickle.engine.refresh.member import Member
from airflow_provider_pgtrickle.engine.refresh.order import upstream_first
from airflow_provider_pgtrickle.engine.refresh.plan import MemberPlan, UnitPlan
from airflow_provider_pgtrickle.engine.refresh.query import QuerySource
from airflow_provider_pgtrickle.engine.refresh.result import RefreshResult
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection, Snapshot
from airflow_provider_pgtrickle.engine.settings import Settings

Queries = Callable[[Connection, StreamTable], QuerySource]


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    database: Database
    names: tuple[QualifiedName, ...]
    executor: Callable[[], Executor]
    queries: Queries
    settings: Settings
    force_full: bool
    token: RunToken
    initiated_by: str
    done: tuple[QualifiedName, ...] = ()
    """What was refreshed on its own before these."""
    takes_over: bool = True
    """False for what tries again by itself: it may be the orphan whose tables a newer attempt has just taken."""

    @property
    def unit(self) -> tuple[str, ...]:
        return tuple(map(str, self.names))


class Separately(Exception):
    """These members have to be refreshed and committed before the others: their tables get other columns,
    which nobody can read before the commit."""

    def __init__(self, first: Sequence[QualifiedName]) -> None:
        super().__init__(first)
        self.first = tuple(first)


def attempt(request: Request, trace: history.Trace) -> dict[str, RefreshResult]:
    """Refresh all members in one commit, or none."""
    # The session that holds the locks, the snapshot and the commit.
    with request.database.session() as conn:
        # A lost trace of a refresh does no harm, a lost refresh would: the commit switches this on again.
        conn.execute("SET synchronous_commit = off")
        with trace.phase("lock"):
            ids = records.with_parts(conn, [records.get(conn, name).id for name in request.names])
            held = _hold(conn, ids, request)
            tables = upstream_first(conn, [*records.by_ids(conn, ids).values()])
            reason = "locked" if not held else _unavailable(tables, request.force_full)
            if reason:
                history.skip(conn, ids, request.unit, request.token.run, request.initiated_by, reason)
                return _skipped(tables, reason, request, trace)
            lease.take(conn, ids, request.token, request.settings)
            history.start(conn, ids, request.unit, request.token.run, request.initiated_by, trace)
        with trace.phase("schema"):
            # Before the fingerprints are looked at, so that nothing comes between unseen.
            moment = _moment(conn, tables)
            changed = _changed(conn, tables)
            unit = {st.key: _member(conn, st, changed, request) for st in tables}
            if any(member.reinit_reason for member in unit.values()):
                moment = _moment(conn, [member.st for member in unit.values()])
                _refuse_to_chase(conn, unit)
            try:
                _parts_first(conn, unit, request)
                _refuse_to_mix(unit)
            except Separately:
                history.withdraw(conn, trace)
                lease.give_back(conn, ids, request.token)
                raise
        at = _look(conn, unit, request, trace)
        try:
            _compute(conn, unit, request, trace)
        except (psycopg.Error, PgTrickleError) as error:
            # A table or function that is suddenly gone is no fault of the query.
            with suppress(psycopg.Error):
                conn.execute("ROLLBACK")
                _stayed(conn, unit, moment, error)
            raise
        conn.execute("COMMIT")  # of the snapshot; temporary tables stay, and so do the locks
        _stayed(conn, unit, moment)
        try:
            results = commit(conn, unit, at, request.token, trace, request.settings, rebuild)
        except (psycopg.errors.ProgramLimitExceeded, psycopg.errors.ObjectNotInPrerequisiteState) as error:
            if not _mended(conn, unit, error):
                raise
            results = commit(conn, unit, at, request.token, trace, request.settings, rebuild)
        if results is None:
            lease.give_back(conn, ids, request.token)
            return _moved(conn, unit, request, trace)
        _sweep(conn, unit)
        return results


def _sweep(conn: Connection, unit: Mapping[str, Member]) -> None:
    """Delete consumed rows of the buffers just read. The refresh is done: whatever fails here, the next one tries."""
    read = {f"changes_{key}" for member in unit.values() for key, state in member.states.items() if state.pending_rows}
    if not read:
        return
    with suppress(psycopg.Error, PgTrickleError), conn.transaction():
        conn.execute("SET LOCAL lock_timeout = '100ms'")
        clean_buffers(conn, read)


def _mended(conn: Connection, unit: Mapping[str, Member], error: psycopg.Error) -> bool:
    """Whether the tables were given what the same rows go in with."""
    with conn.transaction():
        if isinstance(error, psycopg.errors.ObjectNotInPrerequisiteState):
            # Published meanwhile, and filled by a version that gave no replica identity.
            settled = [replica_identity.settle(conn, member.stored.qualified) for member in unit.values()]
            return any(settled)
        # A value that is too large for an index of ours.
        dropped = [
            kind.drop(conn, member.stored.qualified)
            for member in unit.values()
            for kind in (identity_index, lookup_index)
        ]
    return any(dropped)


def _hold(conn: Connection, ids: Sequence[int], request: Request) -> bool:
    """Lock all members. One that an earlier attempt of this run holds, or a run past its time, is taken from it."""
    busy = lease.try_lock(conn, ids)
    if busy and request.takes_over and lease.may_take_over(conn, busy, request.token.run, request.settings):
        lease.terminate_holders(conn, busy)
        lease.try_lock(conn, busy)
        # Where the role may not end that session, the lease alone decides: what it computes, it can't commit.
        return True
    if busy:
        lease.unlock(conn)
    return not busy


def _unavailable(tables: Sequence[StreamTable], force_full: bool) -> str | None:
    """Why the unit must not be refreshed now: one member that can't be holds all of them back."""
    for st in tables:
        if st.is_gated:
            return f"gated: {st.gated_reason}" if st.gated_reason else "gated"
        if st.status in ("SUSPENDED", "ERROR") and not force_full:
            return f"{st.qualified} is in status {st.status}" if len(tables) > 1 else st.status.lower()
    return None


def _changed(conn: Connection, tables: Sequence[StreamTable]) -> set[int]:
    """The ids of those behind whose queries something is not what it was."""
    known = [(st.id, st.fingerprint) for st in tables if st.fingerprint is not None]
    now = fingerprint.all_again(conn, [stored for _, stored in known])
    return {pgt_id for (pgt_id, stored), present in zip(known, now, strict=True) if present != stored}


def _member(conn: Connection, st: StreamTable, changed: Collection[int], request: Request) -> Member:
    """Read the definition, and where it no longer holds, the one that will."""
    if not (st.is_hidden or request.force_full or table.exists(conn, st.qualified)):
        raise TableAltered(
            "Its table was dropped",
            stream_table=str(st.qualified),
            remedy="Drop the stream table, too, to forget it; refresh it in full (--full, force_full) to have it back.",
        )
    reason = reinit_reason(conn, st, changed)
    if reason is None:
        return Member(st, st, request.queries(conn, st))
    alerts.send(conn, Event.REINITIALIZE_NEEDED, str(st.qualified), reason=reason)
    # Committed before the snapshot, so that a change is either in the snapshot or in a buffer. The rebuild is
    # only rehearsed: readers keep the old table until the new content is there.
    with conn.transaction():
        captured = recapture(conn, st, request.settings)
    with conn.transaction(force_rollback=True):
        planned = rebuild(conn, captured, request.settings)
        query = request.queries(conn, planned)
    return Member(captured, planned, query, reason)


def reinit_reason(conn: Connection, st: StreamTable, changed: Collection[int] | None = None) -> str | None:
    """Why the definition no longer holds; None where it does. `changed`: what `_changed` found, where it was asked."""
    if st.needs_reinit:
        return st.reinit_reason or Fallback.SCHEMA_CHANGED
    is_changed = st.id in (_changed(conn, [st]) if changed is None else changed)
    return Fallback.SCHEMA_CHANGED if is_changed or _was_altered(conn, st) else None


def _was_altered(conn: Connection, st: StreamTable) -> bool:
    """Whether somebody dropped the table, or columns of it, rewrote its rows or made it UNLOGGED: an owner may."""
    there = conn.execute(
        "SELECT attname FROM pg_catalog.pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped",
        (st.relid,),
    ).fetchall()
    has_columns = {ROW_ID, *(column.name for column in st.storage)} <= {name for (name,) in there}
    return not has_columns or bool(table.unlogged(conn, st.relid)) or invariants.own_rows(conn, st)[0]


def _moment(conn: Connection, tables: Sequence[StreamTable]) -> str:
    return fingerprint.moment(
        conn, [st.fingerprint for st in tables if st.fingerprint], [st.relid for st in tables if st.relid is not None]
    )


def _refuse_to_chase(conn: Connection, unit: Mapping[str, Member]) -> None:
    """What a member was just defined by must still hold."""
    changed = _changed(conn, [member.st for member in unit.values()])
    for member in unit.values():
        if member.st.id in changed:
            raise TransientFault("Its sources changed once more when the refresh began", stream_table=member.name)


def _stayed(conn: Connection, unit: Mapping[str, Member], moment: str, cause: Exception | None = None) -> None:
    """What was read is of the snapshot only if nobody emptied, rewrote or replaced what it was read from meanwhile."""
    was_read = any(member.plan is None or member.plan.computation is not None for member in unit.values())
    if was_read and _moment(conn, [member.st for member in unit.values()]) != moment:
        raise TransientFault(
            "A table or function behind its query was rewritten or replaced while it was read, so what was computed is"
            " thrown away",
            stream_table=next(iter(unit.values())).name if len(unit) == 1 else None,
        ) from cause


def _parts_first(conn: Connection, unit: Mapping[str, Member], request: Request) -> None:
    """Parts that have no content yet get it alone: as a change for others it would be all of it."""
    # What has its content had its parts before it, until another query wants others.
    readers = [
        member
        for member in unit.values()
        if (member.st.split_query or member.st.is_hidden) and (member.reinit_reason or not member.stored.is_populated)
    ]
    if not readers:
        return
    read = {s.pgt_id for member in readers for s in member.query.sources.values() if s.pgt_id is not None}
    parts = [part for part in records.by_ids(conn, read).values() if part.is_hidden and not part.is_populated]
    empty = [part.qualified for part in parts if part.qualified not in request.done]
    if empty:
        raise Separately(empty)


def _refuse_to_mix(unit: Mapping[str, Member]) -> None:
    """A member that gets other columns can't be read in its new shape by others of the unit before it commits."""
    members = list(unit.values())
    for number, member in enumerate(members[:-1], start=1):
        if member.reshaped and any(member.stored.key in later.query.sources for later in members[number:]):
            raise Separately([m.stored.qualified for m in members[:number]])


def _look(conn: Connection, unit: Mapping[str, Member], request: Request, trace: history.Trace) -> Snapshot:
    """Take the snapshot and read what the decisions need. Broken capture is mended first, and looked at again."""
    at = _read(conn, unit, trace)
    torn = [member for member in unit.values() if any(state.torn for state in member.states.values())]
    if torn:
        conn.execute("COMMIT")
        with conn.transaction():
            for member in torn:
                recapture(conn, member.stored, request.settings)
        at = _read(conn, unit, trace)
    _warn_of_growth(unit, request)
    return at


def _read(conn: Connection, unit: Mapping[str, Member], trace: history.Trace) -> Snapshot:
    with trace.phase("snapshot"):
        at = snapshot.take(conn)
    with trace.phase("decide"):
        states = facts.read(conn, at, [facts.Reader(m.st, m.query.sources, m.frontier) for m in unit.values()])
    for member in unit.values():
        member.states = states[member.st.id]
    return at


def _compute(conn: Connection, unit: Mapping[str, Member], request: Request, trace: history.Trace) -> None:
    with trace.phase("decide"):
        sizes = facts.sizes(conn, request.database, compute.sized(unit, forced=request.force_full))
    described: set[int] = set()
    executor: Executor | None = None
    snapshot_id = ""
    before: dict[str, Member] = {}
    for key, member in unit.items():
        read_here = any(key in later.query.sources for later in unit.values())

        def planned(broken: str | None = None, member: Member = member, read_here: bool = read_here) -> MemberPlan:
            forced = request.force_full and member.stored.qualified not in request.done
            return compute.plan(
                conn, member, before, sizes, request.settings, forced=forced, read_here=read_here, broken=broken
            )

        with trace.phase("decide"):
            member.plan = planned()
            if member.plan.computation is not None and not member.plan.whole:
                facts.describe_changes(request.database, member.states.values(), described)
        if member.plan.computation is not None and not member.plan.here and executor is None:
            executor, snapshot_id = request.executor(), snapshot.export(conn)
        run = partial(compute.run, conn, request.database, executor, snapshot_id, member)
        with trace.phase("compute"):
            try:
                member.staged = run(request.token.attempt)
            except (psycopg.Error, RefreshError) as error:
                broken = compute.broken_value(error)
                if broken is None or member.plan.whole:
                    raise
                member.plan = planned(broken)
                member.staged = run(f"{request.token.attempt}w")
        if read_here:
            with trace.phase("hand_on"):
                compute.hand_on(conn, member, request.settings)
        before[key] = member


def _warn_of_growth(unit: Mapping[str, Member], request: Request) -> None:
    grown = {
        state.source.key: (member.name, state)
        for member in unit.values()
        for state in member.states.values()
        if state.pending_rows > request.settings.change_buffer_warning_rows
    }
    if not grown:
        return
    # At once, in a session of its own: the coordinator's transaction may last.
    with request.database.connect(autocommit=True) as conn:
        for name, state in grown.values():
            source = f"{state.source.schema}.{state.source.name}"
            alerts.send(conn, Event.BUFFER_GROWTH_WARNING, name, source=source, pending_rows=state.pending_rows)


def _skipped(
    tables: Sequence[StreamTable], reason: str, request: Request, trace: history.Trace
) -> dict[str, RefreshResult]:
    return {
        str(st.qualified): RefreshResult(
            name=str(st.qualified),
            action="SKIP",
            fallback_reason=reason,
            duration_ms=trace.total_ms,
            data_timestamp=st.data_timestamp,
            run_token=request.token.run,
            status="SKIPPED",
        )
        for st in tables
    }


def _moved(
    conn: Connection, unit: Mapping[str, Member], request: Request, trace: history.Trace
) -> dict[str, RefreshResult]:
    """Somebody else refreshed meanwhile; what was computed is from before that, and is thrown away."""
    results = _skipped([member.stored for member in unit.values()], "frontier_moved", request, trace)
    plan = UnitPlan("", tuple(member.plan for member in unit.values() if member.plan))
    for member in unit.values():
        history.finish(conn, member.stored.id, results[member.name], trace, str(plan))
    return results
