"""How each source is captured: what its readers ask for, what is possible, and the way there and back.

    wish       what the readers of a source ask for: `wishes`
    goes over  a source with the wish wal, or with auto where a slot can't fill the disk, if the log tells enough of it
    comes back if the wish has changed, the log tells too little, or the slot is lost or too far behind

Both ways change the capture under the source's lock, so that the log's position there parts the two.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import Connection

from airflow_provider_pgtrickle.engine.capture import wal, wishes
from airflow_provider_pgtrickle.engine.capture.identity import Untold, untold
from airflow_provider_pgtrickle.engine.capture.layout import layout
from airflow_provider_pgtrickle.engine.capture.pump import pump
from airflow_provider_pgtrickle.engine.capture.tracking import by_triggers, come_back, go_over
from airflow_provider_pgtrickle.engine.capture.wishes import Wish
from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.catalog.relations import read_sources
from airflow_provider_pgtrickle.engine.errors import TransientFault, UsageError
from airflow_provider_pgtrickle.engine.settings import Settings

_log = logging.getLogger(__name__)

#: Longer than that no writer waits behind a source that is to go over.
_PATIENCE = "500ms"
_MB = 1 << 20

#: SQLSTATEs, or their classes, of a log or a slot that can't be decoded, however often it is tried.
_UNDECODABLE = ("22", "55000", "58", "0A", "XX", "42704", "42P01", "42703")

# On Amazon RDS a role replicates by membership.
_ABILITY = """
    SELECT pg_catalog.current_setting('wal_level') = 'logical',
           EXISTS (SELECT FROM pg_catalog.pg_roles r
                   WHERE r.rolname = current_user AND (r.rolsuper OR r.rolreplication))
           OR EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = 'rds_replication'
                      AND pg_catalog.pg_has_role(r.oid, 'MEMBER')),
           pg_catalog.current_setting('max_slot_wal_keep_size') <> '-1',
           pg_catalog.current_setting('max_replication_slots')::int > 0,
           pg_catalog.has_table_privilege('pgtrickle.pgt_change_tracking', 'UPDATE')
