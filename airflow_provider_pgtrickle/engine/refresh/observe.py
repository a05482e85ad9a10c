"""Observed: the facts that a decision needs are read at the unit's snapshot, for all tables in a few round trips."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from psycopg import sql

from airflow_provider_pgtrickle.engine.capture import wishes
from airflow_provider_pgtrickle.engine.catalog import alerts
from airflow_provider_pgtrickle.engine.catalog.alerts import Event
from airflow_provider_pgtrickle.engine.catalog.database import REPLANNED, Database
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.catalog.zone import in_zone
from airflow_provider_pgtrickle.engine.dvm import Kept
from airflow_provider_pgtrickle.engine.dvm.binding import Window
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES, ROW_ID, buffer_column, buffer_name
from airflow_provider_pgtrickle.engine.dvm.clock import Values
from airflow_provider_pgtrickle.engine.dvm.emit import (
    changes_in,
    columns_read,
    concerns,
    found_by,
    literal,
    window_predicate,
    window_rows,
)
from airflow_provider_pgtrickle.engine.dvm.schema import Source, SourceColumn
from airflow_provider_pgtrickle.engine.refresh import clock, history, snapshot
from airflow_provider_pgtrickle.engine.refresh.decision import SourceFacts
from airflow_provider_pgtrickle.engine.refresh.lock import Locked, Request
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection, Frontier, Snapshot
from airflow_provider_pgtrickle.engine.settings import Settings

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.engine.capture.pump import Beyond

_NOTHING_BEYOND: Mapping[str, Beyond] = MappingProxyType({})

_WORTH_ANALYZING = 2_000
# So many changes may be worth netting: it takes about a twentieth of what as many changes of different rows would.
_WORTH_NETTING = 2_000
# Of more changes than this, those of one row in so many are looked at to learn how often a row has changed.
_ALL_LOOKED_AT, _ONE_ROW_IN = 20_000, 64
# A row that changed once has two images. A sum pays where there are twice as many.
_IMAGES = 4
# A tenth of the usual sample takes a seventh of the time. It suffices, because the planner must only not take a window
# for empty.
_COARSE = "SET default_statistics_target = 10"

# Everything is read in the snapshot, so the digest describes the triggers under which all visible rows were written.
_BUFFERS = """
SELECT s.key, b.relfilenode::bigint,
       CASE WHEN t.is_live THEN nullif(pgtrickle.pgt_data_timestamp(t.pgt_id), now()) ELSE t.data_timestamp END,
       c.epoch,
       CASE WHEN NOT s.captured THEN false
            -- A crash of the server empties an UNLOGGED buffer.
            WHEN b.oid IS NULL OR b.relpersistence <> 'p' AND NOT pgtrickle.pgt_buffer_survived(b.relname) THEN true
            ELSE s.pgt_id IS NULL AND c.digest IS DISTINCT FROM pgtrickle.pgt_capture_digest(s.relid) END,
       ARRAY(SELECT DISTINCT a.attname::text FROM pgtrickle.pgt_frozen f
             JOIN pg_catalog.pg_attribute a
               ON (a.attrelid, a.attnum, a.atttypid) = (f.source_relid, f.attnum, f.column_type)
              AND f.column_type = f.base_type
             WHERE f.source_relid = s.relid AND s.pgt_id IS NULL)
  FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::oid[], %s::bool[]) AS s(key, buffer, pgt_id, relid, captured)
  LEFT JOIN pg_catalog.pg_class b
    ON b.relname = s.buffer AND b.relnamespace = pg_catalog.to_regnamespace(%s)
  LEFT JOIN pgtrickle.pgt_stream_tables t ON t.pgt_id = s.pgt_id
  LEFT JOIN pgtrickle.pgt_change_tracking c ON c.source_relid = s.relid AND s.pgt_id IS NULL
"""

_FROZEN = """
SELECT EXISTS (SELECT FROM pgtrickle.pgt_frozen f WHERE f.pgt_id = %s AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_attribute a
     WHERE (a.attrelid, a.attnum, a.atttypid) = (f.source_relid, f.attnum, f.column_type) AND NOT a.attisdropped))
