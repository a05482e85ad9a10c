"""`verify` compares contents with their queries' answers, and relies on nothing that a refresh says.

A content has to be its query's answer at the table's frontier. One snapshot shows the content, its frontier, the
sources and the changes since, so the answer is computed there over the sources as they were: no lock is held, and
writers may write. Only a table without an old state (a query without a delta, a truncated or uncaptured source, a torn
capture) is refreshed first, and compared if nothing has come in since.
"""

from __future__ import annotations

import hashlib
import logging
import math
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from airflow_provider_pgtrickle.engine import dvm
from airflow_provider_pgtrickle.engine.capture import guard, wal
from airflow_provider_pgtrickle.engine.capture.pump import Beyond
from airflow_provider_pgtrickle.engine.capture.st_buffer import drop_st_buffer, ensure_st_buffer
from airflow_provider_pgtrickle.engine.catalog import alerts, records
from airflow_provider_pgtrickle.engine.catalog.alerts import Event
from airflow_provider_pgtrickle.engine.catalog.database import Database, translating
from airflow_provider_pgtrickle.engine.catalog.locks import second_half
from airflow_provider_pgtrickle.engine.catalog.probe import Probe, probe
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.catalog.zone import in_zone
from airflow_provider_pgtrickle.engine.declare import dependencies, table
from airflow_provider_pgtrickle.engine.dvm import Binding, Open, Reason, SourceBinding
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.dvm.clock import Values
from airflow_provider_pgtrickle.engine.dvm.dialect import Reading
from airflow_provider_pgtrickle.engine.errors import SURROUNDINGS, PgTrickleError, UsageError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh import clock, decoded, observe, snapshot, use
from airflow_provider_pgtrickle.engine.refresh.compare import (
    Comparison,
    Found,
    Ranges,
    Wrong,
    differing,
    within_bounds,
    wrong_row_ids,
)
from airflow_provider_pgtrickle.engine.refresh.executor import Executor, read_rows
from airflow_provider_pgtrickle.engine.refresh.lock import reinit_reason
from airflow_provider_pgtrickle.engine.refresh.observe import Reader, SourceState
from airflow_provider_pgtrickle.engine.refresh.query import analysed
from airflow_provider_pgtrickle.engine.refresh.sameness import describe
from airflow_provider_pgtrickle.engine.refresh.slices import ctid_slices
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection, Frontier, Snapshot
from airflow_provider_pgtrickle.engine.refresh.unit import refresh_unit
from airflow_provider_pgtrickle.engine.settings import Settings

_log = logging.getLogger(__name__)

#: First half of the key of a lock by which a table is verified once at a time.
_LOCK_SPACE = int.from_bytes(b"pgtv")
_RANGES = 16
_SMALL = 10_000
_MOST_RANGES = 4096
_MOST_ROWS = 100
_TRIES = 3
REASON = "content_differs"

#: A query that is refused for one of these reasons has more than one answer, so its content can't be compared with it.
_UNDECIDED = {
    Reason.VOLATILE_FUNCTION,
    Reason.TIME_DEPENDENT,
    Reason.AMBIGUOUS_ORDER,
    Reason.TABLESAMPLE,
    Reason.LIMIT_WITHOUT_ORDER,
}

# The rows of a table that was never analyzed are estimated from its size.
_EXTENT = """
SELECT c.relkind::text, c.relpages,
       (SELECT sum(CASE WHEN p.reltuples >= 0 THEN p.reltuples ELSE pg_catalog.pg_relation_size(p.oid) / 64 END)
          FROM pg_catalog.pg_class p
         WHERE p.oid = c.oid AND p.relkind = 'r'
            OR p.oid IN (SELECT relid FROM pg_catalog.pg_partition_tree(c.oid) WHERE isleaf))
  FROM pg_catalog.pg_class c WHERE c.oid = %s
"""

# LOCK TABLE needs the right to the whole table. A role with rights to single columns gets the lock once it reads them.
_READABLE = """
SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = ANY(%s::oid[]) AND c.relkind IN ('r', 'p') AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
 ORDER BY c.oid
"""

_START = """
INSERT INTO pgtrickle.pgt_verifications (pgt_id, definition, ranges, wanted, data_timestamp)
VALUES (%s, %s, %s, %s, %s) RETURNING verification_id
"""

