"""Planning and computing one member on the unit's snapshot."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.catalog.search_path import read_only
from airflow_provider_pgtrickle.engine.dvm import SparkPlan, identity
from airflow_provider_pgtrickle.engine.dvm.binding import Binding, SourceBinding
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.dvm.schema import Source
from airflow_provider_pgtrickle.engine.dvm.types import as_text
from airflow_provider_pgtrickle.engine.errors import ValueFault
from airflow_provider_pgtrickle.engine.refresh import describe, pending, stage
from airflow_provider_pgtrickle.engine.refresh.consolidate import consolidate
from airflow_provider_pgtrickle.engine.refresh.decision import Action, Decision, MemberFacts, decide
from airflow_provider_pgtrickle.engine.refresh.executor import Computation, Executor, Staged, StageTarget, read_arrow
from airflow_provider_pgtrickle.engine.refresh.member import Member
from airflow_provider_pgtrickle.engine.refresh.patience import patience_ms
from airflow_provider_pgtrickle.engine.refresh.plan import MemberPlan
from airflow_provider_pgtrickle.engine.refresh.query import SparkQuery
from airflow_provider_pgtrickle.engine.refresh.slices import ctid_slices
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection
from airflow_provider_pgtrickle.engine.settings import Settings


def plan(
    coordinator: Connection,
    member: Member,
    unit: Mapping[str, Member],
    sizes: Mapping[str, float],
    settings: Settings,
    *,
    forced: bool,
    read_here: bool,
    broken: str | None = None,
) -> MemberPlan:
    """Decide a member's action and write its work down. `unit` holds the members before it, by frontier key.

    `read_here`: a later member reads this one's change, so it has to come to the coordinator's session. `broken`: why
    the difference that was planned before could not be computed.
    """
    upstream = {key: unit[key].pending for key in member.states if key in unit}
    # A part that was kept by its difference has had its ratio judged.
    judged = frozenset(key for key in upstream if unit[key].st.is_hidden and not unit[key].plan_is_whole)
    pending_rows = {key: change.rows for key, change in upstream.items() if change}
    known = replace(_facts(member, pending_rows, sizes, settings, forced, judged), broken=broken)
    decision = decide(known)
    binding = Binding(
        sources={
            key: SourceBinding(
                changed=state.pending_rows > 0 or bool(change and change.rows),
                window=state.window,
                pending=change.pending if change else None,
            )
            for key, state in member.states.items()
            for change in [upstream.get(key)]
        },
        stored=(member.stored.schema, member.stored.name),
    )
    whole = decision.whole
    rows = _rows_sql(member, decision, binding)
    if rows is None:
        return MemberPlan(member.name, decision, known.source_changes)
    here = any(change is not None and change.here_only for change in upstream.values())
    expected = _largest(member, sizes, settings) if whole else known.source_changes
    computation = Computation(
        sql=_as_text(member, rows),
        columns=tuple(column.name for column in member.st.storage),
        expected_rows=expected,
        large=expected > settings.collect_max_rows and not here and not read_here,
        patience_ms=None if whole else patience_ms(known.source_changes),
        spark=None
        if here or expected <= (settings.pushdown_max_rows if whole else settings.pushdown_max_changes)
        else _in_spark(coordinator, member, binding, whole, settings),
    )
    return MemberPlan(member.name, decision, known.source_changes, computation, whole, here)


def _in_spark(
    coordinator: Connection, member: Member, binding: Binding, whole: bool, settings: Settings
) -> SparkPlan | None:
    """The work as a plan for Spark; None where PostgreSQL had better do all of it."""
    if not isinstance(member.query, SparkQuery):
        return None
    found = member.query.spark(
        binding,
        whole,
        _key(member),
        lambda statement: describe.columns(coordinator, statement),
        lambda source: ctid_slices(*describe.extent(coordinator, source), settings),
        f"pgt_{member.st.id}_{uuid.uuid4().hex[:12]}",
    )
    return found if found is not None and found.pays else None


def run(
    coordinator: Connection, database: Database, executor: Executor | None, snapshot_id: str, member: Member, token: str
) -> Staged | None:
    """Compute a planned member; None where there is nothing to compute."""
    assert member.plan is not None
    computation = member.plan.computation
    if computation is None:
        return None
    if member.plan.here or executor is None:
        with read_only(coordinator):
            arrow = read_arrow(coordinator, computation)
        return Staged(arrow.num_rows, arrow, rows_read=arrow.num_rows, reads=1)
    target = None
    if computation.large:
        target = _shared_stage(database, member, computation, token)
    try:
        return executor.compute(snapshot_id, computation, target)
    except Exception:
        # Readers whose snapshot is gone say so in many ways. Where this session has ended, that is the cause.
        coordinator.execute("SELECT 1")
        raise


def broken_value(error: Exception) -> str | None:
    """What was said of a value that can't be computed, where that is what an error is about.

    The difference evaluates each row that changed, also one that is there no more, and whose value the query of now
    never asks for: 7 / 0 in a row that was mended since.
    """
    if isinstance(error, (psycopg.DataError, psycopg.errors.CardinalityViolation, psycopg.errors.RaiseException)):
        return error.diag.message_primary or str(error)
    return error.message if isinstance(error, ValueFault) else None


def hand_on(coordinator: Connection, member: Member, settings: Settings) -> None:
    """Make the member's true change readable for the later members of its unit, in the snapshot's transaction."""
    assert member.plan is not None
    if member.staged is None or member.staged.arrow is None:
        member.pending = pending.PendingChange(0, False, None)
        return
    sink = member.sink(coordinator)
    table = stage.temporary(coordinator, sink.table, member.st.id, sink.names)
    stage.copy_arrow(coordinator, table, member.staged.arrow)
    stage.finish(coordinator, table, member.staged.late)
    member.difference = consolidate(coordinator, sink, member.st.id, table, whole=member.plan.whole)
    limit = min(settings.collect_max_rows, pending.MAX_LITERAL_ROWS)
    member.pending = pending.publish(
        coordinator, member.difference.table, member.difference.rows, member.st.visible, limit
    )


def sized(members: Mapping[str, Member], *, forced: bool) -> list[Source]:
    """The sources whose size the decisions and the staging may ask for."""
    found: dict[str, Source] = {}
    for member in members.values():
        unchanged = member.stored.is_populated and not member.reinit_reason and not forced and member.query.steady
        for key, state in member.states.items():
            asked = state.pending_rows > 0 or state.buffer_lost or key in members or not unchanged
            if state.source.kind != "FOREIGN_TABLE" and asked:
                found[key] = state.source
    return list(found.values())


def _shared_stage(database: Database, member: Member, computation: Computation, token: str) -> StageTarget:
    columns = tuple((column.name, column.type) for column in member.st.storage)
    with database.connect(autocommit=True, application_name="pgtrickle stage") as conn:
        return StageTarget(*stage.shared(conn, member.st.id, token, columns), computation.columns)


def _facts(
    member: Member,
    pending_rows: Mapping[str, int],
    sizes: Mapping[str, float],
    settings: Settings,
    forced: bool,
    judged: frozenset[str],
) -> MemberFacts:
    st = member.st
    ratio = st.differential_max_change_ratio
    return MemberFacts(
        name=member.name,
        refresh_mode=st.refresh_mode,
        populated=st.is_populated,
        max_change_ratio=settings.differential_max_change_ratio if ratio is None else ratio,
        sources=tuple(
            replace(state.facts(sizes.get(key, 0.0), pending_rows.get(key, 0)), judged=key in judged)
            for key, state in member.states.items()
        ),
        forced=forced,
        reinit_reason=member.reinit_reason,
        refusal=member.query.refusal or (None if st.differentiable else st.refusal),
        topk=member.query.topk,
        steady=member.query.steady,
    )


def _largest(member: Member, sizes: Mapping[str, float], settings: Settings) -> int:
    """Rows of the largest source. One of unknown size, a foreign table, counts as large."""
    return int(max((sizes.get(key, settings.collect_max_rows + 1) for key in member.states), default=1))


def _rows_sql(member: Member, decision: Decision, binding: Binding) -> str | None:
    """`__pgt_w` and the storage columns, as the query yields them."""
    if decision.action in (Action.NO_DATA, Action.SKIP):
        return None
    if not decision.whole:
        return member.query.delta(binding)
    whole = sql.SQL(member.query.full(binding))
    return sql.SQL("SELECT 1 AS {}, f.* FROM ({}) AS f").format(sql.Identifier(WEIGHT), whole).as_string(None)


def _as_text(member: Member, rows: str) -> str:
    """The rows with every column as text, which PostgreSQL's own input functions read back, and the identity's key."""
    storage = member.st.storage
    key = identity.canonical_sql(_key(member), "d")
    return (
        sql.SQL('SELECT "d"."__pgt_w" AS "__pgt_w", {} AS "__pgt_key"{} FROM ({}) AS "d"')
        .format(
            sql.SQL(key),
            sql.SQL("").join(
                sql.SQL(", {} AS {}").format(
                    sql.SQL(as_text(sql.Identifier("d", column.name).as_string(None), column.type)),
                    sql.Identifier(column.name),
                )
                for column in storage
            ),
            sql.SQL(rows),
        )
        .as_string(None)
    )


def _key(member: Member) -> list[tuple[str, str]]:
    """Names and types of the columns that identify a stored row."""
    types = {column.name: column.type for column in member.st.storage}
    return [(name, types[name]) for name in member.st.identity]
