"""Two guards decide who may refresh a stream table and who may commit, because either alone has a hole.

The advisory lock lives and dies with the coordinator's session, so it keeps two refreshes apart without any
clean-up; but a session can outlive the run that started it. The lease, a token in the catalog, says whose commit
counts: a retry, a kill or a newer run overwrites it, and the writing transaction checks it under a row lock.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.locks import HELD, LOCK_SPACE, refreshed_elsewhere, second_half
from airflow_provider_pgtrickle.engine.errors import LeaseLost, RefreshError
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection
from airflow_provider_pgtrickle.engine.settings import Settings

_TERMINATE_MS = 5000

_OF_RUN = "FROM pgtrickle.pgt_stream_tables WHERE pg_catalog.starts_with(lease_token, %s)"
_END = "UPDATE pgtrickle.pgt_stream_tables SET lease_token = NULL, lease_pid = NULL, lease_expires = NULL"

#: The attempts of this process that are at work.
_at_work: set[str] = set()


@dataclass(frozen=True)
class RunToken:
    """The token of an attempt. Retries share its run, tries in one process share its turn, and `attempt` is unique."""

    run: str = field(default_factory=lambda: secrets.token_hex(16))
    turn: str = ""
    """Whoever starts the run again names its turn, so that it can end this turn and no later one."""
    attempt: str = field(default_factory=lambda: secrets.token_hex(8))

    @classmethod
    def of(cls, text: str | None) -> RunToken:
        """The token of a new attempt, from `run` or `run#turn`.

        >>> RunToken.of("abc#2").given, RunToken.of("abc").given
        ('abc#2', 'abc')
        """
        if not text:
            return cls()
        run, _, turn = text.partition("#")
        return cls(run, turn)

    @property
    def given(self) -> str:
        return f"{self.run}#{self.turn}" if self.turn else self.run

    def again(self) -> RunToken:
        """The token of another attempt in the same turn."""
        return RunToken(self.run, self.turn)

    def __str__(self) -> str:
        return f"{self.run}/{self.turn}.{self.attempt}" if self.turn else f"{self.run}/{self.attempt}"


def try_lock(conn: Connection, ids: Sequence[int]) -> list[int]:
    """Lock each table for this session. Returns the ids that another session holds, which may be refreshing them."""
    rows = conn.execute(
        sql.SQL(
            "SELECT id, pg_catalog.pg_try_advisory_lock({}, {}) FROM unnest(%s::bigint[]) AS t(id) ORDER BY id"
        ).format(sql.Literal(LOCK_SPACE), second_half(sql.Identifier("id"))),
        (list(ids),),
    ).fetchall()
    return refreshed_elsewhere(conn, [pgt_id for pgt_id, locked in rows if not locked])


def unlock(conn: Connection) -> None:
    """Give up all locks of this session."""
    conn.execute("SELECT pg_catalog.pg_advisory_unlock_all()")


def may_take_over(conn: Connection, ids: Sequence[int], run: str, settings: Settings) -> bool:
    """Whether each holder of these tables is an earlier attempt of the same run, or its lease has expired.

    An attempt of this very process is none: it refreshes side by side, and is alive.
    A lease that ends later than any lease given now comes from a clock that was ahead, so its holder is not protected.
    """
    row = conn.execute(
        "SELECT bool_and(lease_token IS NOT NULL"
        " AND (pg_catalog.split_part(lease_token, '/', 1) = %s OR lease_expires < pg_catalog.clock_timestamp()"
        " OR lease_expires > pg_catalog.clock_timestamp() + %s * interval '2 seconds')"
        " AND lease_token <> ALL(%s::text[]))"
        " FROM pgtrickle.pgt_stream_tables WHERE pgt_id = ANY(%s)",
        (run, settings.lease_seconds, sorted(_at_work), list(ids)),
    ).fetchone()
    return row is not None and bool(row[0])


@contextmanager
def at_work(token: RunToken) -> Iterator[None]:
    """In the block the attempt is known to be alive."""
    _at_work.add(str(token))
    try:
        yield
    finally:
        _at_work.discard(str(token))


def take(conn: Connection, ids: Sequence[int], token: RunToken, settings: Settings) -> None:
    """Write this attempt's lease, so that no other attempt can commit any more."""
    conn.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET lease_token = %s, lease_pid = pg_catalog.pg_backend_pid(),"
        " lease_expires = pg_catalog.clock_timestamp() + %s * interval '1 second' WHERE pgt_id = ANY(%s)",
        (str(token), settings.lease_seconds, list(ids)),
    )


def give_back(conn: Connection, ids: Sequence[int], token: RunToken) -> None:
    """End the lease if it is still this attempt's."""
    conn.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET lease_token = NULL, lease_pid = NULL, lease_expires = NULL"
        " WHERE pgt_id = ANY(%s) AND lease_token = %s",
        (list(ids), str(token)),
    )


def terminate_holders(conn: Connection, ids: Sequence[int]) -> None:
    """End the sessions that hold these tables' locks, if the role may; as a rule it may end its own sessions.

    The holders are read from `pg_locks` and not from `lease_pid`, whose process number may be another session's by now.
    """
    conn.execute(
        sql.SQL(
            "SELECT pg_catalog.pg_terminate_backend(l.pid, %s)"
            " FROM {} JOIN pg_catalog.pg_stat_activity a USING (pid)"
            " WHERE l.key IN (SELECT {} FROM unnest(%s::bigint[]) AS t(id))"
            " AND a.pid <> pg_catalog.pg_backend_pid() AND pg_catalog.pg_has_role(a.usename, 'MEMBER')"
        ).format(HELD, second_half(sql.Identifier("id"))),
        (_TERMINATE_MS, list(ids)),
    )


def revoke(conn: Connection, given: str) -> list[int]:
    """Revoke the leases of a run or of one of its turns and end its sessions, as a kill does. Returns the ids it held.

    Revoking a turn leaves the run's later turns alone, because a turn that is killed late may have been replaced
    long ago.
    """
    token = RunToken.of(given)
    theirs = (f"{token.run}/{token.turn}." if token.turn else f"{token.run}/",)
    ids = [pgt_id for (pgt_id,) in conn.execute(f"SELECT pgt_id {_OF_RUN}", theirs).fetchall()]
    if ids:
        # A session that is committing has its rows locked, and may wait there for long. So these rows are skipped at
        # first, and updated after the session was ended.
        conn.execute(f"{_END} WHERE pgt_id IN (SELECT pgt_id {_OF_RUN} FOR UPDATE SKIP LOCKED)", theirs)
        terminate_holders(conn, ids)
        conn.execute(f"{_END} WHERE pgt_id IN (SELECT pgt_id {_OF_RUN})", theirs)
    return ids


def verify(conn: Connection, ids: Sequence[int], token: RunToken) -> dict[int, dict[str, object] | None]:
    """Lock the catalog's rows, check the lease and return the present frontiers, in the transaction that commits."""
    rows = conn.execute(
        "SELECT pgt_id, lease_token, frontier, pgt_schema || '.' || pgt_name FROM pgtrickle.pgt_stream_tables"
        " WHERE pgt_id = ANY(%s) ORDER BY pgt_id FOR UPDATE",
        (list(ids),),
    ).fetchall()
    if len(rows) < len(set(ids)):
        raise RefreshError("A stream table of the unit was dropped while it was refreshed")
    for _, holder, _, name in rows:
        if holder != str(token):
            raise LeaseLost(
                "Another run took this refresh over, so this one was not committed",
                stream_table=name,
                remedy="Look at that run's result instead.",
            )
    return {pgt_id: frontier for pgt_id, _, frontier, _ in rows}