"""

# The size is estimated as the planner does it: rows per page at the last ANALYZE, times the present number of pages.
# Partitions and inheritance children are added up, because a parent has no statistics of its own. The size is NULL if
# one of them was never analyzed.
_SIZES = """
WITH RECURSIVE tree(relid, part) AS (
    SELECT relid, relid FROM unnest(%s::oid[]) AS t(relid)
    UNION
    SELECT t.relid, i.inhrelid FROM tree t JOIN pg_catalog.pg_inherits i ON i.inhparent = t.part
), part AS (
    SELECT t.relid, c.reltuples, c.relpages,
           pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::int AS pages
      FROM tree t JOIN pg_catalog.pg_class c ON c.oid = t.part
     WHERE c.relkind IN ('r', 'm')
), estimate AS (
    SELECT relid, CASE WHEN pages = 0 THEN 0
                       WHEN reltuples >= 0 AND relpages > 0 THEN reltuples / relpages * pages END AS n
      FROM part
)
SELECT relid::bigint, CASE WHEN bool_or(n IS NULL) THEN NULL ELSE sum(n) END FROM estimate GROUP BY 1
"""


@dataclass(frozen=True)
class SourceState:
    """The state of one source of one member, for the decision, the computation and the frontier."""

    source: Source
    window: Window | None
    """None if there is no frontier to start from, or no buffer to read."""
    buffer: int | None
    """The buffer's file."""
    epoch: int | None
    torn: bool
    """Capture has to be mended, because a trigger, a captured table's member or the buffer has changed or is gone."""
    buffer_lost: bool
    """Changes since the frontier may be missing."""
    pending_rows: int
    """Changes in the window that concern what the reader reads."""
    truncated: bool
    data_timestamp: datetime | None
    """The data timestamp of a source that is a stream table, else None."""
    held_rows: int = 0
    """All changes in the window."""
    is_mixed: bool = False
    """Some may cancel out, because rows both come and go."""
    is_rewritten: bool = False
    """Some are no insertions: a row that concerns the reader was updated or deleted."""
    columns: tuple[SourceColumn, ...] = ()
    """What the reader reads of the source."""
    least: tuple[tuple[str, str], ...] = ()
    """Of columns by which rows of the source are frozen, or read from a place on: the least value in the window, as
    SQL."""
    most: tuple[tuple[str, str], ...] = ()
    """The greatest of the same."""
    net_rows: int | None = None
    """How many rows the window changes after all; None if that was not counted."""

    @property
    def is_changed(self) -> bool:
        return (self.pending_rows if self.net_rows is None else self.net_rows) > 0

    @property
    def reads_all(self) -> bool:
        return {c.name for c in self.source.columns} <= {c.name for c in self.columns}

    def facts(self, rows: float, pending: int = 0) -> SourceFacts:
        """The facts for the decision. `rows`: the source's size; `pending`: rows that an earlier member hands on."""
        return SourceFacts(
            key=self.source.key,
            name=f"{self.source.schema}.{self.source.name}",
            captured=self.source.captured,
            buffer_lost=self.buffer_lost,
            pending_rows=self.pending_rows + pending,
            changed_rows=None if self.net_rows is None else self.net_rows + pending,
            truncated=self.truncated,
            rows=rows,
        )


@dataclass(frozen=True)
class Observed(Locked):
    """A locked table with the states of its sources, by frontier key."""

    states: Mapping[str, SourceState]
    readings: Mapping[str, Values]
    """What the query reads of the clock: at the stored content's data timestamp, and at the one to come."""
    moved: int | None
    """The number of rows that compare otherwise with the clock now; None if the content's instant isn't known."""
    before: Mapping[str, SourceState]
    """Where an altered query's content follows from the stored rows: what has changed for the query before it."""

    def data_timestamp(self, at: Snapshot, unit: Mapping[str, Observed]) -> datetime:
        """The instant that all of the content reflects: the snapshot's, or that of the stalest stream table it reads.

        For a source in the same unit, the timestamp that this refresh gives it counts. A copy's never goes back,
        because what was frozen once stays.
        """
        older = [
            state.data_timestamp
            for key, state in self.states.items()
            if state.data_timestamp is not None and key not in unit
        ]
        inside = [unit[key].data_timestamp(at, unit) for key in self.states if key in unit]
        found = min([at.taken_at, *older, *inside])
        before = self.stored.data_timestamp if self.stored.is_copy else None
        return found if before is None else max(found, before)


