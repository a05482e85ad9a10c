"""The time zone of a declaration: while its query is read or evaluated the session has it, and otherwise UTC.

By the zone PostgreSQL casts between times, dates and local times, and reads the clock's words. Values need no zone to
travel: the text of an instant carries its offset. What is made of such texts, a row id above all, is made in the
table's zone by everybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from weakref import WeakKeyDictionary

import psycopg
from psycopg import Connection, sql
from psycopg.pq import TransactionStatus

from airflow_provider_pgtrickle.engine.errors import UsageError

UTC = "UTC"
_SET = "SELECT pg_catalog.set_config('TimeZone', %s, true)"

#: A zone that a query names itself, as PostgreSQL prints it.
_NAMED = re.compile(r"""(?:AT TIME ZONE |timezone"?\()'((?:[^']|'')+)'::"?text""")

# The instants at which a zone's offset changes, to the second, and the offsets. Weeks are halved in which the offset
# differs at the end; there are no two changes in one week. Later years repeat what the rules say of the last ones.
_FIRST, _LAST, _WEEK = -2208988800, 2556144000, 604800
_SECONDS = "date_part('epoch', pg_catalog.timezone(%(zone)s::text, pg_catalog.to_timestamp({0})))::bigint - ({0})"
_RULES = f"""
    WITH RECURSIVE step(low, high, before, after) AS (
        SELECT * FROM (
            SELECT at, at + {_WEEK}, {_SECONDS.format("at")}, {_SECONDS.format(f"at + {_WEEK}")}
            FROM generate_series({_FIRST}::bigint, {_LAST}, {_WEEK}) AS at) AS week (low, high, before, after)
        WHERE before <> after
        UNION ALL
        SELECT CASE WHEN half.seconds = before THEN half.at ELSE low END,
               CASE WHEN half.seconds = before THEN high ELSE half.at END,
               before, CASE WHEN half.seconds = before THEN after ELSE half.seconds END
        FROM step
        CROSS JOIN LATERAL (SELECT at, {_SECONDS.format("at")} FROM (SELECT (low + high) / 2) AS h (at))
            AS half (at, seconds)
        WHERE high - low > 1
    )
    SELECT md5(concat_ws(',', {_SECONDS.format(_FIRST)}, string_agg(concat(high, ' ', after), ',' ORDER BY high)))
    FROM step WHERE high - low = 1
"""  # noqa: S608 - constants

#: A session reads a zone's rules once, so they are asked for once: it takes as long as a small refresh.
_known: WeakKeyDictionary[Connection, dict[str, str | None]] = WeakKeyDictionary()


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


def named_in(texts: Iterable[str]) -> set[str]:
    """The zones that queries name themselves: `at AT TIME ZONE 'Europe/Oslo'`."""
    return {name.replace("''", "'") for text in texts for name in _NAMED.findall(text)} - {UTC}


def rules(conn: Connection, zone: str) -> str | None:
    """A digest of a zone's offsets from 1900 to 2050 as this session knows them; None if it doesn't know the zone."""
    known = _known.setdefault(conn, {})
    if zone not in known:
        try:
            with conn.transaction():
                row = conn.execute(_RULES, {"zone": zone}).fetchone()
        except psycopg.errors.InvalidParameterValue:
            row = None
        known[zone] = str(row[0]) if row is not None else None
    return known[zone]


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
