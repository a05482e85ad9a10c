"""Which refresh units have something to do: one query reads the facts, one pure function judges them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_pgtrickle.engine.catalog.records import HALTED_STATUSES
from airflow_provider_pgtrickle.engine.refresh.decision import gated
from airflow_provider_pgtrickle.engine.schedule import Effective
from airflow_provider_pgtrickle.operators.unit import Unit

if TYPE_CHECKING:
    import psycopg

    from airflow_provider_pgtrickle.engine.settings import Settings

NOT_DUE = "not due"
NO_CHANGE = "no change"
HALTED = "halted"
LIVE = "maintained by its sources' writers"
NOT_SELECTED = "not selected"

# Sources without change capture (materialized views, foreign tables) may always have changed.
_STATES = """
SELECT st.pgt_schema || '.' || st.pgt_name AS name, st.original_query, st.schedule, st.refresh_mode, st.append_only,
       st.append_only_breach, st.frozen_before, st.frozen_breach,
       st.diamond_consistency, st.diamond_schedule_policy, st.requested_cdc_mode AS cdc_mode, st.partition_by,
       st.partition_every, st.keep, st.tier,
       st.differential_max_change_ratio, st.verify_every, st.placement, st.timezone, st.unlogged_buffers, st.unit,
       st.float_sums,
       st.status, st.is_populated, st.needs_reinit,
       st.is_gated, st.gated_reason, st.last_error, st.data_timestamp, coalesce(b.pending, 0)::bigint AS pending_rows,
       clock_timestamp() AS asked_at, coalesce(d.uncaptured, false) AS uncaptured, st.steady,
       coalesce(d.stream_tables, '{}') AS stream_tables, x.pgt_id IS NOT NULL AS is_distrusted, st.fingerprint,
       st.is_live, r.is_full AS asked_full, c.probes AS clock_probes, w.tier AS effective_tier, l.duration_ms
  FROM pgtrickle.pgt_stream_tables st
  LEFT JOIN pgtrickle.pgt_tiers_of(%(ids)s::bigint[]) w ON w.pgt_id = st.pgt_id
  LEFT JOIN (SELECT pgt_id, sum(pending_rows) AS pending
               FROM pgtrickle.pgt_buffer_sizes(%(ids)s::bigint[]) GROUP BY pgt_id) b
    ON b.pgt_id = st.pgt_id
  LEFT JOIN (SELECT pgt_id, bool_or(cdc_mode = 'NONE' AND source_type <> 'VIEW') AS uncaptured,
                    array_agg(source_schema || '.' || source_name) FILTER (WHERE source_type = 'STREAM_TABLE')
                        AS stream_tables
               FROM pgtrickle.pgt_reads_of(%(ids)s::bigint[]) GROUP BY pgt_id) d
    ON d.pgt_id = st.pgt_id
  CROSS JOIN LATERAL (SELECT array_agg(p.clock_probe) AS probes FROM pgtrickle.pgt_stream_tables p
                       WHERE (p.pgt_id = st.pgt_id OR p.part_of = st.pgt_id) AND p.clock_probe IS NOT NULL) c
  LEFT JOIN pgtrickle.pgt_distrusted_of(%(ids)s::bigint[]) x ON x.pgt_id = st.pgt_id
  LEFT JOIN (SELECT pgt_schema, pgt_name, bool_or(force_full) AS is_full FROM pgtrickle.pgt_requests
              WHERE kind = 'REFRESH' AND answered_at IS NULL GROUP BY pgt_schema, pgt_name) r
    ON (r.pgt_schema, r.pgt_name) = (st.pgt_schema, st.pgt_name)
  LEFT JOIN LATERAL (SELECT h.duration_ms FROM pgtrickle.pgt_refresh_history h
                      WHERE h.pgt_id = st.pgt_id AND h.status = 'COMPLETED' AND h.action NOT IN ('NO_DATA', 'SKIP')
                      ORDER BY h.refresh_id DESC LIMIT 1) l ON true
 WHERE NOT st.is_hidden AND (%(ids)s::bigint[] IS NULL OR st.pgt_id = ANY(%(ids)s::bigint[]))
