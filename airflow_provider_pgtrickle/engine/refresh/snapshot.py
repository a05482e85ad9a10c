"""A refresh has two instants: the snapshot that all readers of a unit share, and the frontier that a table has reached.

The frontier is, for each source, the snapshot up to which a stream table has consumed its changes. Sequence numbers
and LSNs are not in commit order, snapshots are. A change is pending if the new snapshot sees its transaction and
the old one doesn't; this rule is exact however late a writer commits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.dvm.binding import Window

_SNAPSHOT = re.compile(r"[0-9]+:[0-9]+:([0-9]+(,[0-9]+)*)?")


@dataclass(frozen=True)
class Xids:
    """A parsed `pg_snapshot`, which tells the transactions that it sees.

    >>> seen = Xids.parse("10:20:12,15")
    >>> [xid for xid in (9, 12, 13, 15, 20) if seen.sees(xid)]
    [9, 13]
    """

    xmin: int
    xmax: int
    running: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> Xids:
        xmin, xmax, running = text.split(":")
        return cls(int(xmin), int(xmax), frozenset(int(xid) for xid in running.split(",") if xid))

    def sees(self, xid: int) -> bool:
        return xid < self.xmin or (xid < self.xmax and xid not in self.running)


@dataclass(frozen=True)
class SourceFrontier:
    """How far one source is consumed."""

    snapshot: str
    lsn: str
    """`lsn` and `ts` are for people to read; no decision depends on them."""
    ts: str
    also: tuple[int, ...] = ()
    """Transactions beyond the snapshot that are consumed too. In them an upstream table of the same unit wrote the
    changes that it had handed on to this table."""
    buffer: int | None = None
    """The file of the change buffer. If it is another one later, the buffer was emptied, or lost and made anew."""
    epoch: int | None = None
    """The epoch of the source's capture; None if no triggers capture the source, or if they could not be trusted."""

    @cached_property
    def xids(self) -> Xids:
        return Xids.parse(self.snapshot)

    def advanced(self, to: SourceFrontier) -> SourceFrontier:
        """The frontier at a later snapshot; `also` keeps the transactions that this snapshot doesn't see yet."""
        still = tuple(xid for xid in self.also if not to.xids.sees(xid))
        return replace(to, also=still + to.also)

    def window(self, buffer: tuple[str, str], new: str) -> Window:
        """The changes of `buffer` between this frontier and the snapshot `new`."""
        return Window(buffer=buffer, old=self.snapshot, new=new, also=self.also)

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {"snapshot": self.snapshot, "lsn": self.lsn, "ts": self.ts}
        if self.also:
            value["also"] = list(self.also)
        if self.buffer is not None:
            value["buffer"] = self.buffer
        if self.epoch is not None:
            value["epoch"] = self.epoch
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SourceFrontier | None:
        """None if `value` is nothing that `to_json` writes: roles that may not declare can write it, too."""
        also, buffer, epoch = value.get("also", ()), value.get("buffer"), value.get("epoch")
        if not all(isinstance(value.get(key), str) for key in ("snapshot", "lsn", "ts")):
            return None
        if (
            not _SNAPSHOT.fullmatch(value["snapshot"])
            or not isinstance(buffer, int | None)
            or not isinstance(epoch, int | None)
        ):
            return None
        if not isinstance(also, list | tuple) or not all(isinstance(xid, int) for xid in also):
            return None
        return cls(value["snapshot"], value["lsn"], value["ts"], tuple(also), buffer, epoch)


@dataclass(frozen=True)
class Frontier:
    """The frontier of a stream table as the catalog stores it: one for each source, and the content's instant."""

    sources: Mapping[str, SourceFrontier] = field(default_factory=dict)
    data_timestamp: str | None = None
    table: tuple[str, ...] = ()
    """The state of the stream table's own columns, from `pgtrickle.pgt_table_digest`."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> Frontier:
        if not value:
            return cls()
        read = {key: SourceFrontier.from_json(part) for key, part in value.get("sources", {}).items()}
        return cls(
            {key: part for key, part in read.items() if part is not None},
            value.get("data_timestamp"),
            tuple(map(str, value.get("table") or ())),
        )

    @property
    def instant(self) -> str | None:
        """The content's data timestamp; None if it is none, because roles that may not declare can write it, too."""
        try:
            return self.data_timestamp and datetime.fromisoformat(self.data_timestamp).isoformat()
        except (TypeError, ValueError):
            return None

    def to_json(self) -> dict[str, Any]:
        return {
            "sources": {key: part.to_json() for key, part in sorted(self.sources.items())},
            "data_timestamp": self.data_timestamp,
            **({"table": list(self.table)} if self.table else {}),
        }

    def advanced(self, to: Mapping[str, SourceFrontier], data_timestamp: str, table: tuple[str, ...] = ()) -> Frontier:
        """This frontier, moved to a later snapshot. Sources that are no longer read are forgotten."""
        moved = {key: self.sources[key].advanced(at) if key in self.sources else at for key, at in to.items()}
        return Frontier(moved, data_timestamp, table)


Connection = psycopg.Connection[tuple[Any, ...]]

# The time is the statement's start. It precedes the snapshot, so the content has all changes up to this time.
_LOOK = (
    "SELECT pg_catalog.pg_current_snapshot()::text, pg_catalog.pg_current_wal_insert_lsn()::text,"
    " pg_catalog.statement_timestamp()"
)


@dataclass(frozen=True)
class Snapshot:
    """One instant of the database, as the coordinator's open transaction sees it."""

    xids: str
    lsn: str
    taken_at: datetime

    @property
    def data_timestamp(self) -> str:
        return self.taken_at.isoformat()

    def frontier(self, buffer: int | None, also: tuple[int, ...] = (), epoch: int | None = None) -> SourceFrontier:
        """A source's frontier at this snapshot."""
        return SourceFrontier(self.xids, self.lsn, self.data_timestamp, also, buffer, epoch)


def take(coordinator: Connection) -> Snapshot:
    """Begin the coordinator's transaction and fix its snapshot. The connection must be in autocommit and idle.

    The transaction stays open during the computation, which may take long, so `Database.connect` has switched its
    idle timeout off. It is not READ ONLY, because changes that are handed on are written to temporary tables.
    """
    cursor = coordinator.execute(sql.SQL(f"BEGIN ISOLATION LEVEL REPEATABLE READ; {_LOOK}"))
    cursor.nextset()
    row = cursor.fetchone()
    assert row is not None  # a SELECT without FROM
    return Snapshot(*row)


def look(conn: Connection) -> Snapshot:
    """The snapshot of the open transaction."""
    row = conn.execute(sql.SQL(_LOOK)).fetchone()
    assert row is not None  # a SELECT without FROM
    return Snapshot(*row)


def export(coordinator: Connection) -> str:
    """The name by which other sessions join the open transaction's snapshot."""
    row = coordinator.execute("SELECT pg_catalog.pg_export_snapshot()").fetchone()
    assert row is not None
    return str(row[0])


def join(reader: Connection, snapshot_id: str) -> None:
    """Begin a transaction on an exported snapshot. The connection must be in autocommit and idle."""
    reader.execute(
        sql.SQL("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET TRANSACTION SNAPSHOT {}").format(
            sql.Literal(snapshot_id)
        )
    )