_SKIP = """
INSERT INTO pgtrickle.pgt_verifications (pgt_id, definition, status, reason, ended_at)
VALUES (%s, %s, 'SKIPPED', %s, pg_catalog.clock_timestamp())
"""

_UNFINISHED = """
SELECT verification_id, ranges, wanted, done, rows_compared, differences, undecided
  FROM (SELECT * FROM pgtrickle.pgt_verifications WHERE pgt_id = %s ORDER BY verification_id DESC LIMIT 1) AS v
 WHERE status = 'UNFINISHED' AND definition = %s
"""

_GO_ON = """
UPDATE pgtrickle.pgt_verifications SET done = done || %s::integer[], rows_compared = rows_compared + %s,
       differences = differences + %s, undecided = undecided + %s, data_timestamp = %s
 WHERE verification_id = %s
"""

_ROW = """
INSERT INTO pgtrickle.pgt_verification_rows (verification_id, compared, side, times, stored)
SELECT %(id)s, %(compared)s, %(side)s, %(times)s, %(stored)s
 WHERE (SELECT count(*) FROM pgtrickle.pgt_verification_rows WHERE verification_id = %(id)s) < %(most)s
"""

_TWINS = """
DELETE FROM {t} AS t USING (
    SELECT s.tableoid AS place, s.ctid AS spot, row_number() OVER (PARTITION BY {identity}) AS n FROM {t} AS s) AS d
 WHERE d.n > 1 AND t.tableoid = d.place AND t.ctid = d.spot
"""


@dataclass(frozen=True)
class Verified:
    """The verification of one stream table, or of a part."""

    name: str
    status: str
    """EQUAL, DIFFERENT, SKIPPED."""
    reason: str | None = None
    """Why the table was skipped."""
    rows_compared: int = 0
    differences: int = 0
    """The number of rows that are missing or unexpected, or whose hidden columns or row ids are wrong."""
    undecided: int = 0
    """The number of rows that differ only in what the query leaves open."""
    ranges: int = 0
    ranges_done: int = 0
    """The number of ranges that were compared. It is smaller than `ranges` if a sample was compared."""
    data_timestamp: datetime | None = None
    duration_ms: float = 0.0
    repaired: bool = False
    approximate: tuple[str, ...] = ()
    """The columns that were compared within the bound of their rounding, because they are approximate sums of floats;
    all others were compared to the letter."""
    unbounded: tuple[str, ...] = ()
    """The columns that are computed from sums of floats and not such sums themselves. How much rounding may make there
    isn't known, so a deviation counts as undecided, however large."""
    rows: tuple[Wrong, ...] = ()
    """The first rows that differ."""
    frozen: int | None = None
    """Of a copy: the number of rows in which it differs from its table, because it keeps what is frozen. These are no
    differences."""


@dataclass(frozen=True)
class Verification:
    """The result of `verify`, table by table; parts follow their owner."""

    tables: tuple[Verified, ...] = ()

    @property
    def differences(self) -> int:
        return sum(verified.differences for verified in self.tables)

    @property
    def undecided(self) -> int:
        return sum(verified.undecided for verified in self.tables)

    @property
    def skipped(self) -> dict[str, str]:
        """The reason for each table that was skipped."""
        return {verified.name: verified.reason or "" for verified in self.tables if verified.status == "SKIPPED"}


@dataclass(frozen=True)
class Request:
    """What the caller asked for, and the means to do it."""

    database: Database
    executor: Callable[[], Executor]
    settings: Settings
    sample: float | None = None
    """The share of the ranges to compare, which are picked at random; None for all."""
    refresh: bool = True
    """Whether a table that can't be compared as it is may be refreshed first."""
    repair: bool = False
    restart: bool = False
    """Whether to begin anew if an earlier verification was stopped, instead of continuing it."""
    withdraw: Callable[..., object] | None = None
    """Ends the maintenance by writers of the tables that a repair computes anew."""