"""

_DECLARED = (
    "schedule",
    "refresh_mode",
    "append_only",
    "append_only_breach",
    "frozen_before",
    "frozen_breach",
    "diamond_consistency",
    "diamond_schedule_policy",
    "cdc_mode",
    "partition_by",
    "partition_every",
    "keep",
    "tier",
    "differential_max_change_ratio",
    "verify_every",
    "placement",
    "timezone",
    "unlogged_buffers",
    "unit",
    "float_sums",
)


@dataclass(frozen=True)
class TableState:
    """What PostgreSQL says of one stream table."""

    name: str
    query: str
    options: Mapping[str, Any]
    status: str
    is_populated: bool
    needs_reinit: bool
    gated_reason: str | None
    """The reason while it is gated, possibly empty; else None."""
    last_error: str | None
    data_timestamp: datetime | None
    pending_rows: int
    uncaptured: bool
    steady: bool
    is_live: bool
    """Its sources' writers maintain it now."""
    is_suspect: bool
    """Its capture or something behind its query was changed, which no buffer shows."""
    stream_tables: tuple[str, ...]
    asked_at: datetime
    """The time by the server's clock, which also gives the data timestamp."""
    asked_full: bool | None = None
    """Somebody asked in SQL for a refresh; True if for a full one, None if nobody did."""
    is_moved: bool = False
    """Since its data timestamp the clock has let rows in or out."""
    effective_tier: str | None = None
    """What tier `auto` means now; None: what is declared."""

    last_seconds: float = 0.0
    """How long its last refresh took that had something to do."""

    def rarer(self, schedule: Effective) -> int:
        """How many times as rarely it is to be refreshed, 1, 2, 4, …, to take no longer than from one time to the next.

        It is 1 as long as its refresh takes no longer than its schedule.
        """
        times = 1
        if self.last_seconds > schedule.seconds:
            while schedule.rarer(times).interval < self.last_seconds:
                times *= 2
        return times

    @property
    def tier(self) -> str:
        return str(self.effective_tier or self.options["tier"])

    @property
    def held(self) -> str | None:
        """Why somebody wants it not to be refreshed by a schedule; None if nobody does."""
        if self.gated_reason is not None:
            return gated(self.gated_reason)
        return "frozen" if self.tier == "frozen" else None

    @property
    def halted(self) -> str | None:
        """Why no schedule refreshes it until somebody acts; None if it isn't halted."""
        if self.status not in HALTED_STATUSES or self.asked_full:
            return None
        cause = f": {self.last_error.rstrip('.')}" if self.last_error else ""
        return (
            f"{self.name} is in status {self.status}{cause}."
            f" Mend the cause, then resume it (pgtrickle alter {self.name} --status active) or refresh it in full."
        )

    def placement(self, settings: Settings) -> str:
        """Where its changes may be computed."""
        return str(self.options["placement"] or settings.placement)

    @property
    def is_waiting(self) -> bool:
        """Its sources' writers should maintain it, and don't yet."""
        return self.options["refresh_mode"] == "IMMEDIATE" and not self.is_live

    @property
    def has_to_be_withdrawn(self) -> bool:
        """Its sources' writers maintain what may be wrong."""
        return self.is_live and (self.is_suspect or self.needs_reinit)

    @property
    def has_work(self) -> bool:
        is_known = not self.uncaptured and self.steady and not self.is_suspect and not self.asked_full
        return (
            self.pending_rows > 0
            or self.is_moved
            or not is_known
            or not self.is_populated
            or self.needs_reinit
            or self.is_waiting
        )

    def is_due(self, schedule: Effective, *, backs_off: bool = False) -> bool:
        """A warm table takes twice its time or every second firing; a cold one, once filled, waits for a demand.

        A table that waits for its writers is due at once: no schedule says how old it may become.
        """
        if not self.is_populated or self.is_waiting or self.asked_full is not None:
            return True
        if self.tier == "cold":
            return False
        times = self.rarer(schedule) if backs_off else 1
        if self.tier == "warm":
            times = max(times, 2)
        if times > 1:
            schedule = schedule.rarer(times)
        return schedule.is_due(self.data_timestamp, self.asked_at)


def read(conn: psycopg.Connection[Any], names: Iterable[str] | None = None) -> dict[str, TableState]:
    """Every stream table's state, or those named, in one query."""
    from psycopg.rows import dict_row

    from airflow_provider_pgtrickle.engine.catalog import fingerprint, migrate, records

    migrate.require(conn)
    ids = None if names is None else records.ids(conn, names)
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(_STATES, {"ids": ids}).fetchall()
    moved = _moved(conn, rows)
    known = [row["fingerprint"] for row in rows if row["fingerprint"]]
    same = {before for before, now in zip(known, fingerprint.all_again(conn, known), strict=True) if before == now}
    return {
        row["name"]: TableState(
            name=row["name"],
            query=row["original_query"],
            options={option: row[option] for option in _DECLARED},
            status=row["status"],
            is_populated=row["is_populated"],
            needs_reinit=row["needs_reinit"],
            gated_reason=(row["gated_reason"] or "") if row["is_gated"] else None,
            last_error=row["last_error"],
            data_timestamp=row["data_timestamp"],
            pending_rows=row["pending_rows"],
            uncaptured=row["uncaptured"],
            steady=row["steady"],
            is_live=row["is_live"],
            is_suspect=row["is_distrusted"] or (row["fingerprint"] is not None and row["fingerprint"] not in same),
            stream_tables=tuple(sorted(row["stream_tables"])),
            asked_at=row["asked_at"],
            asked_full=row["asked_full"],
            is_moved=row["name"] in moved,
            effective_tier=row["effective_tier"],
            last_seconds=(row["duration_ms"] or 0.0) / 1000,
        )
        for row in rows
    }


