"""Locked: the tables of a unit are held by this attempt, and their definitions are known to hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from airflow_provider_pgtrickle.engine.catalog import alerts, fingerprint, records
from airflow_provider_pgtrickle.engine.catalog.alerts import Event
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.declare import table
from airflow_provider_pgtrickle.engine.declare.storage import rebuild, recapture
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.errors import TableAltered, TransientFault
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh import history, invariants, lease
from airflow_provider_pgtrickle.engine.refresh.consolidate import Target
from airflow_provider_pgtrickle.engine.refresh.decision import Fallback
from airflow_provider_pgtrickle.engine.refresh.executor import Executor
from airflow_provider_pgtrickle.engine.refresh.lease import RunToken
from airflow_provider_pgtrickle.engine.refresh.query import QuerySource
from airflow_provider_pgtrickle.engine.refresh.sameness import describe
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection, Frontier
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


@dataclass(frozen=True)
class Locked:
    """One stream table of the unit, held by this attempt."""

    stored: StreamTable
    """As the catalog had it when the lock was got."""
    st: StreamTable
    """As it will be: another value than `stored` where it is reinitialized."""
    query: QuerySource
    reinit_reason: str | None

    @property
    def name(self) -> str:
        return str(self.stored.qualified)

    @property
    def frontier(self) -> Frontier:
        return Frontier.from_json(self.stored.frontier)

    @property
    def reshaped(self) -> bool:
        """Whether the table gets other columns than it has."""
        return self.st.storage != self.stored.storage

    def target(self, conn: Connection) -> Target:
        """The table as it stands in `conn`'s transaction."""
        names = tuple(column.name for column in self.st.storage)
        return Target(
            self.st.qualified, describe(conn, self.st.qualified.sql, names), tuple(self.st.identity), self.st.keyed
        )

    def visible(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.st.visible)


@dataclass(frozen=True)
class Held:
    """The tables of a unit, each after those it reads, or why they can't be refreshed now."""

    tables: tuple[StreamTable, ...]
    unavailable: str | None

    @property
    def ids(self) -> list[int]:
        return [st.id for st in self.tables]


def hold(conn: Connection, request: Request, trace: history.Trace) -> Held:
    """Lock all tables of the unit and take their lease, or none of them."""
    ids = records.with_parts(conn, [records.get(conn, name).id for name in request.names])
    locked = _lock(conn, ids, request)
    tables = upstream_first(conn, [*records.by_ids(conn, ids).values()])
    unavailable = _unavailable(tables, request.force_full) if locked else "locked"
    if unavailable is None:
        lease.take(conn, ids, request.token, request.settings)
        history.start(conn, ids, request.unit, request.token.run, request.initiated_by, trace)
    return Held(tuple(tables), unavailable)


def define(conn: Connection, held: Held, request: Request) -> tuple[dict[str, Locked], str]:
    """The unit by frontier key, each definition read anew where it no longer holds; and the moment of all of it."""
    # The moment is read before the fingerprints are compared, so that no change between the two goes unseen.
    moment = _moment(conn, held.tables)
    changed = _changed(conn, held.tables)
    unit = {st.key: _defined(conn, st, changed, request) for st in held.tables}
    if any(member.reinit_reason for member in unit.values()):
        moment = _moment(conn, [member.st for member in unit.values()])
        _refuse_to_chase(conn, unit)
    return unit, moment


def to_go_first(conn: Connection, unit: Mapping[str, Locked], request: Request) -> tuple[QualifiedName, ...]:
    """The tables of the unit that have to be refreshed and committed before the others can be; mostly none."""
    return _parts_without_content(conn, unit, request) or _reshaped_upstream(unit)


def stayed(conn: Connection, unit: Mapping[str, Locked], moment: str, cause: Exception | None = None) -> None:
    """What was read is of the snapshot only if nobody emptied, rewrote or replaced what it was read from meanwhile."""
    if _moment(conn, [member.st for member in unit.values()]) != moment:
        raise TransientFault(
            "A table or function behind its query was rewritten or replaced while it was read, so what was computed is"
            " thrown away",
            stream_table=next(iter(unit.values())).name if len(unit) == 1 else None,
        ) from cause


def reinit_reason(conn: Connection, st: StreamTable, changed: Collection[int] | None = None) -> str | None:
    """Why the definition no longer holds; None where it does. `changed`: what `_changed` found, where it was asked."""
    if st.needs_reinit:
        return st.reinit_reason or Fallback.SCHEMA_CHANGED
    is_changed = st.id in (_changed(conn, [st]) if changed is None else changed)
    return Fallback.SCHEMA_CHANGED if is_changed or _was_altered(conn, st) else None


def upstream_first(conn: Connection, tables: Sequence[StreamTable]) -> list[StreamTable]:
    """The tables sorted by what the catalog knows of their dependencies, which form no circle."""
    if len(tables) == 1:
        return list(tables)
    by_id = {st.id: st for st in sorted(tables, key=lambda st: st.qualified)}
    edges = conn.execute(
        "SELECT pgt_id, source_pgt_id FROM pgtrickle.pgt_dependencies"
        " WHERE pgt_id = ANY(%(ids)s) AND source_pgt_id = ANY(%(ids)s)",
        {"ids": list(by_id)},
    ).fetchall()
    graph: dict[int, list[int]] = {pgt_id: [] for pgt_id in by_id}
    for reader, source in edges:
        graph[reader].append(source)
    return [by_id[pgt_id] for pgt_id in TopologicalSorter(graph).static_order()]