def verify(request: Request, names: Sequence[QualifiedName]) -> Verification:
    """Verify each table with its parts, one after the other.

    A table that can't be read doesn't stop the others; the first error is raised when all are done.
    """
    if request.sample is not None and not 0 < request.sample <= 1:
        raise UsageError(f"A sample can't be {request.sample!r} of the rows", remedy="Use a share above 0, up to 1.")
    watched: Sequence[int] = ()
    with suppress(psycopg.Error, PgTrickleError), request.database.session() as conn:
        watched = use.begin(conn, records.named(conn, names))
    try:
        return _each(request, names)
    finally:
        with suppress(psycopg.Error, PgTrickleError), request.database.session() as conn:
            use.end(conn, watched)


def _each(request: Request, names: Sequence[QualifiedName]) -> Verification:
    found: list[Verified] = []
    faults: list[PgTrickleError] = []
    for name in names:
        try:
            found += _with_parts(request, name)
        except SURROUNDINGS:
            raise
        except PgTrickleError as error:
            faults.append(error)
            if len(names) > 1:
                _log.error("%s", error)
    if faults:
        raise faults[0]
    return Verification(tuple(found))


def prune(conn: Connection, days: int) -> int:
    """Delete verifications older than `days`, except the last one of each existing table."""
    return conn.execute(
        "DELETE FROM pgtrickle.pgt_verifications v WHERE started_at < pg_catalog.now() - %s * interval '1 day'"
        " AND (EXISTS (SELECT FROM pgtrickle.pgt_verifications l"
        " WHERE l.pgt_id = v.pgt_id AND l.verification_id > v.verification_id)"
        " OR NOT EXISTS (SELECT FROM pgtrickle.pgt_stream_tables t WHERE t.pgt_id = v.pgt_id))",
        (days,),
    ).rowcount


def _with_parts(request: Request, name: QualifiedName) -> list[Verified]:
    with request.database.transaction() as conn:
        owner = records.get(conn, name)
        found = records.by_ids(conn, records.with_parts(conn, [owner.id]))
    members = sorted(found.values(), key=lambda st: (st.id != owner.id, st.id))
    verified = [_verified(request, st, owner) for st in members]
    wrong = [st for st, v in zip(members, verified, strict=True) if v.differences]
    if not (request.repair and wrong and _repair(request, owner, wrong)):
        return verified
    mended = {str(st.qualified) for st in wrong}
    again = _with_parts(replace(request, repair=False, sample=None), name)
    return [replace(verified, repaired=verified.name in mended) for verified in again]


class _Skip(Exception):
    """Raised if a table can't be verified now; the message is the reason."""


def _verified(request: Request, st: StreamTable, owner: StreamTable) -> Verified:
    started = time.perf_counter()
    name = str(st.qualified)
    with (
        request.database.connect(autocommit=True, application_name="pgtrickle verify") as conn,
        translating(name),
    ):
        verified = _in_session(conn, request, st, owner)
        use.tell(conn)
    return replace(verified, name=name, duration_ms=round((time.perf_counter() - started) * 1000, 3))


def _in_session(conn: Connection, request: Request, st: StreamTable, owner: StreamTable) -> Verified:
    run: _Run | None = None
    try:
        _take_turn(conn, st)
        _require_one_answer(conn, st)
        st = _as_it_holds(conn, request, st, owner)
        _require_steady(conn, st)
        run = _Run.begin(conn, request, st)
        while numbers := run.next():
            run.note(conn, *_compared(conn, request, run, owner, numbers), numbers)
        return run.finish(conn)
    except _Skip as skip:
        reason = str(skip)
        if run is None:
            conn.execute(_SKIP, (st.id, _definition(st), reason))
        else:
            conn.execute(
                "UPDATE pgtrickle.pgt_verifications SET reason = %s, ended_at = pg_catalog.clock_timestamp()"
                " WHERE verification_id = %s",
                (reason, run.id),
            )
        return Verified(str(st.qualified), "SKIPPED", reason)


def _take_turn(conn: Connection, st: StreamTable) -> None:
    row = conn.execute(
        sql.SQL("SELECT pg_catalog.pg_try_advisory_lock({}, {})").format(
            sql.Literal(_LOCK_SPACE), second_half(sql.Placeholder())
        ),
        (st.id,),
    ).fetchone()
    if row is None or not row[0]:
        raise _Skip("another session verifies it now")


