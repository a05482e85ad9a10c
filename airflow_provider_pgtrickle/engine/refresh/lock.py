"""Locked: this attempt holds the tables of a unit, and their definitions are known to be valid."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from graphlib import TopologicalSorter

from psycopg import sql
from psycopg.types.json import Jsonb

from airflow_provider_pgtrickle.engine.catalog import alerts, fingerprint, records
from airflow_provider_pgtrickle.engine.catalog.alerts import Event
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.declare import table
from airflow_provider_pgtrickle.engine.dvm import Anew, Kept, View
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.dvm.identity import server_row_id_sql
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, TableAltered, TransientFault
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh import history, lease
from airflow_provider_pgtrickle.engine.refresh.decision import Fallback, Skip, gated
from airflow_provider_pgtrickle.engine.refresh.executor import Executor, more_to_do
from airflow_provider_pgtrickle.engine.refresh.lease import RunToken
from airflow_provider_pgtrickle.engine.refresh.query import forget
from airflow_provider_pgtrickle.engine.refresh.sameness import describe
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection, Frontier
from airflow_provider_pgtrickle.engine.refresh.stage import Target
from airflow_provider_pgtrickle.engine.settings import Settings

Queries = Callable[[Connection, StreamTable], View]

# An owner may drop the table or some of its columns, make it UNLOGGED, or rewrite its rows.
_ALTERED = sql.SQL("""
SELECT t.id
  FROM pg_catalog.jsonb_to_recordset(%s) AS t(id bigint, relid oid, columns text[], digest text[])
 WHERE NOT t.columns <@ ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a
                               WHERE a.attrelid = t.relid AND a.attnum > 0 AND NOT a.attisdropped)
    OR EXISTS (SELECT FROM {unlogged})
    OR pgtrickle.pgt_was_rewritten(t.digest, pgtrickle.pgt_table_digest(t.id))
""").format(unlogged=table.UNLOGGED.format(relid=sql.Identifier("t", "relid")))


_THROUGH_LIVE = """
    WITH RECURSIVE fed(pgt_id, is_through) AS (
        SELECT pgt_id, false FROM unnest(%(ids)s::bigint[]) AS m(pgt_id)
        UNION
        SELECT d.pgt_id, f.is_through OR t.is_live
          FROM fed f
          JOIN pgtrickle.pgt_stream_tables t USING (pgt_id)
          JOIN pgtrickle.pgt_dependencies d ON d.source_pgt_id = f.pgt_id
    )
    SELECT DISTINCT pgt_id FROM fed WHERE is_through AND pgt_id = ANY(%(ids)s)
"""


@dataclass(frozen=True)
class Request:
    """What the caller asked for."""

    database: Database
    names: tuple[QualifiedName, ...]
    executor: Callable[[], Executor]
    queries: Queries
    settings: Settings
    force_full: bool
    token: RunToken
    initiated_by: str
    done: tuple[QualifiedName, ...] = ()
    """Tables that this run has refreshed separately, before `names`."""
    along: tuple[QualifiedName, ...] = ()
    """Those of `names` that nobody asked for: they are in a unit with one that somebody did."""
    is_piece: bool = False
    """Its unit is refreshed in pieces, so that it takes nothing along."""
    takes_over: bool = True
    """False for a retry that starts by itself: a newer attempt may just have taken the tables over from it."""
    instant: datetime | None = None
    """The time that the clock shows at the snapshot; None: the server's."""
    queues: bool = True
    """Whether it waits for its turn, where refreshes are limited."""
    idle: bool = False
    """It gives way, as if nobody had asked, if there is more to do than to move the data timestamps."""

    @property
    def unit(self) -> tuple[str, ...]:
        return tuple(map(str, self.names))

    def is_full(self, st: StreamTable) -> bool:
        """Whether somebody asked for this table in full, and not only for one that is refreshed together with it."""
        return self.force_full and st.qualified not in self.along


