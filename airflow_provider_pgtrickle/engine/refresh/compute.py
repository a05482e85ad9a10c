"""Computed: a planned table's rows are computed on the unit's snapshot, and its change is handed on to later tables.

Other sessions can't see what this transaction wrote. A small change therefore travels in the SQL text, as arrays;
a large change stays a temporary table, and then its reader runs in the coordinator's session.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.catalog.faults import OF_MEMORY
from airflow_provider_pgtrickle.engine.catalog.records import StorageColumn
from airflow_provider_pgtrickle.engine.catalog.search_path import read_only
from airflow_provider_pgtrickle.engine.catalog.zone import in_zone
from airflow_provider_pgtrickle.engine.dvm.binding import HandedOn
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.dvm.types import as_text
from airflow_provider_pgtrickle.engine.errors import MemoryFault, OutOfTime, RefreshError, ValueFault
from airflow_provider_pgtrickle.engine.refresh import stage
from airflow_provider_pgtrickle.engine.refresh.cost import GivenUp, Way
from airflow_provider_pgtrickle.engine.refresh.decision import Action
from airflow_provider_pgtrickle.engine.refresh.executor import (
    Computation,
    Executor,
    Planner,
    Staged,
    StageTarget,
    patiently,
    planning,
    read_arrow,
)
from airflow_provider_pgtrickle.engine.refresh.plan import Planned, UpstreamChange
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection
from airflow_provider_pgtrickle.engine.refresh.stage import Difference, Target, consolidate, names
from airflow_provider_pgtrickle.engine.settings import Settings

_MOST_LITERAL_ROWS = 50_000


@dataclass(frozen=True)
class Computed(Planned):
    """A planned table with the rows that its plan yielded."""

    staged: Staged | None
    """None if there was nothing to compute."""
    difference: Difference | None = None
    """The true difference, if it is known before the commit: a later table reads it, or this session computed it."""
    described: Target | None = None
    """The table as it was when this session made the difference."""
    spent_ms: float = 0.0
    """The time that it took to compute the rows, and to hand them on."""


@dataclass(frozen=True)
class NoValue:
    """The difference could not be computed, because a row in it has no value. `words` is PostgreSQL's message.

    The difference evaluates every row that changed. One of them may be gone by now, so that the query itself no longer
    evaluates it: 7 / 0 in a row that was mended since.
    """

    words: str


@dataclass(frozen=True)
class Lacking:
    """Memory, or room for temporary files, was too short for this way to compute the rows."""

    error: psycopg.Error | RefreshError


def compute(
    coordinator: Connection,
    database: Database,
    executor: Executor | None,
    snapshot_id: str,
    member: Planned,
    token: str,
) -> Computed | NoValue | GivenUp | Lacking:
    """Carry out a plan as far as its rows; nothing is written to the stream table yet."""
    begun = time.perf_counter()
    try:
        with in_zone(coordinator, member.st.timezone):
            if member.plan.in_place is not None:
                stage.set_aside(coordinator, member.st.id, member.plan.in_place.values)
            if member.plan.way is Way.DATABASE and member.st.server_row_ids:
                return _in_session(coordinator, member)
            return Computed(**vars(member), staged=_run(coordinator, database, executor, snapshot_id, member, token))
    except (psycopg.Error, RefreshError) as error:
        spent, limit = (time.perf_counter() - begun) * 1000, _limit_ms(member)
        is_cancelled = limit is not None and spent >= limit and isinstance(error, psycopg.errors.QueryCanceled)
        if is_cancelled or isinstance(error, OutOfTime):
            return GivenUp(spent, member.plan.way)
        if of_memory(error):
            return Lacking(error)
        words = _no_value(error)
        if words is None or member.plan.whole:
            raise
        return NoValue(words)


def of_memory(error: BaseException) -> bool:
    """Whether a computation failed because memory or room for temporary files was short."""
    return isinstance(error, MemoryFault) or (isinstance(error, psycopg.Error) and error.sqlstate in OF_MEMORY)


def hand_on(coordinator: Connection, member: Computed, settings: Settings) -> tuple[Computed, UpstreamChange]:
    """Make the member's true change in the snapshot's transaction, where later tables of the unit can read it."""
    is_judged = member.st.is_hidden and not member.plan.whole
    if member.staged is None:
        return member, UpstreamChange(0, is_judged=is_judged)
    made = member.difference
    if made is None:
        target = member.target(coordinator)
        rows = rows_of(coordinator, member, member.staged, target)
        with in_zone(coordinator, member.st.timezone):
            made = consolidate(
                coordinator, target, member.st.id, rows, whole=member.plan.whole, repairs=member.plan.repairs
            )
    limit = min(settings.collect_max_rows, _MOST_LITERAL_ROWS)
    change = _readable(coordinator, made, member.st.visible, limit)
    return replace(member, difference=made), replace(change, is_judged=is_judged)


def rows_of(conn: Connection, member: Computed, staged: Staged, target: Target) -> sql.Composable:
    """The computed rows as an item of FROM. Those that came to this process are staged in a temporary table."""
    if staged.stage_table is None:
        assert staged.arrow is not None
        table = stage.temporary(conn, target, member.st.id, staged.arrow)
    else:
        table = sql.Identifier(*staged.stage_table)
        stage.analyze(conn, table, staged.rows)
    return stage.finished(conn, table, staged.late, target, identified=staged.identified)


def _in_session(conn: Connection, member: Planned) -> Computed:
    """Compute in the coordinator's session: the difference, or the rows of a table that has none or other columns."""
    computation = member.plan.computation
    if computation is None:
        return Computed(**vars(member), staged=None)
    # A window is read in full, also where its changes are netted.
    stage.allow_memory(conn, max(computation.expected_rows, member.plan.source_changes))
    rows = stage.computed(computation.sql, computation.columns)
    if not member.stored.is_populated or member.action is Action.REINITIALIZE:
        with conn.transaction():
            table = stage.prepare(conn, member.st.id, rows)
            number = _written(conn, computation, stage.filling(table, rows))
        staged = Staged(number, None, ("pg_temp", f"pgt_stage_{member.st.id}"), rows_read=number, reads=1)
        return Computed(**vars(member), staged=staged)
    target = member.target(conn)
    whole, repairs = member.plan.whole, member.plan.repairs
    with conn.transaction():
        stage.differing(conn, target, member.st.id, whole=whole)
        statement = stage.consolidating(
            target, member.st.id, rows, whole=whole, repairs=repairs, parallel=computation.parallel
        )
        number = _written(conn, computation, statement)
    made = stage.counted(conn, target, member.st.id, whole=whole)
    staged = Staged(number, None, rows_read=number, reads=1)
    return Computed(**vars(member), staged=staged, difference=made, described=target)