def _lock(conn: Connection, ids: Sequence[int], request: Request) -> bool:
    """Lock all tables. One that an earlier attempt of this run holds, or a run past its time, is taken from it."""
    busy = lease.try_lock(conn, ids)
    if busy and request.takes_over and lease.may_take_over(conn, busy, request.token.run, request.settings):
        lease.terminate_holders(conn, busy)
        lease.try_lock(conn, busy)
        # Where the role may not end that session, the lease alone decides: that session can compute, but not commit.
        return True
    if busy:
        lease.unlock(conn)
    return not busy


def _unavailable(tables: Sequence[StreamTable], force_full: bool) -> str | None:
    """Why the unit must not be refreshed now: one table that can't be holds all of them back."""
    for st in tables:
        if st.is_gated:
            return f"gated: {st.gated_reason}" if st.gated_reason else "gated"
        if st.status in ("SUSPENDED", "ERROR") and not force_full:
            return f"{st.qualified} is in status {st.status}" if len(tables) > 1 else st.status.lower()
    return None


def _moment(conn: Connection, tables: Sequence[StreamTable]) -> str:
    return fingerprint.moment(
        conn, [st.fingerprint for st in tables if st.fingerprint], [st.relid for st in tables if st.relid is not None]
    )


def _changed(conn: Connection, tables: Sequence[StreamTable]) -> set[int]:
    """The ids of those behind whose queries something is not what it was."""
    known = [(st.id, st.fingerprint) for st in tables if st.fingerprint is not None]
    now = fingerprint.all_again(conn, [stored for _, stored in known])
    return {pgt_id for (pgt_id, stored), present in zip(known, now, strict=True) if present != stored}


def _defined(conn: Connection, st: StreamTable, changed: Collection[int], request: Request) -> Locked:
    """Read the definition, and where it no longer holds, the one that will."""
    if not (st.is_hidden or request.force_full or table.exists(conn, st.qualified)):
        raise TableAltered(
            "Its table was dropped",
            stream_table=str(st.qualified),
            remedy="Drop the stream table, too, to forget it; refresh it in full (--full, force_full) to have it back.",
        )
    reason = reinit_reason(conn, st, changed)
    if reason is None:
        return Locked(st, st, request.queries(conn, st), None)
    alerts.send(conn, Event.REINITIALIZE_NEEDED, str(st.qualified), reason=reason)
    # Capture is committed before the snapshot is taken, so that a change is either in the snapshot or in a buffer.
    # The rebuild is only rehearsed: readers keep the old table until the new content is there.
    with conn.transaction():
        captured = recapture(conn, st, request.settings)
    with conn.transaction(force_rollback=True):
        planned = rebuild(conn, captured, request.settings)
        query = request.queries(conn, planned)
    return Locked(captured, planned, query, reason)


def _was_altered(conn: Connection, st: StreamTable) -> bool:
    """Whether somebody dropped the table, or columns of it, rewrote its rows or made it UNLOGGED: an owner may."""
    there = conn.execute(
        "SELECT attname FROM pg_catalog.pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped",
        (st.relid,),
    ).fetchall()
    has_columns = {ROW_ID, *(column.name for column in st.storage)} <= {name for (name,) in there}
    return not has_columns or bool(table.unlogged(conn, st.relid)) or invariants.own_rows(conn, st)[0]


def _refuse_to_chase(conn: Connection, unit: Mapping[str, Locked]) -> None:
    """What a table was just defined by must still hold."""
    changed = _changed(conn, [member.st for member in unit.values()])
    for member in unit.values():
        if member.st.id in changed:
            raise TransientFault("Its sources changed once more when the refresh began", stream_table=member.name)


def _parts_without_content(conn: Connection, unit: Mapping[str, Locked], request: Request) -> tuple[QualifiedName, ...]:
    """Parts that were never filled: handed on to their readers as a change, such a content would be all of it."""
    # A populated table's parts are populated too, unless its query has changed.
    readers = [
        member
        for member in unit.values()
        if (member.st.split_query or member.st.is_hidden) and (member.reinit_reason or not member.stored.is_populated)
    ]
    if not readers:
        return ()
    read = {s.pgt_id for member in readers for s in member.query.sources.values() if s.pgt_id is not None}
    parts = [part for part in records.by_ids(conn, read).values() if part.is_hidden and not part.is_populated]
    return tuple(part.qualified for part in parts if part.qualified not in request.done)


def _reshaped_upstream(unit: Mapping[str, Locked]) -> tuple[QualifiedName, ...]:
    """Up to the first table that gets other columns: nobody can read those before they are committed."""
    members = list(unit.values())
    for number, member in enumerate(members[:-1], start=1):
        if member.reshaped and any(member.stored.key in later.query.sources for later in members[number:]):
            return tuple(earlier.stored.qualified for earlier in members[:number])
    return ()