@dataclass(frozen=True)
class _Buffer:
    file: int | None
    data_timestamp: datetime | None
    epoch: int | None
    torn: bool
    frozen: list[str]
    """The columns by which rows of the source are frozen, but for those of domains, which may refuse a value."""


@dataclass(frozen=True)
class Reader:
    """A stream table with the sources that it reads and its frontier."""

    st: StreamTable
    sources: Mapping[str, Source]
    frontier: Frontier
    used: Mapping[str, tuple[str, ...]] | None = None
    """The columns that it reads, by source; None if every change is to count."""
    places: frozenset[tuple[str, str]] = frozenset()
    """(source key, column) where the source's rows are read from a changed value on."""


def observe(
    conn: Connection, unit: Mapping[str, Locked], request: Request, trace: history.Trace
) -> tuple[Snapshot, dict[str, Observed]]:
    """Take the snapshot and read what the decisions need. Torn capture is mended, and then everything is read again."""
    with trace.phase("capture"):
        by_wal = _arranged(conn, request.settings, _tables(unit))
    at, observed = _look(conn, unit, request, trace, by_wal=by_wal)
    torn = [
        member
        for member in observed.values()
        if any(state.torn for state in member.states.values()) or _lacks_frozen(conn, member.stored)
    ]
    if torn:
        from airflow_provider_pgtrickle.engine.declare.storage import recapture

        conn.execute("COMMIT")
        for member in torn:
            # One transaction for each: a writer of two sources may hold the second when the first is locked here.
            with conn.transaction():
                recapture(conn, member.stored, request.settings)
        at, observed = _look(conn, unit, request, trace, by_wal=by_wal)
    _warn_of_growth(observed, request)
    return at, observed


def _lacks_frozen(conn: Connection, st: StreamTable) -> bool:
    """Whether a column by which it declares rows frozen isn't found any more, as it was then."""
    if st.frozen_before is None:
        return False
    row = conn.execute(_FROZEN, (st.id,)).fetchone()
    return row is not None and bool(row[0])


def _arranged(conn: Connection, settings: Settings, relids: Collection[int]) -> bool:
    """Settle how the sources are captured; whether one of them is taken from the log."""
    sources = wishes.read(conn, settings, relids)
    if wishes.are_settled(sources):
        return False
    # What captures is imported only where the log may tell of a source.
    from airflow_provider_pgtrickle.engine.capture import mode

    return mode.arrange(conn, settings, relids, sources)


def _tables(unit: Mapping[str, Locked]) -> set[int]:
    """The captured tables that the unit reads."""
    sources = (source for member in unit.values() for source in member.query.sources.values())
    return {source.relid for source in sources if source.pgt_id is None and source.captured}


def _look(
    conn: Connection, unit: Mapping[str, Locked], request: Request, trace: history.Trace, *, by_wal: bool
) -> tuple[Snapshot, dict[str, Observed]]:
    beyond = _NOTHING_BEYOND
    with trace.phase("snapshot"):
        if by_wal:
            from airflow_provider_pgtrickle.engine.refresh import decoded

            at, beyond = decoded.take(conn, request.database, lambda: snapshot.take(conn))
        else:
            at = snapshot.take(conn)
    if request.instant is not None:
        at = replace(at, taken_at=request.instant)
    with trace.phase("decide"):
        states = read(conn, at, [_reader(m) for m in unit.values()], beyond)
        observed = {
            key: Observed(
                **vars(member),
                states=states[member.st.id],
                readings={},
                moved=0,
                before=_before(conn, at, member, beyond),
            )
            for key, member in unit.items()
        }
        return at, {key: _with_clock(conn, member, at, observed) for key, member in observed.items()}


