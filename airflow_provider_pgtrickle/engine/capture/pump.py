"""The pump writes what the log tells of captured tables into their change buffers.

    rows(source) = { row : its relation belongs to the source, position, wal_from ≤ its commit < wal_until }

The rows and the new position are one commit, and the slot is advanced after it: killed anywhere, each row is in its
buffer exactly once. An UPDATE becomes U where the key stays, else D and I, as the trigger writes it; rows of which
nothing captured changed are left out. What doesn't fit what is captured becomes a T, for which every reader runs FULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from psycopg import Connection, ServerCursor, sql

from airflow_provider_pgtrickle.engine.capture import pgoutput, wal
from airflow_provider_pgtrickle.engine.capture.pgoutput import NULL, UNCHANGED, Relation, lsn_text, parse_lsn, widened
from airflow_provider_pgtrickle.engine.catalog.capabilities import Capabilities
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES, buffer_column
from airflow_provider_pgtrickle.engine.dvm.emit import literal
from airflow_provider_pgtrickle.engine.errors import TransientFault
from airflow_provider_pgtrickle.engine.names import QualifiedName

#: Messages after which a batch ends with its transaction, so that a long log is committed in pieces.
_BATCH = 1_000_000
_FETCHED = 10_000
#: The position is stored, and the slot advanced, when this much log holds nothing for us.
_WORTH_ADVANCING = 1 << 20

_MESSAGES = (
    "SELECT data FROM pg_catalog.pg_logical_slot_peek_binary_changes(%s, NULL, %s,"
    " 'proto_version', '1', 'publication_names', %s)"
)

# A table that is captured by triggers again is still taken from the log up to that moment.
_TARGETS = """
    WITH RECURSIVE above(oid) AS (
        SELECT %s::oid
        UNION
        SELECT i.inhparent FROM pg_catalog.pg_inherits i JOIN above a ON i.inhrelid = a.oid
    )
    SELECT c.source_relid::bigint, c.buffer, c.columns, c.column_types::bigint[], c.key_columns,
           c.wal_from::text, c.wal_until::text
    FROM above a JOIN pgtrickle.pgt_change_tracking c ON c.source_relid = a.oid
    WHERE c.wal_from IS NOT NULL
      AND to_regclass(pg_catalog.format('pgtrickle_changes.%%I', c.buffer)) IS NOT NULL
"""

# A partition that is gone by now could have been any partitioned table's.
_WITH_PARTITIONS = """
    SELECT c.source_relid::bigint, c.buffer, c.columns, c.column_types::bigint[], c.key_columns,
           c.wal_from::text, c.wal_until::text
    FROM pgtrickle.pgt_change_tracking c JOIN pg_catalog.pg_class r ON r.oid = c.source_relid
    WHERE c.wal_from IS NOT NULL AND r.relkind = 'p' AND NOT EXISTS (SELECT FROM pg_catalog.pg_class g WHERE g.oid = %s)
      AND to_regclass(pg_catalog.format('pgtrickle_changes.%%I', c.buffer)) IS NOT NULL
"""

_HERE = """
    SELECT s::text, pg_catalog.pg_snapshot_xmax(s)::text::bigint, pg_catalog.pg_current_wal_insert_lsn()::text,
           pg_catalog.pg_current_wal_flush_lsn()::text
    FROM pg_catalog.pg_current_snapshot() AS s
"""

# A message that belongs to no transaction, behind which the log is flushed.
_FLUSH = "SELECT pg_catalog.pg_logical_emit_message(false, 'pgtrickle', '', true)"

# Tokens that no value holds, because no text holds a NUL.
_FIELD, _ROW = b"\0f", b"\0r"
_ESCAPES = (
    (b"\\", b"\\\\"),
    (b"\t", b"\\t"),
    (b"\n", b"\\n"),
    (b"\r", b"\\r"),
    (NULL, b"\\N"),
    (_FIELD, b"\t"),
    (_ROW, b"\n"),
)


@dataclass(frozen=True)
class Target:
    """A captured table as the catalog describes it."""

    relid: int
    buffer: str
    columns: tuple[str, ...]
    types: tuple[int, ...]
    key: tuple[str, ...]
    begins: int
    ends: int | None

    @classmethod
    def of(
        cls,
        relid: int,
        buffer: str,
        columns: Sequence[str],
        types: Sequence[int],
        key: Sequence[str],
        begins: str,
        ends: str | None,
    ) -> Target:
        until = parse_lsn(ends) if ends is not None else None
        return cls(relid, buffer, tuple(columns), tuple(types), tuple(key), parse_lsn(begins), until)

    @cached_property
    def nothing(self) -> bytes:
        """The values of a row that isn't there."""
        return (_FIELD + NULL) * len(self.columns)

    @property
    def names(self) -> list[str]:
        """The buffer's columns in the order of the fields of a row."""
        sides = [buffer_column(side, column) for side in ("new", "old") for column in self.columns]
        return ["xid", "lsn", "action", *sides]


