"""Planned: the work for each table of a unit is data, which is printed before it is carried out."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.search_path import read_only
from airflow_provider_pgtrickle.engine.dvm import SparkPlan, identity
from airflow_provider_pgtrickle.engine.dvm.binding import Binding, HandedOn, SourceBinding
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.dvm.schema import Source
from airflow_provider_pgtrickle.engine.dvm.types import as_text
from airflow_provider_pgtrickle.engine.refresh import clock
from airflow_provider_pgtrickle.engine.refresh.cost import Candidate, Experience, Way, limit_ms
from airflow_provider_pgtrickle.engine.refresh.decision import Action, Decision, Fallback, MemberFacts, decide
from airflow_provider_pgtrickle.engine.refresh.executor import Computation, patience_ms
from airflow_provider_pgtrickle.engine.refresh.observe import Observed, SourceState, netted
from airflow_provider_pgtrickle.engine.refresh.slices import ctid_slices
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection
from airflow_provider_pgtrickle.engine.settings import Settings

# Where nobody gave a ratio and cost doesn't decide.
_USUAL_RATIO = 0.15
_WHERE = {
    Way.DATABASE: "in the coordinator's session",
    Way.PUSHED: "in one statement that the executor reads",
    Way.LOWERED: "by the executor",
}


@dataclass(frozen=True)
class MemberPlan:
    """The work for one stream table of a unit."""

    name: str
    decision: Decision
    source_changes: int
    computation: Computation | None = None
    """None if there is nothing to compute."""
    whole: bool = False
    """The computation yields the whole content, from which the stored rows are subtracted."""
    way: Way = Way.PUSHED
    candidates: tuple[Candidate, ...] = ()
    """The ways that competed, if there were several."""
    given_up_ms: float | None = None
    """How long the difference was tried in vain."""
    source_rows: float | None = None
    """Estimated rows of all sources, if they were asked for."""
    repairs: bool = False
    """Stored rows with a wrong row id are replaced, too: somebody asked for a FULL, or they may be of another kind."""
    net_changes: int | None = None
    """The changes that are computed, many of one row as one where they are netted."""

    def __str__(self) -> str:
        reason = f" ({self.decision.fallback_reason})" if self.decision.fallback_reason else ""
        head = f"{self.name}: {self.decision.action}{reason}, {self.source_changes} pending source rows"
        if self.computation is None:
            return head
        yields = "the whole content" if self.whole else "the change"
        where = _WHERE[self.way]
        target = "the stage table" if self.computation.large else "the driver"
        if self.way is Way.DATABASE and self.computation.identified:
            target = "a temporary table"
        expected = f"about {self.computation.expected_rows} rows to {target}"
        predicted = "".join(f"\n{c.title}: {c.predicted_ms:.0f} ms predicted" for c in self.candidates)
        how = str(self.computation.spark or self.computation.sql)
        return f"{head}\ncompute {yields} {where}, {expected}{predicted}:\n{how}"


@dataclass(frozen=True)
class Planned(Observed):
    """An observed table with the plan of its refresh."""

    plan: MemberPlan

    @property
    def action(self) -> Action:
        return self.plan.decision.action


@dataclass(frozen=True)
class UpstreamChange:
    """A table's change before it is committed, as later tables of the unit read it."""

    rows: int
    here_only: bool = False
    """Only the coordinator's session can read it."""
    handed_on: HandedOn | None = None
    is_judged: bool = False
    """A part that was refreshed by its difference has already passed the ratio check."""


