"""The time zone of a declaration: while its query is read or evaluated the session has it, and otherwise UTC.

By the zone PostgreSQL casts between times, dates and local times, and reads the clock's words. Values need no zone to
travel: the text of an instant carries its offset. What is made of such texts, a row id above all, is made in the
table's zone by everybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches

from psycopg import Connection, sql
from psycopg.pq import TransactionStatus

from airflow_provider_pgtrickle.engine.errors import UsageError

UTC = "UTC"
_SET = "SELECT pg_catalog.set_config('TimeZone', %s, true)"


@contextmanager
def in_zone(conn: Connection, zone: str | None) -> Iterator[None]:
    """In the block the session has the zone, and after it the one that it had. None is UTC, which it mostly has."""
    before = of(conn)
    if zone == before:
        yield
        return
    with ExitStack() as stack:
        if conn.info.transaction_status is TransactionStatus.IDLE:
            stack.enter_context(conn.transaction())
        conn.execute(_SET, [zone or UTC])
        try:
            yield
        finally:
            # After an error the rollback restores it.
            if conn.info.transaction_status is TransactionStatus.INTRANS:
                conn.execute(_SET, [before or UTC])


def setting(zone: str | None) -> tuple[tuple[str, str], ...]:
    """The same as a setting for a session that evaluates one query and ends."""
    return () if zone is None else (("TimeZone", zone),)


def clause(zone: str | None) -> sql.Composable:
    """The same as a clause of CREATE FUNCTION."""
    return sql.SQL("") if zone is None else sql.SQL("SET TimeZone = {}").format(sql.Literal(zone))


def of(conn: Connection) -> str | None:
    """The session's zone now; None is UTC. The server tells of each change, so it isn't asked."""
    zone = conn.info.parameter_status("TimeZone")
    return None if zone == UTC else zone


def require(conn: Connection, zone: str | None) -> None:
    """Raise if PostgreSQL doesn't know the zone by this name."""
    if zone is None:
        return
    known = [name for (name,) in conn.execute("SELECT name FROM pg_catalog.pg_timezone_names")]
    if zone in known:
        return
    close = get_close_matches(zone.lower(), [name.lower() for name in known], n=1)
    meant = next((name for name in known if close and name.lower() == close[0]), None)
    remedy = f"Did you mean {meant}?" if meant else "Use a name from its view pg_timezone_names, such as Europe/Oslo."
    raise UsageError(f"PostgreSQL knows no time zone {zone!r}", remedy=remedy)