def _require_one_answer(conn: Connection, st: StreamTable) -> None:
    if not st.is_populated:
        raise _Skip("it has no content yet")
    if not table.exists(conn, st.qualified):
        raise _Skip("its table was dropped")


def _require_steady(conn: Connection, st: StreamTable) -> None:
    """Skip what depends on more than the sources and the clock, which stands at the content's data timestamp."""
    with in_zone(conn, st.timezone):
        is_steady = st.steady or probe(conn, st.defining_query, accepted=st.foreign_code).schema.steady
    if not is_steady:
        raise _Skip("its content depends on the session or on chance, so no two answers agree")


def _as_it_holds(conn: Connection, request: Request, st: StreamTable, owner: StreamTable) -> StreamTable:
    """The valid definition. If an object behind the stored one was altered, the table is refreshed first.

    That refresh may give the table other columns.
    """
    obstacle = _obstacle_before(conn, st)
    if obstacle is None:
        return st
    _refresh_first(request, owner, obstacle)
    found = records.by_ids(conn, [st.id]).get(st.id)
    if found is None:
        raise _Skip("another part took its place")
    return found


def _definition(st: StreamTable) -> str:
    said = (st.defining_query, st.maintained_query, st.timezone, st.relid, st.storage, st.identity)
    return hashlib.sha256(repr(said).encode()).hexdigest()[:16]


# -- the run -------------------------------------------------------------------------------------


@dataclass
class _Run:
    """A verification as the catalog has it, with its ranges and those that are done."""

    id: int
    st: StreamTable
    ranges: Ranges
    at_once: int
    wanted: tuple[int, ...]
    done: list[int]
    extent: _Extent
    rows_compared: int = 0
    found: Found = field(default_factory=Found)
    data_timestamp: datetime | None = None
    approximate: tuple[str, ...] = ()
    frozen: int | None = None
    unbounded: tuple[str, ...] = ()

    @classmethod
    def begin(cls, conn: Connection, request: Request, st: StreamTable) -> _Run:
        """A new run, or the one that was stopped, whose finished ranges are not compared again."""
        extent = _Extent.of(conn, st)
        key = describe(conn, st.qualified.sql, st.identity)
        left = conn.execute(_UNFINISHED, (st.id, _definition(st))).fetchone()
        chunks = max(math.ceil(extent.rows / request.settings.verify_chunk_rows), 1)
        if left is not None and not request.restart and request.sample is None:
            pgt_id, count, wanted, done, rows, differences, undecided = left
            if len(wanted) == count:
                ranges = Ranges.of(key, count)
                found = Found(differences, undecided)
                return cls(pgt_id, st, ranges, math.ceil(count / chunks), tuple(wanted), done, extent, rows, found)
        count = min(_RANGES * chunks, _MOST_RANGES) if extent.rows > _SMALL or request.sample is not None else 1
        if request.sample is not None:
            count = max(count, min(math.ceil(1 / request.sample), _MOST_RANGES))
        ranges = Ranges.of(key, count)
        picked = range(ranges.count)
        wanted = tuple(
            picked
            if request.sample is None
            else sorted(random.sample(picked, max(1, round(request.sample * ranges.count))))
        )
        row = conn.execute(_START, (st.id, _definition(st), ranges.count, list(wanted), st.data_timestamp)).fetchone()
        assert row is not None
        return cls(int(row[0]), st, ranges, math.ceil(ranges.count / chunks), wanted, [], extent)

    def next(self) -> list[int]:
        """The ranges to compare on the next snapshot; the list is empty if all are done."""
        return [number for number in self.wanted if number not in self.done][: self.at_once]

    def note(
        self, conn: Connection, rows: int, found: Found, data_timestamp: datetime | None, numbers: list[int]
    ) -> None:
        with conn.transaction():
            conn.execute(_GO_ON, (numbers, rows, found.differences, found.undecided, data_timestamp, self.id))
            for wrong in found.rows:
                values = {
                    "id": self.id,
                    "compared": wrong.compared,
                    "side": wrong.side,
                    "times": wrong.times,
                    "stored": Jsonb(wrong.stored),
                    "most": _MOST_ROWS,
                }
                conn.execute(_ROW, values)
        self.done += numbers
        self.rows_compared += rows
        self.found += found
        self.data_timestamp = data_timestamp

    def finish(self, conn: Connection) -> Verified:
        status = "DIFFERENT" if self.found.differences else "EQUAL"
        with conn.transaction():
            conn.execute(
                "UPDATE pgtrickle.pgt_verifications SET status = %s, reason = NULL,"
                " ended_at = pg_catalog.clock_timestamp() WHERE verification_id = %s",
                (status, self.id),
            )
            if self.found.differences:
                alerts.send(
                    conn,
                    Event.CONTENT_DIFFERS,
                    str(self.st.qualified),
                    differences=self.found.differences,
                    verification_id=self.id,
                    data_timestamp=self.data_timestamp,
                )
            rows = conn.execute(
                "SELECT compared, side, times, stored FROM pgtrickle.pgt_verification_rows WHERE verification_id = %s",
                (self.id,),
            ).fetchall()
        return Verified(
            str(self.st.qualified),
            status,
            rows_compared=self.rows_compared,
            differences=self.found.differences,
            undecided=self.found.undecided,
            ranges=self.ranges.count,
            ranges_done=len(self.done),
            data_timestamp=self.data_timestamp,
            approximate=self.approximate,
            frozen=self.frozen,
            unbounded=self.unbounded,
            rows=tuple(Wrong(*row) for row in rows),
        )