def plan(
    coordinator: Connection,
    member: Observed,
    upstream: Mapping[str, UpstreamChange],
    sizes: Mapping[str, float],
    settings: Settings,
    *,
    forced: bool,
    read_here: bool,
    placement: str,
    experience: Callable[[], Experience] = Experience,
    broken: str | None = None,
    given_up_ms: float | None = None,
) -> Planned:
    """Decide a table's action and plan its work. `upstream`: by key, what earlier tables of the unit hand on.

    A change of an earlier table that is too large for SQL text is read in the coordinator's session, which made it.
    `read_here`: a later member reads this member's change, so the change has to come to the coordinator's session.
    `experience`: what is known of the table's refreshes; it is asked for only if there is a choice.
    `broken`: why the difference that was planned before could not be computed.
    `given_up_ms`: how long it was computed before it was given up for FULL.
    """
    upstream = {key: change for key, change in upstream.items() if key in member.states}
    known = _facts(member, upstream, sizes, settings, forced=forced, broken=broken)
    if (counted := _netted(coordinator, member, known)) is not member:
        member = counted
        known = _facts(member, upstream, sizes, settings, forced=forced, broken=broken)
    decision = decide(known)
    only_here = any(change.here_only for change in upstream.values())
    candidates = _candidates(member, known, decision, sizes, settings, "database" if only_here else placement)
    chosen = candidates[0] if candidates else Candidate(Way.PUSHED, whole=False)
    if len(candidates) > 1:
        learned, source_rows = experience(), sum(sizes.get(key, 0.0) for key in member.states)
        candidates = [learned.predicted(candidate, known.net_changes, source_rows) for candidate in candidates]
        chosen = learned.chosen(candidates)
        if given_up_ms is not None:
            chosen = min((c for c in candidates if c.whole), key=lambda c: c.predicted_ms)
    if chosen.whole and not decision.whole:
        decision = Decision(Action.FULL, Fallback.CHEAPER)
    binding = Binding(
        sources={
            key: SourceBinding(
                changed=state.is_changed or bool(change and change.rows),
                window=state.window,
                handed_on=change.handed_on if change else None,
            )
            for key, state in member.states.items()
            for change in [upstream.get(key)]
        },
        stored=(member.stored.schema, member.stored.name),
        readings=member.readings,
    )
    whole = decision.whole
    rows = _rows_sql(member, decision, binding)
    if rows is None:
        return _planned(member, MemberPlan(member.name, decision, known.source_changes))
    here = chosen.way is Way.DATABASE
    identified = member.st.server_row_ids
    expected = _largest(member, sizes, settings) if whole else known.net_changes
    computation = Computation(
        sql=_typed(member, rows) if here and identified else _as_text(member, rows),
        columns=tuple(column.name for column in member.st.storage),
        expected_rows=expected,
        identified=identified,
        large=expected > settings.collect_max_rows and not here and not read_here,
        # A window is read in full, also where its changes are netted.
        patience_ms=None if whole else patience_ms(known.source_changes),
        limit_ms=limit_ms(chosen, candidates) if identified else None,
        spark=None
        if here or expected <= (settings.pushdown_max_rows if whole else settings.pushdown_max_changes)
        else _in_spark(coordinator, member, binding, whole, settings),
    )
    way = Way.DATABASE if here else Way.LOWERED if computation.spark is not None else Way.PUSHED
    several = tuple(candidates) if len(candidates) > 1 else ()
    all_sized = all(key in sizes for key in member.states)
    rows_now = sum(sizes[key] for key in member.states) if all_sized else None
    return _planned(
        member,
        MemberPlan(
            member.name,
            decision,
            known.source_changes,
            computation,
            whole,
            way,
            several,
            given_up_ms,
            rows_now,
            repairs=forced or bool(member.reinit_reason) or not member.stored.frontier,
            net_changes=known.net_changes,
        ),
    )


def _planned(member: Observed, plan: MemberPlan) -> Planned:
    return Planned(**vars(member), plan=plan)


def _candidates(
    member: Observed,
    known: MemberFacts,
    decision: Decision,
    sizes: Mapping[str, float],
    settings: Settings,
    placement: str,
) -> list[Candidate]:
    """The ways in which the decision can be carried out, or FULL instead of it; the first is the default."""
    if decision.action in (Action.NO_DATA, Action.SKIP):
        return []
    free = decision.action is Action.DIFFERENTIAL and _chooses(member, settings)
    found = []
    for whole in (False, True) if free else (decision.whole,):
        limit = settings.pushdown_max_rows if whole else settings.pushdown_max_changes
        expected = _largest(member, sizes, settings) if whole else known.net_changes
        by_spark = Way.LOWERED if expected > limit else Way.PUSHED
        ways = {"database": (Way.DATABASE,), "spark": (by_spark,), "auto": (Way.DATABASE, by_spark)}[placement]
        found += [Candidate(way, whole) for way in ways]
    return found