def _before(conn: Connection, at: Snapshot, member: Locked, beyond: Mapping[str, Beyond]) -> Mapping[str, SourceState]:
    if not isinstance(member.kept, Kept):
        return {}
    old = member.kept.old
    return read(conn, at, [Reader(member.stored, old.sources, member.frontier, old.used)], beyond)[member.stored.id]


def _with_clock(conn: Connection, member: Observed, at: Snapshot, unit: Mapping[str, Observed]) -> Observed:
    """The table with what its query reads of the clock, and how many rows that moves."""
    if not member.query.readings:
        return member
    if member.query.is_copy:
        return replace(member, readings=_bound_before(conn, member))
    old = member.frontier.instant if member.stored.is_populated else None
    is_known = old is not None or not member.stored.is_populated
    with in_zone(conn, member.st.timezone):
        readings = clock.read(conn, member.query.readings, old, member.data_timestamp(at, unit).isoformat())
        moved = clock.moved(conn, member.query, readings) if is_known else None
    return replace(member, readings=readings, moved=moved)


def _bound_before(conn: Connection, member: Observed) -> Mapping[str, Values]:
    """What a copy reads of the clock: of the last refresh. Whatever wasn't frozen when it changed isn't frozen then."""
    stored = member.stored.data_timestamp
    instant = member.frontier.instant or (stored.isoformat() if stored is not None else None)
    return {} if instant is None else clock.read(conn, member.query.readings, None, instant)


def _reader(member: Locked) -> Reader:
    return Reader(member.st, member.query.sources, member.frontier, member.query.used, member.query.places)


def _warn_of_growth(unit: Mapping[str, Observed], request: Request) -> None:
    grown = {
        state.source.key: (member.name, state)
        for member in unit.values()
        for state in member.states.values()
        if state.held_rows > request.settings.change_buffer_warning_rows
    }
    if not grown:
        return
    # The alert is sent in a separate session, because the coordinator's transaction may last and would delay it.
    with request.database.connect(autocommit=True) as conn:
        for name, state in grown.values():
            source = f"{state.source.schema}.{state.source.name}"
            alerts.send(conn, Event.BUFFER_GROWTH_WARNING, name, source=source, pending_rows=state.held_rows)


def read(
    conn: Connection, at: Snapshot, readers: Sequence[Reader], beyond: Mapping[str, Beyond] = _NOTHING_BEYOND
) -> dict[int, dict[str, SourceState]]:
    """The state of every source of every member, by stream table id and source key.

    `beyond`: by buffer, what the snapshot sees and the buffer doesn't hold.
    """
    sources = {key: source for reader in readers for key, source in reader.sources.items()}
    buffers = _buffers(conn, sources)
    # Up to here the catalog was asked; what follows holds values of users' types, and may call their functions.
    conn.execute(REPLANNED)
    windows = {
        (reader.st.id, key): _window(reader.frontier, source, buffers[key], at, beyond)
        for reader in readers
        for key, source in reader.sources.items()
    }
    # What changed in the sources of a live table is in its content already.
    live = {reader.st.id for reader in readers if reader.st.is_live}
    columns = {
        (reader.st.id, key): columns_read(source, reader.used.get(key, source.layout))
        for reader in readers
        if reader.used is not None
        for key, source in reader.sources.items()
    }
    told_apart = {
        (reader.st.id, key): columns[reader.st.id, key]
        for reader in readers
        if reader.used is not None
        for key, source in reader.sources.items()
        if source.kind != "STREAM_TABLE"
    }
    places = {reader.st.id: reader.places for reader in readers}
    bounding = {
        (pgt_id, key): tuple(c for c in held if c.name in buffers[key].frozen or (key, c.name) in places[pgt_id])
        for (pgt_id, key), held in told_apart.items()
    }
    pending = _pending(
        conn,
        {place: window for place, window in windows.items() if window is not None and place[0] not in live},
        told_apart,
        bounding,
    )
    states: dict[int, dict[str, SourceState]] = {}
    for reader in readers:
        of_reader = states.setdefault(reader.st.id, {})
        for key, source in reader.sources.items():
            window = windows[reader.st.id, key]
            found = pending.get((reader.st.id, key), _NOTHING)
            if window is not None and found.concerning < found.held:
                window = replace(window, narrow=True)
            of_reader[key] = SourceState(
                source=source,
                window=window,
                buffer=buffers[key].file,
                epoch=None if buffers[key].torn else buffers[key].epoch,
                torn=buffers[key].torn,
                buffer_lost=source.captured and window is None,
                pending_rows=found.concerning,
                truncated=found.truncated,
                data_timestamp=buffers[key].data_timestamp,
                held_rows=found.held,
                is_mixed=found.is_mixed,
                is_rewritten=found.is_rewritten,
                columns=columns.get((reader.st.id, key), ()),
                least=_as_sql(found.least, bounding.get((reader.st.id, key), ())),
                most=_as_sql(found.most, bounding.get((reader.st.id, key), ())),
            )
    return states


