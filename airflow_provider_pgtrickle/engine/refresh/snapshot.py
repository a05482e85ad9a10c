"""The unit's snapshot: one REPEATABLE READ transaction that every reader of the unit shares."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.refresh.frontier import SourceFrontier

Connection = psycopg.Connection[tuple[Any, ...]]

# The time is the statement's start, which precedes the snapshot: what the content claims to hold, it holds.
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
    """Begin the coordinator's transaction and fix its snapshot. The connection must be in autocommit, idle.

    The transaction stays open during the computation, maybe for long: `Database.connect` has
    switched its idle timeout off. It is not READ ONLY, because pending deltas go into temporary tables.
    """
    cursor = coordinator.execute(sql.SQL("BEGIN ISOLATION LEVEL REPEATABLE READ; " + _LOOK))
    cursor.nextset()
    row = cursor.fetchone()
    assert row is not None  # a SELECT without FROM
    return Snapshot(*row)


def look(conn: Connection) -> Snapshot:
    """The snapshot of the transaction that is open."""
    row = conn.execute(sql.SQL(_LOOK)).fetchone()
    assert row is not None  # a SELECT without FROM
    return Snapshot(*row)


def export(coordinator: Connection) -> str:
    """The name by which other sessions join the open transaction's snapshot."""
    row = coordinator.execute("SELECT pg_catalog.pg_export_snapshot()").fetchone()
    assert row is not None
    return str(row[0])


def join(reader: Connection, snapshot_id: str) -> None:
    """Begin a transaction on an exported snapshot. The connection must be in autocommit, idle."""
    reader.execute(
        sql.SQL("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET TRANSACTION SNAPSHOT {}").format(
            sql.Literal(snapshot_id)
        )
    )
