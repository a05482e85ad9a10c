"""What the readers of a source ask for of its capture.

wish    trigger, if a reader asks for it or is IMMEDIATE; else wal, if one asks for it; else auto
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from psycopg import Connection, sql

from airflow_provider_pgtrickle.engine.settings import Settings

# A part's readers ask for what its owner asks for. What came back is taken from the log up to that moment.
_SOURCES = sql.SQL("""
    SELECT c.source_relid::bigint, c.mode, c.mode_reason, coalesce(c.wal_after > pg_catalog.clock_timestamp(), false),
           ARRAY(SELECT DISTINCT CASE WHEN o.refresh_mode = 'IMMEDIATE' THEN 'trigger'
                                      ELSE coalesce(o.requested_cdc_mode, %(default)s) END
                 FROM unnest(c.tracked_by_pgt_ids) AS i(pgt_id)
                 JOIN pgtrickle.pgt_stream_tables t USING (pgt_id)
                 JOIN pgtrickle.pgt_stream_tables o ON o.pgt_id = coalesce(t.part_of, t.pgt_id)),
           w.slot_name IS NOT NULL AND (c.mode = 'WAL' OR coalesce(c.wal_until > w.position, false)),
           w.slot_name IS NOT NULL, pg_catalog.current_setting('wal_level') = 'logical'
    FROM pgtrickle.pgt_change_tracking c LEFT JOIN pgtrickle.pgt_wal w ON true
    WHERE c.source_relid = ANY(%(relids)s::oid[]){also}
    ORDER BY c.source_relid
""")
# In the text, because a condition that a parameter may switch on has all of them read.
_ALL_BY_WAL = sql.SQL(" OR c.mode = 'WAL'")


@dataclass(frozen=True)
class Wish:
    """How a captured table is captured, and how its readers want it to be."""

    relid: int
    mode: str
    reason: str | None
    is_waiting: bool
    """It came back a short time ago."""
    asked: tuple[str, ...]
    is_taken: bool = False
    """Some of its changes are taken from the log."""
    has_slot: bool = False
    """The database has a slot."""
    is_logical: bool = False
    """The server's log can be decoded."""

    @property
    def wish(self) -> str:
        """What its readers together ask for.

        >>> Wish(1, "TRIGGER", None, False, ("auto", "wal")).wish
        'wal'
        >>> Wish(1, "TRIGGER", None, False, ("trigger", "wal")).wish
        'trigger'
        """
        return next(wish for wish in ("trigger", "wal", "auto") if wish in self.asked or wish == "auto")


def read(conn: Connection, settings: Settings, relids: Collection[int], *, every: bool = False) -> list[Wish]:
    """The wishes for these captured tables; with `every` also for all that the log tells of."""
    statement = _SOURCES.format(also=_ALL_BY_WAL if every else sql.SQL(""))
    rows = conn.execute(statement, {"relids": list(relids), "default": settings.cdc_mode}).fetchall()
    return [
        Wish(relid, mode, reason, waits, tuple(asked), *facts) for relid, mode, reason, waits, asked, *facts in rows
    ]


def are_settled(wishes: Iterable[Wish]) -> bool:
    """Whether triggers capture all of them, and nothing asks for the log or could be taken from it."""
    return not any(w.has_slot or w.wish == "wal" or (w.wish == "auto" and w.is_logical) for w in wishes)