def _chooses(member: Observed, settings: Settings) -> bool:
    """Whether FULL may be taken for no other reason than its cost."""
    given = (member.st.differential_max_change_ratio, settings.differential_max_change_ratio)
    return member.st.refresh_mode == "AUTO" and given == (None, None)


def sized(members: Mapping[str, Observed], settings: Settings, *, forced: bool) -> list[Source]:
    """The sources whose size the decisions and the choice of a stage may need."""
    found: dict[str, Source] = {}
    for member in members.values():
        unchanged = member.stored.is_populated and not member.reinit_reason and not forced and member.steady
        changed = member.moved or any(state.pending_rows or key in members for key, state in member.states.items())
        chooses = changed and _chooses(member, settings)
        for key, state in member.states.items():
            asked = (
                chooses
                or state.pending_rows > 0
                or state.buffer_lost
                or key in members
                or not unchanged
                or member.moved
            )
            if state.source.kind != "FOREIGN_TABLE" and asked:
                found[key] = state.source
    return list(found.values())


def _in_spark(
    coordinator: Connection, member: Observed, binding: Binding, whole: bool, settings: Settings
) -> SparkPlan | None:
    """The work as a plan for Spark; None if it is better done by PostgreSQL alone."""
    found = member.query.spark(
        binding,
        whole=whole,
        key=member.st.identity_columns,
        describe=lambda statement: _described(coordinator, statement),
        slices=lambda source: ctid_slices(*_extent(coordinator, source), settings),
        prefix=f"pgt_{member.st.id}_{uuid.uuid4().hex[:12]}",
    )
    return found if found is not None and found.pays else None


def _facts(
    member: Observed,
    upstream: Mapping[str, UpstreamChange],
    sizes: Mapping[str, float],
    settings: Settings,
    *,
    forced: bool,
    broken: str | None,
) -> MemberFacts:
    st = member.st
    ratio = st.differential_max_change_ratio
    if ratio is None:
        ratio = settings.differential_max_change_ratio
    if ratio is None:
        ratio = 0.0 if _chooses(member, settings) and member.query.topk is None else _USUAL_RATIO
    refusal = member.query.refusal
    return MemberFacts(
        name=member.name,
        refresh_mode=st.refresh_mode,
        populated=st.is_populated,
        max_change_ratio=ratio,
        sources=tuple(
            replace(
                state.facts(sizes.get(key, 0.0), change.rows if change else 0),
                judged=change is not None and change.is_judged,
            )
            for key, state in member.states.items()
            for change in [upstream.get(key)]
        )
        + ((clock.facts(member.moved),) if member.readings else ()),
        forced=forced,
        broken=broken,
        reinit_reason=member.reinit_reason,
        refusal=(None if st.differentiable else st.refusal) or (refusal.message if refusal else None),
        topk=member.query.topk is not None,
        steady=member.steady,
    )


def _netted(coordinator: Connection, member: Observed, known: MemberFacts) -> Observed:
    """The member with the windows as sums in which many changes may cancel out: 170 of one row are then one."""
    if known.reinit_reason or known.forced or known.broken or not known.populated:
        return member
    computes = known.refresh_mode != "FULL" and (known.refusal is None or known.topk)
    limit = known.max_change_ratio
    found = {}
    for source in known.sources:
        state = member.states.get(source.key)
        if state is None:
            continue
        only_sum_tells = _tells_no_columns(state)
        decides = computes and 0 < limit < source.ratio
        if _may_cancel_out(state) and (only_sum_tells or decides or (computes and not member.query.adds)):
            found[source.key] = netted(coordinator, state, only_sum_tells=only_sum_tells, decides=decides)
    return replace(member, states={**member.states, **found}) if found else member