def sizes(conn: Connection, database: Database, sources: Sequence[Source]) -> dict[str, float]:
    """Estimated rows by source key. A source that was never analyzed is analyzed or counted, but never guessed."""
    if not sources:
        return {}
    relids = {source.key: source.relid for source in sources}
    found = _estimates(conn, list(relids.values()))
    unknown = [source for source in sources if found.get(source.relid) is None]
    if unknown:
        tables = [sql.Identifier(s.schema, s.name) for s in unknown]
        found |= _analyzed(database, tables, [s.relid for s in unknown])
    for source in unknown:
        if found.get(source.relid) is None:
            row = conn.execute(
                sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(source.schema, source.name))
            ).fetchone()
            found[source.relid] = float(row[0]) if row else 0.0
    return {key: found[relid] or 0.0 for key, relid in relids.items()}


class Describer:
    """Keeps PostgreSQL's statistics of what a refresh reads of buffers with many changes.

    Older statistics don't know the latest transactions. By them the planner takes a window for empty, and joins a
    hundred thousand rows one by one. It has a session of its own, because the lock of ANALYZE lasts as long as the
    transaction; it is opened when there is something to do.
    """

    def __init__(self, database: Database) -> None:
        self._open = partial(database.connect, autocommit=True, application_name="pgtrickle analyze")
        self._session: Connection | None = None
        self._known: set[tuple[int, str]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._session is not None:
            self._session.close()

    def describe(self, states: Iterable[SourceState]) -> None:
        """ANALYZE of each buffer the columns that are read and that this refresh hasn't analyzed yet."""
        for state in states:
            if not (state.buffer and state.window) or state.held_rows < _WORTH_ANALYZING:
                continue
            columns = tuple(name for name in _described(state) if (state.buffer, name) not in self._known)
            if not columns:
                continue
            if self._session is None:
                self._session = self._open()
                self._session.execute(_COARSE)
            listed = sql.SQL(", ").join(map(sql.Identifier, columns))
            _analyze(self._session, sql.SQL("{} ({})").format(sql.Identifier(*state.window.buffer), listed))
            self._known.update((state.buffer, name) for name in columns)


def _described(state: SourceState) -> tuple[str, ...]:
    """The columns of a buffer whose statistics matter to a reader: most buffers have many more."""
    names = [c.name for c in state.columns or state.source.columns if c.name != ROW_ID]
    if state.source.kind == "STREAM_TABLE":
        return ("xid", "action", "pk_hash", *(buffer_column("new", name) for name in names))
    return ("xid", "action", *(buffer_column(side, name) for name in names for side in ("new", "old")))


def _buffers(conn: Connection, sources: Mapping[str, Source]) -> dict[str, _Buffer]:
    rows = conn.execute(
        _BUFFERS,
        (
            list(sources),
            [buffer_name(source.key) for source in sources.values()],
            [source.pgt_id for source in sources.values()],
            [source.relid for source in sources.values()],
            [source.captured for source in sources.values()],
            CHANGES,
        ),
    ).fetchall()
    return {key: _Buffer(*state) for key, *state in rows}


def _window(
    frontier: Frontier, source: Source, buffer: _Buffer, at: Snapshot, beyond: Mapping[str, Beyond]
) -> Window | None:
    """The source's changes since the frontier; None if some may be missing.

    The view `pgt_distrusted` answers that for whole tables. It is not read here, because the frontier needs each
    source's file and epoch, and a view of these for both would have to be installed before the next refresh.
    """
    since = frontier.sources.get(source.key)
    if since is None or buffer.torn or (since.buffer, since.epoch) != (buffer.file, buffer.epoch):
        return None
    if buffer.file is None:
        return None
    if since.xids.xmax > at.frontier(None).xids.xmax:
        # Transaction numbers only grow, so this frontier is from before a restore or from another cluster.
        return None
    window = since.window((CHANGES, buffer_name(source.key)), at.xids)
    more = beyond.get(window.buffer[1])
    return replace(window, beyond=more.item) if more else window


@dataclass(frozen=True)
class _Pending:
    """What a window holds, as counted in one pass."""

    held: int
    concerning: int
    """Those that change a column that the reader reads."""
    truncated: bool
    is_mixed: bool
    is_rewritten: bool
    least: Mapping[str, str]
    """The least value of each column by which rows are frozen, as text. It bounds what a change can be joined with,
    whatever was declared."""
    most: Mapping[str, str]
    """The greatest."""


_NOTHING = _Pending(0, 0, False, False, False, {}, {})


def _pending(
    conn: Connection,
    windows: Mapping[tuple[int, str], Window],
    told_apart: Mapping[tuple[int, str], tuple[SourceColumn, ...]],
    bounding: Mapping[tuple[int, str], tuple[SourceColumn, ...]],
) -> dict[tuple[int, str], _Pending]:
    """Count the windows. `told_apart`: what readers read of tables, whose buffers say which columns have changed.

    `bounding`: the columns whose least and greatest values are asked for.
    """
    if not windows:
        return {}
    places = list(windows)
    counts = sql.SQL(" UNION ALL ").join(
        sql.SQL(
            "SELECT {number}, count(*), count(*) FILTER (WHERE {concerns}), coalesce(bool_or(action = 'T'), false),"
            " coalesce(bool_or(action IN ('I', 'U')) AND bool_or(action IN ('D', 'U')), false),"
            " coalesce(bool_or(action <> 'I') FILTER (WHERE action = 'T' OR {concerns}), false), {least}, {most}"
            " FROM {rows} WHERE {within}"
        ).format(
            number=sql.Literal(number),
            concerns=sql.SQL(concerns(told_apart[place]) if place in told_apart else "true"),
            least=_extremes(bounding.get(place, ()), "LEAST", "min"),
            most=_extremes(bounding.get(place, ()), "GREATEST", "max"),
            rows=sql.SQL(window_rows(windows[place])),
            within=within(windows[place]),
        )
        for number, place in enumerate(places)
    )
    return {places[number]: _Pending(*found) for number, *found in conn.execute(counts)}


def _extremes(columns: Sequence[SourceColumn], of: str, in_image: str) -> sql.Composable:
    """SQL of the extreme value of each column in either image, as text that means the same in every session."""
    both, one = sql.SQL(of), sql.SQL(in_image)
    items = [
        sql.SQL("{name}, to_jsonb({both}({one}({new}), {one}({old}))) #>> '{{}}'").format(
            name=sql.Literal(c.name),
            both=both,
            one=one,
            new=sql.Identifier(buffer_column("new", c.name)),
            old=sql.Identifier(buffer_column("old", c.name)),
        )
        for c in columns
    ]
    return sql.SQL("jsonb_build_object({})").format(sql.SQL(", ").join(items))


def _as_sql(values: Mapping[str, str], columns: Sequence[SourceColumn]) -> tuple[tuple[str, str], ...]:
    return tuple((c.name, f"{literal(values[c.name])}::{c.type}") for c in columns if values.get(c.name) is not None)


def netted(conn: Connection, state: SourceState, *, only_sum_tells: bool, decides: bool) -> SourceState:
    """The state with its window as a sum, and the number of rows that this changes: by key, else by image.

    `only_sum_tells`: whether a change concerns the reader; `decides`: whether FULL is forced. Else the sum has to pay.
    Of many changes the rows are estimated: to count what is left after all would be the sum itself.
    """
    assert state.window is not None
    if not only_sum_tells and not decides and state.pending_rows < _WORTH_NETTING:
        return state
    is_large = state.pending_rows > _ALL_LOOKED_AT
    if found_by(state.source) and not only_sum_tells and (is_large or not decides):
        images, rows = _looked_at(conn, state, state.window)
        # Where none of the rows looked at has changed, there are few of them.
        if images < _IMAGES * rows:
            return replace(state, net_rows=rows) if decides else state
        if is_large:
            return replace(state, window=replace(state.window, net=True), net_rows=max(rows, 1))
    window = replace(state.window, net=True)
    changes = sql.SQL(changes_in(state.source, state.columns, window))
    key = state.source.primary_key if state.source.kind != "STREAM_TABLE" else ()
    changed = sql.SQL("SELECT DISTINCT {}" if key else "SELECT {}").format(
        sql.SQL(", ").join(sql.Identifier("c", name) for name in key)
    )
    row = conn.execute(sql.SQL("SELECT count(*) FROM ({} FROM ({}) AS c) AS k").format(changed, changes)).fetchone()
    return replace(state, window=window, net_rows=None if row is None else int(row[0]))


def _looked_at(conn: Connection, state: SourceState, window: Window) -> tuple[int, int]:
    """About how many images the window has, and of how many rows."""
    one_in = 1 if state.pending_rows <= _ALL_LOOKED_AT else _ONE_ROW_IN
    is_stream_table = state.source.kind == "STREAM_TABLE"
    new, old = (
        sql.SQL(", ").join(
            sql.Identifier("pk_hash" if is_stream_table else buffer_column(side, name))
            for name in found_by(state.source)
        )
        for side in ("new", "old")
    )
    row = conn.execute(
        sql.SQL(
            "SELECT coalesce(sum(k.images), 0), count(DISTINCT k.key) FROM ("
            "SELECT CASE WHEN action IN ('I', 'U') OR {is_stream_table} THEN ROW({new}) ELSE ROW({old}) END::text"
            " AS key, CASE WHEN action = 'U' THEN 2 ELSE 1 END AS images FROM {rows} WHERE {within}) AS k"
            " WHERE hashtext(k.key) % {one_in} = 0"
        ).format(
            is_stream_table=sql.Literal(is_stream_table),
            new=new,
            old=new if is_stream_table else old,
            rows=sql.SQL(window_rows(window)),
            within=within(window),
            one_in=sql.Literal(one_in),
        )
    ).fetchone()
    assert row is not None  # an aggregate without GROUP BY
    return int(row[0]) * one_in, int(row[1]) * one_in


def within(window: Window) -> sql.Composed:
    """The condition that a buffer's row is in the window. It also works in a session that sees later transactions."""
    new = sql.SQL("{}::pg_snapshot").format(sql.Literal(window.new))
    # The predicate is the algebra's own text. The range on xid only lets the index be used; visibility decides.
    return sql.SQL("{} AND xid < pg_snapshot_xmax({}) AND pg_visible_in_snapshot(xid, {})").format(
        sql.SQL(window_predicate(window)), new, new
    )


def _analyzed(
    database: Database, tables: Sequence[sql.Identifier], estimated: Sequence[int]
) -> dict[int, float | None]:
    """ANALYZE the tables and return the estimated sizes of `estimated`.

    A separate session does it, because the lock of ANALYZE lasts as long as the transaction.
    """
    with database.connect(autocommit=True, application_name="pgtrickle analyze") as analyst:
        for table in tables:
            _analyze(analyst, table)
        return _estimates(analyst, list(estimated))


def _analyze(analyst: Connection, what: sql.Composable) -> None:
    # If the role lacks the right, PostgreSQL only warns; a locked table is skipped.
    analyst.execute(sql.SQL("ANALYZE (SKIP_LOCKED) {}").format(what))


def _estimates(conn: Connection, relids: list[int]) -> dict[int, float | None]:
    return dict(conn.execute(_SIZES, (relids,)).fetchall())