def _written(conn: Connection, computation: Computation, statement: sql.Composed) -> int:
    """Fill a temporary table: the only kind that functions of others may write, too."""
    begun = time.perf_counter()

    def run(planner: Planner) -> int:
        planner = (*computation.planner, *planner)
        if computation.limit_ms is not None:
            left = computation.limit_ms - (time.perf_counter() - begun) * 1000
            planner = _within(planner, max(math.ceil(left), 1))
        with read_only(conn), planning(conn, planner):
            return conn.execute(statement).rowcount

    return patiently(computation.patience_ms, run)


def _within(planner: Planner, ms: int) -> Planner:
    """The planner's settings with a time limit; a shorter one that they have stays."""
    limits = [int(value) for name, value in planner if name == "statement_timeout"]
    others = tuple(setting for setting in planner if setting[0] != "statement_timeout")
    return (*others, ("statement_timeout", str(min([ms, *limits]))))


def _limit_ms(member: Planned) -> float | None:
    return member.plan.computation.limit_ms if member.plan.computation is not None else None


def _run(
    coordinator: Connection,
    database: Database,
    executor: Executor | None,
    snapshot_id: str,
    member: Planned,
    token: str,
) -> Staged | None:
    computation = member.plan.computation
    if computation is None:
        return None
    if member.plan.way is Way.DATABASE or executor is None:
        with read_only(coordinator):
            arrow = read_arrow(coordinator, computation)
        return Staged(arrow.num_rows, arrow, rows_read=arrow.num_rows, reads=1)
    target = None
    if computation.large:
        target = _shared_stage(database, member, computation, token)
    try:
        return executor.compute(snapshot_id, computation, target)
    except Exception:
        # Readers report the loss of their snapshot in many ways. If this session has ended, its end is the cause, and
        # this statement raises it.
        coordinator.execute("SELECT 1")
        raise


def _no_value(error: Exception) -> str | None:
    """PostgreSQL's message about a value that can't be computed; None if the error is about something else."""
    if isinstance(error, (psycopg.DataError, psycopg.errors.CardinalityViolation, psycopg.errors.RaiseException)):
        return error.diag.message_primary or str(error)
    return error.message if isinstance(error, ValueFault) else None


def _shared_stage(database: Database, member: Planned, computation: Computation, token: str) -> StageTarget:
    columns = tuple((column.name, column.type) for column in member.st.storage)
    with database.connect(autocommit=True, application_name="pgtrickle stage") as conn:
        return StageTarget(*stage.shared(conn, member.st.id, token, columns), computation.columns)


def _readable(
    conn: Connection, difference: Difference, visible: tuple[StorageColumn, ...], limit: int
) -> UpstreamChange:
    rows = difference.rows
    if rows == 0:
        return UpstreamChange(0)
    if rows > limit:
        statement = sql.SQL("SELECT {} FROM {}").format(
            names((WEIGHT, ROW_ID, *(column.name for column in visible))), difference.table
        )
        return UpstreamChange(rows, True, HandedOn(statement.as_string(conn)))
    return UpstreamChange(rows, False, HandedOn(_literal(conn, difference.table, visible).as_string(conn)))


def _literal(conn: Connection, difference: sql.Identifier, visible: tuple[StorageColumn, ...]) -> sql.Composed:
    columns = [(WEIGHT, "bigint"), (ROW_ID, "bigint"), *((column.name, column.type) for column in visible)]
    # The values are gathered as text, because an array of arrays would not be one value per row.
    gathered = conn.execute(
        sql.SQL("SELECT {} FROM {}").format(
            sql.SQL(", ").join(
                sql.SQL("array_agg({})::text").format(sql.SQL(as_text(sql.Identifier(n).as_string(None), t)))
                for n, t in columns
            ),
            difference,
        )
    ).fetchone()
    assert gathered is not None  # an aggregate without GROUP BY
    return sql.SQL("SELECT {values} FROM unnest({arrays}) AS u ({names})").format(
        values=sql.SQL(", ").join(
            # The type is PostgreSQL's own `format_type` text.
            sql.SQL("{}::{} AS {}").format(sql.Identifier("u", name), sql.SQL(type_), sql.Identifier(name))
            for name, type_ in columns
        ),
        arrays=sql.SQL(", ").join(sql.SQL("{}::text[]").format(sql.Literal(array)) for array in gathered),
        names=names(tuple(name for name, _ in columns)),
    )