@dataclass(frozen=True)
class _Extent:
    """The size of the stored table, as far as it is known without counting."""

    plain: bool
    pages: int
    rows: float

    @classmethod
    def of(cls, conn: Connection, st: StreamTable) -> _Extent:
        row = conn.execute(_EXTENT, (st.relid,)).fetchone()
        kind, pages, rows = row if row is not None else ("r", 0, 0)
        return cls(kind == "r", int(pages), float(rows or 0))


# -- one snapshot --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Subject:
    """A definition as it was read before the snapshot is taken."""

    st: StreamTable
    query: dvm.View
    parts: tuple[tuple[StreamTable, dvm.View], ...]
    """The parts from which the table is computed, if it has any."""
    whole: Probe
    """The probe of the query as it was declared."""

    @classmethod
    def of(cls, conn: Connection, st: StreamTable) -> _Subject:
        members = records.by_ids(conn, records.with_parts(conn, [st.id]))
        parts = tuple((part, analysed(conn, part)) for part in members.values() if part.id != st.id)
        with in_zone(conn, st.timezone):
            return cls(st, analysed(conn, st), parts, probe(conn, st.defining_query))

    @property
    def members(self) -> tuple[tuple[StreamTable, dvm.View], ...]:
        return ((self.st, self.query), *self.parts)

    @property
    def readings(self) -> Mapping[str, Reading]:
        """What the query as declared reads of the clock."""
        return dvm.readings(self.whole.text, self.whole.schema)

    @property
    def relids(self) -> list[int]:
        """The oids of all tables that are read."""
        read = {source.relid for _, query in self.members for source in query.sources.values()}
        return sorted(read | {source.relid for source in self.whole.sources} | {self.st.relid or 0})


def _compared(
    conn: Connection, request: Request, run: _Run, owner: StreamTable, numbers: list[int]
) -> tuple[int, Found, datetime | None]:
    """Compare the ranges with the query on the present snapshot or, if that is not conclusive, after a refresh."""
    refreshed = False
    for attempt in range(_TRIES + 1):
        obstacle = _obstacle_before(conn, run.st)
        if obstacle is None:
            subject = _Subject.of(conn, _current(conn, run.st))
            try:
                at, beyond = _entered(conn, request, subject)
                states, data_timestamp, obstacle = _seen(conn, subject, at, beyond)
                blind = any(not s.source.captured for s in states.get(run.st.id, {}).values())
                if obstacle is None and blind and not refreshed:
                    obstacle = "it reads what has no triggers, so only right after a refresh is it known what it holds"
                if obstacle is None:
                    with in_zone(conn, run.st.timezone):
                        rows, found = _held_against(conn, request, run, subject, states, data_timestamp, numbers)
                    if not (blind and found.differences and attempt < _TRIES):
                        return rows, found, data_timestamp
            finally:
                conn.execute("ROLLBACK")
        if attempt < _TRIES:
            _refresh_first(request, owner, obstacle)
            refreshed = True
    raise _Skip(f"{obstacle}; its sources changed again before it could be compared")