@dataclass(frozen=True)
class Rows:
    """Rows of one buffer, each the fields of `Target.names` as text, parted by `_FIELD`."""

    target: Target
    found: list[bytes] = field(default_factory=list)


@dataclass(frozen=True)
class _Fit:
    """How the rows of a relation become rows of a buffer."""

    rows: Rows
    wanted: tuple[int, ...] | None
    """The places of the captured columns in the relation's rows; None if they are not the ones captured."""
    key: tuple[int, ...] = ()
    is_told: bool = False
    """The log tells the old values of all of them."""
    is_whole: bool = False
    """They are all columns of the relation, in its order."""

    @classmethod
    def of(cls, rows: Rows, relation: Relation | None) -> _Fit:
        target = rows.target
        columns = {name: (place, *rest) for place, (name, *rest) in enumerate(relation.columns)} if relation else {}
        found = [columns.get(name) for name in target.columns]
        if relation is None or any(f is None or f[1] != wanted for f, wanted in zip(found, target.types, strict=True)):
            return cls(rows, None)
        places = tuple(f[0] for f in found if f is not None)
        key = tuple(columns[k][0] for k in target.key)
        is_told = all(f[2] for f in found if f is not None)
        return cls(rows, places, key, is_told, places == tuple(range(len(columns))))


class Decoder:
    """Turns messages into rows of buffers.

    `targets` tells what captures a relation, and whether the relation is known at all. Transactions that began to
    commit before `since`, or aren't `visible`, are left out. `near` is the number of a recent transaction.
    """

    def __init__(
        self,
        targets: Callable[[Relation], tuple[bool, Sequence[Target]]],
        near: int,
        since: int,
        visible: Callable[[int], bool] | None = None,
    ) -> None:
        self._targets = targets
        self._near = near
        self._since = since
        self._visible = visible
        self._fits: dict[bytes, list[_Fit]] = {}
        self._rows: dict[str, Rows] = {}
        self._head = b""
        self._commit = 0
        self._is_taken = False
        self._marked: set[str] = set()
        self.ended = 0
        """The position behind the last commit that was told."""

    def feed(self, messages: Iterable[bytes]) -> None:
        for message in messages:
            kind = message[0]
            if kind in (73, 85, 68):  # I, U, D
                if self._is_taken:
                    self._change(kind, message)
            elif kind == 66:  # B
                begun = pgoutput.begin(message)
                xid = widened(begun.xid, self._near)
                self._commit = begun.commit_lsn
                self._is_taken = begun.commit_lsn >= self._since and (self._visible is None or self._visible(xid))
                self._head = str(xid).encode() + _FIELD + lsn_text(begun.commit_lsn).encode() + _FIELD
                self._marked = set()
            elif kind == 67:  # C
                self.ended = pgoutput.commit_end(message)
            elif kind == 82:  # R
                relation = pgoutput.relation(message)
                known, targets = self._targets(relation)
                self._fits[message[1:5]] = [
                    _Fit.of(self._rows.setdefault(target.buffer, Rows(target)), relation if known else None)
                    for target in targets
                ]

    def drain(self) -> list[tuple[Target, list[bytes]]]:
        """The rows so far by buffer, which are handed out once."""
        drained = []
        for rows in self._rows.values():
            if rows.found:
                drained.append((rows.target, rows.found[:]))
                rows.found.clear()
        return drained

    def _change(self, kind: int, message: bytes) -> None:
        for fit in self._fits.get(message[1:5], ()):
            target = fit.rows.target
            if self._commit < target.begins or (target.ends is not None and self._commit >= target.ends):
                continue
            if fit.wanted is None or (kind != 73 and not fit.is_told):
                self._mark(fit)
            elif kind == 73:
                row = pgoutput.values(message, 6)[0]
                if not fit.is_whole:
                    row = [row[i] for i in fit.wanted]
                fit.rows.found.append(self._head + _FIELD.join((b"I", *row)) + target.nothing)
            else:
                self._write(fit, fit.wanted, kind, message)

    def _mark(self, fit: _Fit) -> None:
        """Write the mark of a TRUNCATE, once for each transaction: what was there is unknown."""
        target = fit.rows.target
        if target.buffer not in self._marked:
            self._marked.add(target.buffer)
            fit.rows.found.append(self._head + b"T" + target.nothing + target.nothing)

    def _write(self, fit: _Fit, wanted: tuple[int, ...], kind: int, message: bytes) -> None:
        add, nothing = fit.rows.found.append, fit.rows.target.nothing
        old, new = pgoutput.rows(message)
        if kind == 68:
            add(self._head + b"D" + nothing + _after([(old or ())[i] for i in wanted]))
            return
        if old is None or new is None:
            # Nothing of the replica identity changed, and no more than that is captured.
            return
        before = [old[i] for i in wanted]
        after = [old[i] if new[i] is UNCHANGED else new[i] for i in wanted]
        if before == after:
            return
        if fit.key and all(new[i] == old[i] or new[i] is UNCHANGED for i in fit.key):
            add(self._head + b"U" + _after(after) + _after(before))
        else:
            add(self._head + b"D" + nothing + _after(before))
            add(self._head + b"I" + _after(after) + nothing)