@dataclass(frozen=True)
class Locked:
    """One stream table of the unit, held by this attempt."""

    stored: StreamTable
    """The table as the catalog described it when the lock was taken."""
    st: StreamTable
    """The table as it will be after the refresh. It differs from `stored` if the table is reinitialized."""
    query: View
    reinit_reason: str | None
    kept: Kept | str | None
    """How an altered query's content follows from the stored rows, or why it doesn't; None where nothing is kept."""

    @property
    def name(self) -> str:
        return str(self.stored.qualified)

    @property
    def frontier(self) -> Frontier:
        return Frontier.from_json(self.stored.frontier)

    @property
    def reshaped(self) -> bool:
        """Whether the refresh changes the table's columns."""
        return self.st.storage != self.stored.storage

    @property
    def steady(self) -> bool:
        """Whether the sources alone decide the content at an instant."""
        return self.query.steady and self.st.steady

    def target(self, conn: Connection) -> Target:
        """The table as `conn`'s transaction sees it."""
        names = tuple(column.name for column in self.st.storage)
        return Target(
            self.st.qualified,
            describe(conn, self.st.qualified.sql, names),
            tuple(self.st.identity),
            self.st.keyed,
            server_row_id_sql(self.st.identity_columns, "r") if self.st.server_row_ids else None,
        )

    def visible(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.st.visible)


@dataclass(frozen=True)
class Held:
    """The tables of a unit, each after the tables that it reads, and why they can't be refreshed now, if so."""

    tables: tuple[StreamTable, ...]
    unavailable: Mapping[str, str]
    """The reason of each table that can't be refreshed now, by its name: one of them holds back all."""
    live: tuple[StreamTable, ...] = ()
    """Tables of the unit that their sources' writers maintain, so that there is nothing to refresh."""
    missing: tuple[QualifiedName, ...] = ()
    """Tables that have to be refreshed with them and were not named. Nothing is locked then."""

    @property
    def ids(self) -> list[int]:
        return [st.id for st in self.tables]


def hold(conn: Connection, request: Request, trace: history.Trace) -> Held:
    """Lock all tables of the unit and take their lease; if one table is unavailable, no lease is taken."""
    named = records.named(conn, request.names)
    live = tuple(st for st in named if st.is_live)
    if len(live) == len(named):
        return Held((), all_of(live, Skip.LIVE), live)
    if not request.is_piece and (missing := {i for st in named for i in st.together} - {st.id for st in named}):
        return Held((), {}, missing=tuple(st.qualified for st in records.by_ids(conn, missing).values()))
    ids = records.with_parts(conn, [st.id for st in named if not st.is_live])
    locked = _lock(conn, ids, request)
    tables = upstream_first(conn, [*records.by_ids(conn, ids).values()])
    unavailable = _unavailable(tables, request) if locked else all_of((*tables, *live), Skip.LOCKED)
    if not unavailable:
        lease.take(conn, ids, request.token, request.settings)
        # The names of many idle tables in the row of each would be most of the history.
        unit = () if request.idle else request.unit
        history.start(conn, ids, unit, request.token.run, request.initiated_by, trace)
    return Held(tuple(tables), unavailable, live)


def define(conn: Connection, held: Held, request: Request) -> tuple[dict[str, Locked], str]:
    """The unit by frontier key, and its moment. A definition that is no longer valid is read anew."""
    # The moment is read before the fingerprints are compared, so that no change between the two goes unseen.
    moment = _moment(conn, held.tables)
    changed = _changed(conn, held.tables) | _altered(conn, held.tables)
    there = table.existing(conn, [st.qualified for st in held.tables])
    unit: dict[str, Locked] = {}
    for st in held.tables:
        unit[st.key] = _defined(conn, st, changed, request, exists=st.qualified in there)
        if _is_copy_to_make(unit[st.key], request):
            break
    if any(member.reinit_reason for member in unit.values()):
        moment = _moment(conn, [member.st for member in unit.values()])
        _refuse_to_chase(conn, unit)
    return unit, moment


def to_go_first(conn: Connection, unit: Mapping[str, Locked], request: Request) -> tuple[QualifiedName, ...]:
    """The tables of the unit that have to be refreshed and committed before the others; mostly there are none."""
    return (
        _copies_to_make(unit, request)
        or _parts_without_content(conn, unit, request)
        or _reshaped_upstream(unit)
        or _before_text(unit)
        or _before_live(conn, unit)
    )