def _current(conn: Connection, st: StreamTable) -> StreamTable:
    found = records.by_ids(conn, [st.id]).get(st.id)
    if found is None or _definition(found) != _definition(st):
        raise _Skip("it was altered or dropped meanwhile")
    return found


def _obstacle_before(conn: Connection, st: StreamTable) -> str | None:
    reason = reinit_reason(conn, _current(conn, st))
    if reason:
        return f"it is to be reinitialized ({reason})"
    state = wal.state(conn)
    return f"changes were lost: {state.lost}" if state is not None and state.lost else None


def _refresh_first(request: Request, owner: StreamTable, obstacle: str | None) -> None:
    if not request.refresh:
        raise _Skip(f"{obstacle}, and it was not to be refreshed first")
    names = [owner.qualified]
    result = refresh_unit(
        request.database, names, executor=request.executor, settings=request.settings, initiated_by="verify"
    )[str(owner.qualified)]
    if result.action == "SKIP":
        raise _Skip(f"{obstacle}, and it can't be refreshed now ({result.fallback_reason})")


def _entered(conn: Connection, request: Request, subject: _Subject) -> tuple[Snapshot, Mapping[str, Beyond]]:
    def begin() -> Snapshot:
        _enter(conn, subject)
        return snapshot.look(conn)

    if wal.state(conn) is None:
        return begin(), decoded.NOTHING
    return decoded.take(conn, request.database, begin)


def _enter(conn: Connection, subject: _Subject) -> None:
    """Begin a transaction that writes nothing, and lock its tables so that nobody rewrites them meanwhile.

    They are locked before the snapshot is taken, because to an older snapshot a rewritten table is empty. Writers
    don't wait for such a lock.
    """
    readable = conn.execute(_READABLE, (subject.relids,)).fetchall()
    conn.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    if readable:
        tables = sql.SQL(", ").join(sql.Identifier(schema, name) for schema, name in readable)
        conn.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(tables))


def _seen(
    conn: Connection, subject: _Subject, at: Snapshot, beyond: Mapping[str, Beyond]
) -> tuple[dict[int, dict[str, SourceState]], datetime | None, str | None]:
    """The sources' states at the snapshot, the content's data timestamp, and what prevents comparing there, if any."""
    now = records.by_ids(conn, [st.id for st, _ in subject.members])
    if {i: _definition(st) for i, st in now.items()} != {st.id: _definition(st) for st, _ in subject.members}:
        raise _Skip("it was altered meanwhile")
    states = observe.read(
        conn,
        at,
        [Reader(now[st.id], query.sources, Frontier.from_json(now[st.id].frontier)) for st, query in subject.members],
        beyond,
    )
    current = now[subject.st.id]
    return states, current.data_timestamp, _obstacle(conn, current, subject.query, states[current.id])


def _obstacle(conn: Connection, st: StreamTable, query: dvm.View, states: dict[str, SourceState]) -> str | None:
    reason = reinit_reason(conn, st)
    if reason:
        return f"it is to be reinitialized ({reason})"
    refusal = query.refusal
    if refusal is not None and refusal.reason in _UNDECIDED:
        raise _Skip(f"{refusal.reason.sentence}: no answer can be held against another")
    for state in states.values():
        name = f"{state.source.schema}.{state.source.name}"
        if state.buffer_lost:
            return f"changes of {name} were lost"
        if state.truncated:
            return f"{name} was truncated since its last refresh"
        if state.pending_rows and refusal is not None and query.topk is None:
            return f"changes of {name} are pending, and the query has no delta that would take them back"
    return None