def _after(values: Sequence[bytes]) -> bytes:
    return b"".join(_FIELD + value for value in values)


@dataclass(frozen=True)
class Pumped:
    """What a pump has done."""

    seen: str | None
    """A snapshot all of whose transactions are in the buffers, if that is known."""
    own: int | None
    """The number of the pump's own transaction, if it wrote."""
    rows: int = 0


def pump(conn: Connection, state: wal.State, *, to_the_end: bool = False) -> Pumped:
    """Write all that has committed into the buffers. `conn` is in autocommit and idle.

    It has to be this session's turn: see `wal.turn`. The position is stored if there were rows or much log, and in any
    case with `to_the_end`.
    """
    rows = 0
    if not _Here.of(conn).is_flushed:
        with conn.transaction():
            conn.execute("SET LOCAL synchronous_commit = local")
            conn.execute("SELECT pg_catalog.pg_logical_emit_message(true, 'pgtrickle', '')")
    least = 1 if to_the_end or state.begins_far_back else _WORTH_ADVANCING
    while True:
        with conn.transaction():
            # The slot only follows what is on the disk, because a slot ahead of the rows would lose them.
            conn.execute("SET LOCAL synchronous_commit = local; SET LOCAL work_mem = '64MB'")
            here = _Here.of(conn)
            batch = _pumped(conn, state, here, least)
        rows += batch.rows
        if batch.position is not None:
            _advance(conn, state, batch.position, least)
        if batch.is_last:
            return Pumped(here.snapshot if here.is_flushed else None, batch.xid, rows)


@dataclass(frozen=True)
class _Here:
    """One instant, before the log is read."""

    snapshot: str
    near: int
    """The number of a recent transaction."""
    inserted: str
    """A position behind the commits of all transactions that the snapshot sees."""
    flushed: str
    """How far the log can be read."""

    @classmethod
    def of(cls, conn: Connection) -> _Here:
        row = conn.execute(_HERE).fetchone()
        assert row is not None
        return cls(*row)

    @property
    def is_flushed(self) -> bool:
        return parse_lsn(self.flushed) >= parse_lsn(self.inserted)

    @property
    def told(self) -> int:
        """A position behind which each commit lies that the log didn't tell; 0 if that isn't known.

        It is where a record ends. `flushed` may lie within one: the commit that begins before it is told only later.
        """
        return parse_lsn(self.inserted) if self.is_flushed else 0


@dataclass(frozen=True)
class _Batch:
    rows: int
    xid: int | None
    position: str | None
    """The new position, if it was stored."""
    is_last: bool


def _pumped(conn: Connection, state: wal.State, here: _Here, least: int) -> _Batch:
    decoder: Decoder | None = None
    messages = rows = 0
    xid: int | None = None
    stored = parse_lsn(state.position)
    with ServerCursor(conn, "pgtrickle_pump") as cursor:
        cursor.execute(_MESSAGES, (state.slot, _BATCH, state.publication), binary=True)
        while fetched := cursor.fetchmany(_FETCHED):
            if decoder is None:
                # Another session may have pumped since the state was read; from here on none does.
                row = conn.execute(
                    "SELECT position::text, pg_catalog.pg_current_xact_id()::text::bigint"
                    " FROM pgtrickle.pgt_wal WHERE slot_name = %s FOR UPDATE",
                    (state.slot,),
                ).fetchone()
                if row is None:
                    raise TransientFault("Capture from the WAL was ended meanwhile", remedy="Try again.")
                stored, xid = parse_lsn(row[0]), int(row[1])
                decoder = Decoder(_targets(conn), here.near, stored)
            decoder.feed([message for (message,) in fetched])
            messages += len(fetched)
            for target, found in decoder.drain():
                _copy(conn, target, found)
                rows += len(found)
    is_last = messages < _BATCH
    ended = decoder.ended if decoder is not None else 0
    position = max(ended, here.told) if is_last else ended
    if position <= stored or (not rows and position - stored < least):
        return _Batch(rows, xid, None, is_last)
    conn.execute(
        "UPDATE pgtrickle.pgt_wal SET position = %s, pumped_at = pg_catalog.clock_timestamp() WHERE slot_name = %s",
        (lsn_text(position), state.slot),
    )
    row = conn.execute("SELECT pg_catalog.pg_current_xact_id()::text::bigint").fetchone()
    assert row is not None
    return _Batch(rows, int(row[0]), lsn_text(position), is_last)