def stayed(conn: Connection, unit: Mapping[str, Locked], moment: str, cause: Exception | None = None) -> None:
    """Raise if a relation or function behind the queries was emptied, rewritten or replaced during the reading.

    Rows that were read from it then need not be the snapshot's rows.
    """
    if _moment(conn, [member.st for member in unit.values()]) != moment:
        raise TransientFault(
            "A table or function behind its query was rewritten or replaced while it was read, so what was computed is"
            " thrown away",
            stream_table=next(iter(unit.values())).name if len(unit) == 1 else None,
        ) from cause


def reinit_reason(conn: Connection, st: StreamTable, changed: Collection[int] | None = None) -> str | None:
    """Why the definition is no longer valid; None if it is valid.

    `changed`: those whose query or own table isn't what it was, if known.
    """
    if st.needs_reinit:
        return st.reinit_reason or Fallback.SCHEMA_CHANGED
    if changed is None:
        changed = _changed(conn, [st]) | _altered(conn, [st])
    return Fallback.SCHEMA_CHANGED if st.id in changed else None


def upstream_first(conn: Connection, tables: Sequence[StreamTable]) -> list[StreamTable]:
    """The tables in the order of their dependencies, which the catalog knows and which form no cycle."""
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
    """Lock all tables, and take over those of an earlier attempt of this run or of a run whose lease has expired."""
    busy = lease.try_lock(conn, ids)
    if busy and request.takes_over and lease.may_take_over(conn, busy, request.token.run, request.settings):
        lease.terminate_holders(conn, busy)
        lease.try_lock(conn, busy)
        # If the role may not end the holder's session, the lease alone decides: the holder computes, but can't commit.
        return True
    if busy:
        lease.unlock(conn)
    return not busy


def all_of(tables: Sequence[StreamTable], reason: Skip) -> dict[str, str]:
    """The same reason for each table, by its name."""
    return {str(st.qualified): str(reason) for st in tables}


def _unavailable(tables: Sequence[StreamTable], request: Request) -> dict[str, str]:
    """The tables that must not be refreshed now, each with its reason."""
    reasons = {}
    for st in tables:
        if st.is_gated:
            reasons[str(st.qualified)] = gated(st.gated_reason)
        elif st.is_halted and not request.is_full(st):
            reasons[str(st.qualified)] = str(Skip[st.status])
    return reasons


def _moment(conn: Connection, tables: Sequence[StreamTable]) -> str:
    return fingerprint.moment(
        conn, [st.fingerprint for st in tables if st.fingerprint], [st.relid for st in tables if st.relid is not None]
    )


def _changed(conn: Connection, tables: Sequence[StreamTable]) -> set[int]:
    """The ids of the tables whose fingerprint has changed: an object behind their query is not what it was."""
    known = [(st.id, st.fingerprint) for st in tables if st.fingerprint is not None]
    now = fingerprint.all_again(conn, [stored for _, stored in known])
    return {pgt_id for (pgt_id, stored), present in zip(known, now, strict=True) if present != stored}


def _altered(conn: Connection, tables: Sequence[StreamTable]) -> set[int]:
    """The ids of the tables that are not as the last refresh left them."""
    known = [
        {
            "id": st.id,
            "relid": st.relid,
            "columns": [ROW_ID, *(column.name for column in st.storage)],
            "digest": Frontier.from_json(st.frontier).table,
        }
        for st in tables
    ]
    return {pgt_id for (pgt_id,) in conn.execute(_ALTERED, (Jsonb(known),)).fetchall()}