def _held_against(
    conn: Connection,
    request: Request,
    run: _Run,
    subject: _Subject,
    states: dict[int, dict[str, SourceState]],
    instant: datetime | None,
    numbers: list[int],
) -> tuple[int, Found]:
    by_spark = (run.st.placement or request.settings.placement) != "database"
    is_large = by_spark and run.extent.rows > request.settings.read_partition_rows
    executor = request.executor() if is_large else None
    slices: tuple[str, ...] = ()
    if executor is not None and run.extent.plain:
        place = (run.st.schema, run.st.name, run.extent.pages, run.extent.rows)
        slices = ctid_slices(*place, request.settings) or ("true",)
    exported = snapshot.export(conn) if executor is not None else ""
    rows = 0
    found = Found()
    run.approximate = subject.query.approximate
    if run.st.is_copy and run.frozen is None and request.sample is None:
        run.frozen = _kept_apart(conn, subject, states, instant)
    for comparison in _comparisons(conn, subject, states, instant):
        run.unbounded = tuple(dict.fromkeys((*run.unbounded, *comparison.unbounded)))
        computation = replace(comparison.sums(run.ranges, numbers, slices), timezone=run.st.timezone)
        if executor is None:
            sums = read_rows(conn, computation)
        else:
            arrow = executor.compute(exported, computation, None).arrow
            assert arrow is not None
            sums = [tuple(row.values()) for row in arrow.select(list(computation.columns)).to_pylist()]
        rows, differ = differing(sums)
        if differ:
            found = _joined(found, _least(conn, comparison, run.ranges, differ), comparison)
    ids = wrong_row_ids(conn, run.st, run.ranges, numbers, _MOST_ROWS)
    # A wrong value in a row's identity makes its row id wrong, too, so the larger count is taken and not the sum.
    return rows, Found(max(found.differences, ids.differences), found.undecided, (*found.rows, *ids.rows))


def _least(conn: Connection, comparison: Comparison, ranges: Ranges, numbers: list[int]) -> Found:
    """The differences from the answer that is nearest to the stored rows, because each of the answers is right."""
    least: Found | None = None
    for expected in comparison.expected:
        found = comparison.wrong(conn, expected, ranges, numbers, _MOST_ROWS)
        if least is None or found.differences < least.differences:
            least = found
        if not least.differences:
            break
    return least or Found()


def _joined(found: Found, more: Found, comparison: Comparison) -> Found:
    """Both comparisons' findings. A row that is wrong in the content is wrong in its state, too, and counts once."""
    known = [(wrong.side, wrong.stored.items()) for wrong in found.rows]
    rows = [w for w in more.rows if not any(w.side == side and items <= w.stored.items() for side, items in known)]
    # Nobody sees how hidden values look, so their looks are not counted as undecided.
    undecided = found.undecided if comparison.hidden else more.undecided
    return Found(max(found.differences, more.differences), undecided, (*found.rows, *rows))


def _comparisons(
    conn: Connection, subject: _Subject, states: dict[int, dict[str, SourceState]], instant: datetime | None
) -> Iterable[Comparison]:
    st, view = subject.st, subject.query
    binding = _bound(conn, subject, states, instant)
    stored = view.before(binding)
    # What a copy keeps is no query's answer.
    content = None if st.is_copy else _content(subject, states, clock.read(conn, subject.readings, None, _at(instant)))
    columns = describe(conn, st.qualified.sql, [column.name for column in st.storage])
    visible = {column.name for column in st.visible}
    hidden = frozenset(column.name for column in st.storage) - visible
    bounds = view.bounds(binding)
    if content is not None and bounds is not None:
        content = within_bounds(content, bounds, [column.name for column in st.visible], view.approximate)
    # What a part has rounded is no value to hold a bound against.
    floats = {column.name: column.type for column in columns if column.name in view.left_open.rounded}
    rounding = None if subject.parts else view.rounding(binding, floats)
    if content is not None:
        is_open = view.left_open != Open()
        expected = (content, stored) if is_open and stored is not None else (content,)
        shown = tuple(column for column in columns if column.name in visible)
        yield Comparison("content", st.qualified, shown, frozenset(), expected, view.left_open, rounding)
    if stored is not None and (hidden or content is None):
        yield Comparison("state", st.qualified, columns, hidden, (stored,), view.left_open, rounding)


def _at(instant: datetime | None) -> str:
    """The clock stands at the content's data timestamp."""
    return instant.isoformat() if instant is not None else ""


def _bound(
    conn: Connection, subject: _Subject, states: dict[int, dict[str, SourceState]], instant: datetime | None
) -> Binding:
    """The sources as they were when the content was computed, and the content."""
    st, readings = subject.st, clock.read(conn, subject.query.readings, None, _at(instant))
    return replace(_binding(states[st.id], readings), stored=(st.schema, st.name), is_filled=True)