@dataclass(frozen=True)
class Beyond:
    """Rows of one buffer that a snapshot sees and the buffer doesn't hold yet."""

    item: str
    """A FROM item with the columns of the buffer."""
    rows: int


def beyond(
    conn: Connection, database: Database, upto: str, near: int, visible: Callable[[int], bool]
) -> dict[str, Beyond] | None:
    """What the open transaction's snapshot sees and no buffer holds for it, by buffer.

    Returns None if the slot has gone past that, because another session pumps: a new snapshot is needed. `upto` is
    behind the commits of all that the snapshot sees.
    """
    row = conn.execute("SELECT slot_name, publication, position::text FROM pgtrickle.pgt_wal").fetchone()
    if row is None:
        return {}
    slot, publication, position = row
    _flush(conn, database, upto)
    decoder = Decoder(_targets(conn), near, parse_lsn(position), visible)
    with conn.cursor(binary=True) as cursor:
        decoder.feed(m for (m,) in cursor.execute(_MESSAGES, (slot, None, publication)).fetchall())
    after = conn.execute(
        "SELECT confirmed_flush_lsn <= %s::pg_lsn FROM pg_catalog.pg_replication_slots WHERE slot_name = %s",
        (position, slot),
    ).fetchone()
    if after is None or not after[0]:
        return None
    return {target.buffer: Beyond(_item(conn, target, fields), len(fields)) for target, fields in decoder.drain()}


def _flush(conn: Connection, database: Database, upto: str) -> None:
    """Have the log written to the disk up to a position.

    Decoding stops there, but a transaction that commits asynchronously is seen by others before.
    """
    row = conn.execute("SELECT %s::pg_lsn <= pg_catalog.pg_current_wal_flush_lsn()", (upto,)).fetchone()
    if row is not None and row[0]:
        return
    if Capabilities.of(conn).flushing_messages:
        conn.execute(_FLUSH)
        return
    # Before 17 only a commit does that, and the open transaction has to stay open.
    with database.connect(autocommit=True, application_name="pgtrickle flush") as other:
        other.execute("SET synchronous_commit = local")
        other.execute("SELECT pg_catalog.pg_logical_emit_message(true, 'pgtrickle', '')")


def _item(conn: Connection, target: Target, rows: list[bytes]) -> str:
    """The rows as an array of the buffer's row type: its text is read by the input functions of the columns."""
    columns = [
        name
        for (name,) in conn.execute(
            "SELECT attname FROM pg_catalog.pg_attribute WHERE attrelid = pg_catalog.to_regclass(%s)"
            " AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            (QualifiedName(CHANGES, target.buffer).quoted,),
        )
    ]
    places = {name: place for place, name in enumerate(target.names)}
    order = [places.get(name) for name in columns]
    array = ",".join(
        _quoted("(" + ",".join("" if p is None or row[p] == NULL else _quoted(row[p].decode()) for p in order) + ")")
        for row in (fields.split(_FIELD) for fields in rows)
    )
    kind = f'"{CHANGES}"."{target.buffer}"[]'
    return f"unnest({literal('{' + array + '}')}::{kind})"


def _quoted(text: str) -> str:
    """Text within a row or an array."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _targets(conn: Connection) -> Callable[[Relation], tuple[bool, Sequence[Target]]]:
    def of(relation: Relation) -> tuple[bool, Sequence[Target]]:
        found = conn.execute(_TARGETS, (relation.relid,)).fetchall()
        if found:
            return True, [Target.of(*row) for row in found]
        return False, [Target.of(*row) for row in conn.execute(_WITH_PARTITIONS, (relation.relid,))]

    return of


def _copy(conn: Connection, target: Target, rows: list[bytes]) -> None:
    block = _ROW.join(rows) + _ROW
    for token, text in _ESCAPES:
        block = block.replace(token, text)
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(CHANGES, target.buffer), sql.SQL(", ").join(map(sql.Identifier, target.names))
    )
    with conn.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(block)


def _advance(conn: Connection, state: wal.State, position: str, least: int) -> None:
    """Let the server remove the log before `position`, which is committed. It costs a reading of that log."""
    if state.confirmed is None or parse_lsn(position) - parse_lsn(state.confirmed) < least:
        return
    conn.execute("SELECT pg_catalog.pg_replication_slot_advance(%s, %s)", (state.slot, position))