def _defined(conn: Connection, st: StreamTable, changed: Collection[int], request: Request, *, exists: bool) -> Locked:
    """Read the definition; if it is no longer valid, read the one that replaces it."""
    if not ((st.is_hidden and not st.is_copy) or request.is_full(st) or exists):
        raise TableAltered(
            "The copy that kept frozen rows was dropped" if st.is_copy else "Its table was dropped",
            stream_table=str(st.qualified),
            remedy="Drop the stream table, too, to forget it; refresh it in full (--full, force_full) to have it back.",
        )
    reason = reinit_reason(conn, st, changed)
    if reason is None:
        return Locked(st, st, request.queries(conn, st), None, None)
    if request.idle:
        raise more_to_do()
    # Mostly it holds, so what reads a definition anew is imported only here.
    from airflow_provider_pgtrickle.engine.declare.storage import rebuild, recapture

    alerts.send(conn, Event.REINITIALIZE_NEEDED, str(st.qualified), reason=reason)
    # Capture is committed before the snapshot is taken, so that a change is either in the snapshot or in a buffer.
    # The rebuild is only rehearsed: readers keep the old table until the new content is there.
    with conn.transaction():
        captured = recapture(conn, st, request.settings)
    if st.is_copy and not exists:
        captured = replace(captured, is_populated=False)  # it begins anew
    with conn.transaction(force_rollback=True):
        planned = rebuild(conn, captured, request.settings)
        query = request.queries(conn, planned)
        forget(conn, planned)
    kept = (
        None if request.is_full(st) else _kept(conn, captured, planned, query, request, is_valid=st.id not in changed)
    )
    return Locked(captured, planned, query, reason, kept)


def _kept(
    conn: Connection, stored: StreamTable, planned: StreamTable, query: View, request: Request, *, is_valid: bool
) -> Kept | str | None:
    """How an altered query's content follows from the stored rows, or why it doesn't."""
    from airflow_provider_pgtrickle.engine.declare import keeping

    before = keeping.as_before(stored)
    if before is None:
        return None
    try:
        if not is_valid:
            return "something behind its query has changed as well"
        return keeping.keep(before, planned, request.queries(conn, before), query)
    except Anew as anew:
        return str(anew)
    except PgTrickleError as error:
        return f"its query before can't be read any more ({error.message})"


def _refuse_to_chase(conn: Connection, unit: Mapping[str, Locked]) -> None:
    """Raise if a definition that was just read anew is already out of date."""
    changed = _changed(conn, [member.st for member in unit.values()])
    for member in unit.values():
        if member.st.id in changed:
            raise TransientFault("Its sources changed once more when the refresh began", stream_table=member.name)


def _parts_without_content(conn: Connection, unit: Mapping[str, Locked], request: Request) -> tuple[QualifiedName, ...]:
    """Parts that were never populated. If they were handed on in the unit, the change would be their whole content."""
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


def _before_live(conn: Connection, unit: Mapping[str, Locked]) -> tuple[QualifiedName, ...]:
    """What is not read through a live table, if other members are: they see it changed only after the commit."""
    if len(unit) == 1:
        return ()
    ids = [member.stored.id for member in unit.values()]
    following = {pgt_id for (pgt_id,) in conn.execute(_THROUGH_LIVE, {"ids": ids})}
    if not following:
        return ()
    return tuple(member.stored.qualified for member in unit.values() if member.stored.id not in following)


def _before_text(unit: Mapping[str, Locked]) -> tuple[QualifiedName, ...]:
    """The tables up to the first reader that PostgreSQL computes from its text: it reads what is committed alone."""
    members = list(unit.values())
    for number, member in enumerate(members):
        if member.query.is_text and any(earlier.stored.key in member.query.sources for earlier in members[:number]):
            return tuple(earlier.stored.qualified for earlier in members[:number])
    return ()


def _is_copy_to_make(member: Locked, request: Request) -> bool:
    """Whether it is a copy that is empty, or gets other columns, before its reader's query can be read over it."""
    is_another = member.reshaped or not member.stored.is_populated
    return member.stored.is_copy and is_another and member.stored.qualified not in request.names


def _copies_to_make(unit: Mapping[str, Locked], request: Request) -> tuple[QualifiedName, ...]:
    """The tables up to a copy that is to be made; those after it weren't read."""
    members = list(unit.values())
    return tuple(m.stored.qualified for m in members) if _is_copy_to_make(members[-1], request) else ()


def _reshaped_upstream(unit: Mapping[str, Locked]) -> tuple[QualifiedName, ...]:
    """The tables up to the first one whose columns change: no reader sees its new columns before they are committed."""
    members = list(unit.values())
    for number, member in enumerate(members[:-1], start=1):
        if member.reshaped and any(member.stored.key in later.query.sources for later in members[number:]):
            return tuple(earlier.stored.qualified for earlier in members[:number])
    return ()