"""


@dataclass(frozen=True)
class Ability:
    """What server and role allow."""

    logical: bool
    may_replicate: bool
    is_limited: bool
    """The server removes log that a slot has kept for too long."""
    has_slots: bool
    may_change: bool
    """The role may change how sources are captured, and not only refresh."""

    @classmethod
    def of(cls, conn: Connection) -> Ability:
        row = conn.execute(_ABILITY).fetchone()
        assert row is not None
        return cls(*row)

    def lacks(self, wish: str) -> Untold | None:
        """Why nothing can be captured from the log; None if it can."""
        if not self.logical:
            return Untold("the server's wal_level is not logical", "Set wal_level = logical and restart the server.")
        if not self.may_replicate:
            return Untold(
                "the role may not use replication slots", "Run ALTER ROLE … REPLICATION as superuser or administrator."
            )
        if not self.has_slots:
            return Untold("the server has no replication slots", "Raise max_replication_slots and restart the server.")
        if wish == "auto" and not self.is_limited:
            return Untold(
                "max_slot_wal_keep_size is not set, and a slot that nobody reads would fill the disk",
                "Set max_slot_wal_keep_size, or use cdc_mode 'wal'.",
            )
        return None


def arrange(conn: Connection, settings: Settings, relids: Collection[int], sources: Sequence[Wish]) -> bool:
    """Settle how the sources of a refresh are captured; whether one of them is taken from the log.

    `sources`: their wishes, which aren't settled. `conn` is in autocommit and idle. A way there that is blocked is
    tried again by the next refresh.
    """
    ability = Ability.of(conn)
    if not ability.may_change:
        return any(source.is_taken for source in sources)
    if any(source.has_slot for source in sources):
        _come_back_if_lost(conn, settings)
        sources = wishes.read(conn, settings, relids)
    is_tried = False
    for source in sources:
        if source.mode == "WAL" and source.wish == "trigger":
            _bring_back(conn, source, "a reader asks for triggers")
            is_tried = True
        elif source.mode == "TRIGGER" and source.wish != "trigger":
            is_tried |= _take_over(conn, settings, source, ability)
    if is_tried:
        sources = wishes.read(conn, settings, relids)
    if not any(source.has_slot for source in sources):
        return False
    _leave(conn, settings)
    return any(source.is_taken for source in wishes.read(conn, settings, relids))


def examine(conn: Connection, settings: Settings, st: StreamTable) -> tuple[str, ...]:
    """Notices for the author of a stream table, if the log can't be used although it is asked for.

    What asks for it itself is refused.
    """
    own = st.requested_cdc_mode
    wish = own or settings.cdc_mode
    if wish != "wal":
        return ()
    if st.refresh_mode == "IMMEDIATE":
        return (f"cdc_mode 'wal' has no effect on {st.qualified}: IMMEDIATE works by triggers",)
    notices: list[str] = []
    lacking = Ability.of(conn).lacks(wish)
    for dependency in _captured(conn, st):
        found = read_sources(conn, [dependency]).get(dependency)
        if found is None:
            continue
        plan = layout(conn, found, _columns(conn, dependency))
        missing = lacking or untold(
            conn, dependency, [member.relid for member in plan.members], [column.name for column in plan.columns]
        )
        if missing and own:
            raise UsageError(
                f"Changes of {plan.name} can't be taken from the WAL: {missing.reason}",
                stream_table=str(st.qualified),
                remedy=missing.remedy if missing is lacking else f"Run: {missing.remedy}",
            )
        if missing:
            notices.append(f"{plan.name} stays captured by triggers: {missing.reason}")
        if plan.is_append_only or plan.frozen:
            notices.append(f"{plan.name} stays captured by triggers: {by_triggers(plan)}")
        for source in wishes.read(conn, settings, [dependency]):
            if source.wish == "trigger":
                notices.append(f"{plan.name} stays captured by triggers, because another reader asks for them")
    return tuple(notices)


def give_up(conn: Connection, reason: str) -> None:
    """Let triggers capture all that was taken from the log, after changes were lost."""
    for source in wishes.read(conn, Settings(), [], every=True):
        _bring_back(conn, source, reason, lost=True, pause=True)
    # What came back before, and was not pumped to its end, is lost as well.
    conn.execute(
        "UPDATE pgtrickle.pgt_change_tracking c SET wal_from = NULL, wal_until = NULL,"
        " epoch = pg_catalog.pg_current_xact_id()::text::bigint FROM pgtrickle.pgt_wal w"
        " WHERE c.mode = 'TRIGGER' AND c.wal_until > w.position"
    )
    wal.end(conn)


def settle(conn: Connection, settings: Settings) -> None:
    """Pump what is left, and drop slot and publication if nothing is taken from the log any more."""
    if wal.state(conn) is not None:
        _come_back_if_lost(conn, settings)
        drain(conn, settings)
        _leave(conn, settings)
    for orphan in wal.orphans(conn):
        wal.drop_orphan(conn, orphan)


def drain(conn: Connection, settings: Settings) -> int:
    """Pump whatever the log holds for us; the rows written."""
    try:
        with wal.turn(conn, settings.lock_timeout_seconds):
            state = wal.state(conn)
            return pump(conn, state, to_the_end=True).rows if state is not None and not state.lost else 0
    except psycopg.Error as error:
        if not is_undecodable(error):
            raise
        give_up(conn, f"the log could not be decoded: {error.diag.message_primary}")
        return 0


def is_undecodable(error: psycopg.Error) -> bool:
    """Whether the log can't be decoded, however often it is tried."""
    return (error.sqlstate or "").startswith(_UNDECODABLE)