def _moved(conn: psycopg.Connection[Any], rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """The tables whose rows the clock has moved since their data timestamps."""
    asked = [row for row in rows if row["clock_probes"] and row["data_timestamp"] is not None]
    zones = {row["timezone"] for row in asked}
    return set().union(*(_moved_in(conn, zone, [r for r in asked if r["timezone"] == zone]) for zone in zones))


def _moved_in(conn: psycopg.Connection[Any], zone: str | None, asked: Sequence[Mapping[str, Any]]) -> set[str]:
    """The same of tables of one zone: one statement asks for all of them.

    A table whose question fails counts as moved, because its refresh says what is wrong.
    """
    import psycopg
    from psycopg import sql

    from airflow_provider_pgtrickle.engine.catalog.search_path import read_only
    from airflow_provider_pgtrickle.engine.catalog.zone import in_zone

    question = sql.SQL(" UNION ALL ").join(
        sql.SQL(
            'SELECT {} FROM (SELECT {}::timestamptz AS old, {}::timestamptz AS new) AS "__pgt_clock" WHERE {}'
        ).format(
            sql.Literal(row["name"]),
            sql.Literal(row["data_timestamp"]),
            sql.Literal(row["asked_at"]),
            sql.SQL(" OR ".join(f"({probe})" for probe in row["clock_probes"])),
        )
        for row in asked
    )
    try:
        with conn.transaction(), in_zone(conn, zone), read_only(conn):
            return {name for (name,) in conn.execute(question).fetchall()}
    except psycopg.Error:
        return {row["name"] for row in asked}


def held(states: Iterable[TableState]) -> str:
    """Who is held back among tables that are refreshed together, and why; empty if nobody is."""
    return "; ".join(f"{state.name} is {state.held}" for state in states if state.held)


def halted(states: Iterable[TableState]) -> str:
    """Who is halted among tables that are refreshed together, and why; empty if nobody is."""
    return " ".join(state.halted for state in states if state.halted)


def unavailable(state: TableState, unit: Sequence[TableState]) -> str | None:
    """Why no task will refresh a table of this unit that somebody asked for, in words; None if one will."""
    for one in (state, *unit):
        if one.held:
            who = "it" if one is state else f"{one.name}, which is refreshed together with it,"
            return f"{state.name}: It was not refreshed, because {who} is {one.held}. End that, then ask again."
    if state.is_live:
        return f"{state.name}: It was not refreshed, because it is {LIVE} and always up to date."
    return halted(unit) or None


@dataclass(frozen=True)
class Verdict:
    """Units to refresh, and why the others are not."""

    run: tuple[str, ...]
    skip: Mapping[str, str]
    """Reason by task id."""
    halted: Mapping[str, str] = field(default_factory=dict)
    """What halts units that nobody holds back, by task id. Their tasks fail or are skipped."""

    def with_also(self, task_ids: Sequence[str], units: Sequence[Unit]) -> Verdict:
        """The verdict with these units to run, too, and units that read them and were skipped for lack of a change."""
        run = set(self.run) | set(task_ids)
        for unit in units:
            if self.skip.get(unit.task_id) == NO_CHANGE and set(unit.upstream) & run:
                run.add(unit.task_id)
        skip = {task_id: reason for task_id, reason in self.skip.items() if task_id not in run}
        return Verdict(tuple(unit.task_id for unit in units if unit.task_id in run), skip, self.halted)


def judge(
    units: Sequence[Unit],
    states: Mapping[str, TableState],
    schedules: Mapping[str, Effective],
    *,
    scheduled: bool,
    halted_fail: bool = True,
    selected: Collection[str] | None = None,
    full: bool = False,
    backs_off: bool = False,
) -> Verdict:
    """Judge the units in refresh order, because a unit that runs is a change for those that read it.

    In a run that isn't `scheduled` everything is due. A person may have `selected` units by their task ids, and asked
    for a `full` refresh, which only a gate or the tier `frozen` holds back.
    """
    run: list[str] = []
    skip: dict[str, str] = {}
    broken: dict[str, str] = {}
    for unit in units:
        members = [states[name] for name in unit.names]
        due = [
            not scheduled or state.is_due(schedules[state.name], backs_off=backs_off)
            for state in members
            if not state.is_live
        ]
        if selected is not None and unit.task_id not in selected:
            skip[unit.task_id] = NOT_SELECTED
        elif why := held(members):
            skip[unit.task_id] = why
        elif full:
            run.append(unit.task_id)
        elif why := halted(members):
            broken[unit.task_id] = why
            if halted_fail:
                run.append(unit.task_id)
            else:
                skip[unit.task_id] = HALTED
        elif all(state.is_live for state in members):
            skip[unit.task_id] = LIVE
        elif not (all(due) if unit.policy == "slowest" else any(due)):
            skip[unit.task_id] = NOT_DUE
        elif not any(state.has_work for state in members) and not set(unit.upstream) & set(run):
            skip[unit.task_id] = NO_CHANGE
        else:
            run.append(unit.task_id)
    return Verdict(tuple(run), skip, broken)