def _kept_apart(
    conn: Connection, subject: _Subject, states: dict[int, dict[str, SourceState]], instant: datetime | None
) -> int:
    """The number of keys under which a copy and its table don't hold the same row."""
    st = subject.st
    rows = subject.query.before(replace(_bound(conn, subject, states, instant), is_filled=False))
    assert rows is not None
    columns = [column.name for column in st.storage]
    images = [sql.SQL(", ").join(sql.Identifier(side, name) for name in columns) for side in ("t", "s")]
    row = conn.execute(
        sql.SQL(
            "SELECT count(*) FROM ({rows}) AS t FULL JOIN {copy} AS s ON {same}"
            " WHERE t.{key} IS NULL OR s.{key} IS NULL OR ROW({table_row})::text <> ROW({copy_row})::text"
        ).format(
            rows=sql.SQL(rows),
            copy=st.qualified.sql,
            same=sql.SQL(" AND ").join(
                sql.SQL("{} = {}").format(sql.Identifier("t", name), sql.Identifier("s", name)) for name in st.identity
            ),
            key=sql.Identifier(st.identity[0]),
            table_row=images[0],
            copy_row=images[1],
        )
    ).fetchone()
    return int(row[0]) if row is not None else 0


def _content(
    subject: _Subject, states: dict[int, dict[str, SourceState]], readings: Mapping[str, Values]
) -> str | None:
    """SQL of the declared query at the frontier; None if members have different windows of one source.

    Then only the parts can be compared.
    """
    bound: dict[str, SourceState] = {}
    for of_member in states.values():
        for key, state in of_member.items():
            if key in bound and bound[key].window != state.window:
                return None
            bound[key] = state
    if not readings and not any(state.pending_rows for state in bound.values()):
        return subject.st.defining_query
    captured = {(key, name) for _, query in subject.members for key, names in query.used.items() for name in names}
    return dvm.as_of(subject.whole.text, subject.whole.schema, _binding(bound, readings), captured)


def _binding(states: dict[str, SourceState], readings: Mapping[str, Values]) -> Binding:
    sources = {key: SourceBinding(state.pending_rows > 0, state.window) for key, state in states.items()}
    return Binding(sources, readings=readings)


# -- repair --------------------------------------------------------------------------------------


def _repair(request: Request, owner: StreamTable, wrong: Sequence[StreamTable]) -> bool:
    """Compute the tables and their readers anew; returns whether that could be done now.

    The rows that differ were never handed on to the readers, or wrongly, so a difference would mislead the readers.
    """
    with request.database.transaction() as conn:
        if request.withdraw is not None:
            request.withdraw(conn, *wrong)
        guard.let_through(conn)
        for st in wrong:
            if st.keyed:
                _delete_twins(conn, st)
            records.update(conn, st.id, needs_reinit=True, reinit_reason=REASON)
            if not st.is_hidden and dependencies.readers(conn, st):
                drop_st_buffer(conn, st.id)
                ensure_st_buffer(conn, st)
    result = refresh_unit(
        request.database,
        [owner.qualified],
        executor=request.executor,
        settings=request.settings,
        force_full=True,
        initiated_by="verify",
    )[str(owner.qualified)]
    if result.action == "SKIP":
        return False
    with request.database.transaction() as conn:
        conn.execute(
            "UPDATE pgtrickle.pgt_verifications v SET repaired = true WHERE pgt_id = ANY(%s) AND status = 'DIFFERENT'"
            " AND NOT EXISTS (SELECT FROM pgtrickle.pgt_verifications l"
            " WHERE l.pgt_id = v.pgt_id AND l.verification_id > v.verification_id)",
            ([st.id for st in wrong],),
        )
    return True


def _delete_twins(conn: Connection, st: StreamTable) -> None:
    """Delete all but one row of each key, because no difference can delete one of two rows with the same key."""
    key = describe(conn, st.qualified.sql, st.identity)
    identity = sql.SQL(", ").join([sql.Identifier("s", ROW_ID), *(column.partition("s") for column in key)])
    conn.execute(sql.SQL(_TWINS).format(t=st.qualified.sql, identity=identity))