def _come_back_if_lost(conn: Connection, settings: Settings) -> None:
    state = wal.state(conn)
    if state is None:
        return
    if state.lost is not None:
        _log.warning("Triggers capture again: %s", state.lost)
        give_up(conn, state.lost)
    elif state.lag_bytes > settings.wal_lag_limit_mb * _MB:
        # All of it is still there, so nothing is lost.
        reason = f"the log was not read for {state.lag_bytes // _MB} MB, more than wal_lag_limit_mb"
        _log.warning("Triggers capture again: %s", reason)
        for source in wishes.read(conn, settings, [], every=True):
            _bring_back(conn, source, reason, pause=True)
    elif state.lag_bytes > settings.wal_lag_warning_mb * _MB:
        _log.warning("The log was not read for %d MB, more than wal_lag_warning_mb", state.lag_bytes // _MB)


def _leave(conn: Connection, settings: Settings) -> None:
    """If no source is taken from the log any more, read it to its end and leave it."""
    row = conn.execute("SELECT EXISTS (SELECT FROM pgtrickle.pgt_change_tracking WHERE mode = 'WAL')").fetchone()
    if row is not None and not row[0]:
        drain(conn, settings)
        wal.end(conn)


def _bring_back(conn: Connection, source: Wish, reason: str, *, lost: bool = False, pause: bool = False) -> None:
    try:
        with conn.transaction():
            found = read_sources(conn, [source.relid]).get(source.relid)
            if found is None or found.kind != "TABLE":
                conn.execute(
                    "UPDATE pgtrickle.pgt_change_tracking SET mode = 'TRIGGER', mode_reason = %s, wal_from = NULL,"
                    " epoch = pg_catalog.pg_current_xact_id()::text::bigint WHERE source_relid = %s",
                    (reason, source.relid),
                )
            else:
                come_back(conn, found, reason, lost=lost)
            if pause:
                conn.execute(
                    "UPDATE pgtrickle.pgt_change_tracking"
                    " SET wal_after = pg_catalog.clock_timestamp() + interval '1 hour' WHERE source_relid = %s",
                    (source.relid,),
                )
    except psycopg.errors.LockNotAvailable:
        if lost:
            raise
        _log.info("Source %s comes back to triggers later, because it is locked", source.relid)


def _take_over(conn: Connection, settings: Settings, source: Wish, ability: Ability) -> bool:
    """Let the log tell of a source that triggers capture; whether that was tried: something may be lacking for it."""
    if source.is_waiting and source.wish == "auto":
        return False
    found, missing = None, ability.lacks(source.wish)
    if missing is None:
        found = read_sources(conn, [source.relid]).get(source.relid)
        if found is None or found.kind != "TABLE":
            return False
        plan = layout(conn, found, _columns(conn, source.relid))
        missing = untold(conn, source.relid, [m.relid for m in plan.members], [c.name for c in plan.columns])
        if (other := by_triggers(plan)) is not None:
            missing = Untold(other, "")
    if missing is not None or found is None:
        _note(conn, source, missing.reason if missing else None)
        return False
    try:
        with wal.turn(conn, settings.lock_timeout_seconds):
            wal.begin(conn, settings.wal_transition_timeout_seconds)
        # Rows of an earlier time in the log have to be in the buffer before another time begins.
        drain(conn, settings)
        with conn.transaction():
            conn.execute("SELECT pg_catalog.set_config('lock_timeout', %s, true)", (_PATIENCE,))
            go_over(conn, found)
    except (psycopg.errors.LockNotAvailable, psycopg.errors.InsufficientPrivilege, TransientFault) as error:
        _log.info("%s.%s goes over to the WAL later: %s", found.schema, found.name, error)
        _note(conn, source, str(error).partition("\n")[0])
    return True


def _note(conn: Connection, source: Wish, reason: str | None) -> None:
    """Write down why a source stays on triggers. Nobody waits for that: a declaration may hold the row."""
    if source.reason != reason:
        conn.execute(
            "UPDATE pgtrickle.pgt_change_tracking SET mode_reason = %s WHERE source_relid IN"
            " (SELECT source_relid FROM pgtrickle.pgt_change_tracking WHERE source_relid = %s AND mode = 'TRIGGER'"
            " FOR UPDATE SKIP LOCKED)",
            (reason, source.relid),
        )


def _columns(conn: Connection, relid: int) -> list[str]:
    row = conn.execute("SELECT columns FROM pgtrickle.pgt_change_tracking WHERE source_relid = %s", (relid,)).fetchone()
    return list(row[0]) if row else []


def _captured(conn: Connection, st: StreamTable) -> list[int]:
    """The tables that it, or a part of it, reads and that are captured."""
    return sorted(
        {
            dependency.source_relid
            for pgt_id in records.with_parts(conn, [st.id])
            for dependency in records.dependencies(conn, pgt_id)
            if dependency.source_pgt_id is None and dependency.cdc_mode != "NONE"
        }
    )
