"""A snapshot together with what it sees of the log: no change of a source is missing, and none is there twice.

    window(S) = what the buffers hold for S + what S sees and no buffer holds for it

The log is pumped into the buffers before the snapshot is taken. Transactions that commit in between are read from the
log after it, and handed along as literals. If there are many, they are pumped, too, and the snapshot is taken anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import psycopg

from airflow_provider_pgtrickle.engine.capture import mode, wal
from airflow_provider_pgtrickle.engine.capture.pump import Beyond, Pumped, beyond, pump
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import TransientFault
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection, Snapshot, Xids

_TRIES = 3
_MANY = 1_000
#: Above it the numbers between two snapshots are not looked at one by one.
_MOST_XIDS = 10_000

NOTHING: Mapping[str, Beyond] = MappingProxyType({})


def take(conn: Connection, database: Database, begin: Callable[[], Snapshot]) -> tuple[Snapshot, Mapping[str, Beyond]]:
    """Pump, take the snapshot by `begin`, and read what it sees beyond the buffers. `conn` is in autocommit and idle.

    Returns the snapshot, whose transaction is open, and rows by buffer.
    """
    try:
        for left in reversed(range(_TRIES + 1)):
            with wal.turn(conn, database.settings.lock_timeout_seconds):
                state = wal.state(conn)
                if state is None:
                    return begin(), NOTHING
                if state.lost is not None:
                    raise TransientFault(f"Changes are missing: {state.lost}", remedy="Try again: triggers capture.")
                pumped = pump(conn, state)
                at = begin()
                found = _beyond(conn, database, at, pumped)
            if found is not None and (not left or sum(rows.rows for rows in found.values()) <= _MANY):
                return at, found
            conn.execute("ROLLBACK")
    except psycopg.Error as error:
        if not mode.is_undecodable(error):
            raise
        if conn.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            conn.execute("ROLLBACK")
        mode.give_up(conn, f"the log could not be decoded: {error.diag.message_primary}")
        raise TransientFault(
            f"The log could not be decoded ({error.diag.message_primary}), so triggers capture again",
            remedy="Try again: it is computed anew.",
        ) from error
    raise TransientFault("Other sessions read the replication slot all the time", remedy="Try again.")


def _beyond(conn: Connection, database: Database, at: Snapshot, pumped: Pumped) -> Mapping[str, Beyond] | None:
    sees = Xids.parse(at.xids)
    if pumped.seen is not None and _is_all(Xids.parse(pumped.seen), sees, pumped.own):
        return NOTHING
    return beyond(conn, database, at.lsn, sees.xmax, sees.sees)


def _is_all(pumped: Xids, at: Xids, own: int | None) -> bool:
    """Whether a snapshot sees no transaction that an earlier one didn't see, but for one.

    >>> _is_all(Xids.parse("5:9:5,7"), Xids.parse("5:10:5,7"), 9)
    True
    >>> _is_all(Xids.parse("5:9:5,7"), Xids.parse("5:10:5"), 9)
    False
    """
    if at.xmax - pumped.xmax > _MOST_XIDS:
        return False
    return not any(at.sees(xid) and xid != own for xid in (*pumped.running, *range(pumped.xmax, at.xmax)))