def _may_cancel_out(state: SourceState) -> bool:
    return state.window is not None and bool(state.columns) and state.is_mixed and not state.truncated


def _tells_no_columns(state: SourceState) -> bool:
    """Whether only a sum tells if a change concerns the reader: an old row and a new one that it can't tell apart."""
    is_paired = state.source.kind != "STREAM_TABLE" and bool(state.source.primary_key)
    return state.pending_rows > 0 and not is_paired and not state.reads_all


def _largest(member: Observed, sizes: Mapping[str, float], settings: Settings) -> int:
    """Rows of the largest source. A source of unknown size, a foreign table, counts as large."""
    return int(max((sizes.get(key, settings.collect_max_rows + 1) for key in member.states), default=1))


def _rows_sql(member: Observed, decision: Decision, binding: Binding) -> str | None:
    """SQL of `__pgt_w` and the storage columns, with the types that the query yields; None if nothing is computed."""
    if decision.action in (Action.NO_DATA, Action.SKIP):
        return None
    if not decision.whole:
        return member.query.delta(binding)
    whole = sql.SQL(member.query.full(binding))
    return sql.SQL("SELECT 1 AS {}, f.* FROM ({}) AS f").format(sql.Identifier(WEIGHT), whole).as_string(None)


def _typed(member: Observed, rows: str) -> str:
    """SQL of the rows with the types of the storage, and their row ids."""
    return (
        sql.SQL('SELECT {} AS "__pgt_key", "d".* FROM (SELECT "r"."__pgt_w"{} FROM ({}) AS "r") AS "d"')
        .format(
            sql.SQL(identity.server_row_id_sql(member.st.identity_columns, "d")),
            sql.SQL("").join(
                # The type is PostgreSQL's own `format_type` text.
                sql.SQL(", {}::{} AS {}").format(
                    sql.Identifier("r", column.name), sql.SQL(column.type), sql.Identifier(column.name)
                )
                for column in member.st.storage
            ),
            sql.SQL(rows),
        )
        .as_string(None)
    )


def _as_text(member: Observed, rows: str) -> str:
    """SQL of the rows, each column as text that PostgreSQL's own input functions read back, and the identity's key."""
    storage = member.st.storage
    if member.st.server_row_ids:
        key, rows = '"d"."__pgt_key"', _typed(member, rows)
    else:
        key = identity.canonical_sql(member.st.identity_columns, "d")
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


def _described(conn: Connection, statement: str) -> list[tuple[str, str]]:
    """Names and types, with modifiers, of a SELECT's columns. The statement is planned, not run."""
    with conn.cursor() as cursor, read_only(conn):
        cursor.execute(sql.SQL("SELECT * FROM ({}) AS d LIMIT 0").format(sql.SQL(statement)))
        result = cursor.pgresult
        assert result is not None
        found = [((result.fname(n) or b"").decode(), result.ftype(n), result.fmod(n)) for n in range(result.nfields)]
        rows = cursor.execute(
            "SELECT pg_catalog.format_type(t, m) FROM unnest(%s::oid[], %s::int[]) WITH ORDINALITY AS x(t, m, n)"
            " ORDER BY n",
            ([t for _, t, _ in found], [m for _, _, m in found]),
        ).fetchall()
    return [(name, type_name) for (name, _, _), (type_name,) in zip(found, rows, strict=True)]


def _extent(conn: Connection, source: Source) -> tuple[str, str, int, float]:
    """(schema, table, pages, rows) as the last ANALYZE left them; a partitioned table has no pages of its own."""
    row = conn.execute(
        "SELECT relpages, reltuples FROM pg_catalog.pg_class WHERE oid = %s AND relkind = 'r'", (source.relid,)
    ).fetchone()
    pages, rows = row if row is not None else (0, 0.0)
    return source.schema, source.name, int(pages), float(rows)
