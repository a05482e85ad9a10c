"""Planned: the work for each table of a unit is data, which is printed before it is carried out."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.search_path import read_only
from airflow_provider_pgtrickle.engine.catalog.zone import in_zone
from airflow_provider_pgtrickle.engine.declare import partitions
from airflow_provider_pgtrickle.engine.dvm import InPlace, Kept, Open, SparkPlan, identity
from airflow_provider_pgtrickle.engine.dvm.binding import Binding, HandedOn, SourceBinding, Window
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.dvm.schema import Source
from airflow_provider_pgtrickle.engine.dvm.types import as_text
from airflow_provider_pgtrickle.engine.refresh import clock, stage
from airflow_provider_pgtrickle.engine.refresh.cost import (
    LARGE_ESTIMATE,
    Candidate,
    Experience,
    GivenUp,
    Way,
    doubted,
    limit_ms,
)
from airflow_provider_pgtrickle.engine.refresh.decision import Action, Decision, Fallback, MemberFacts, decide
from airflow_provider_pgtrickle.engine.refresh.executor import ANY_ORDER, MANY_JOINS, Computation, Meeting, patience_ms
from airflow_provider_pgtrickle.engine.refresh.observe import Observed, SourceState, netted
from airflow_provider_pgtrickle.engine.refresh.slices import ctid_slices, slice_count
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection
from airflow_provider_pgtrickle.engine.settings import Settings

# Where nobody gave a ratio and cost doesn't decide.
_USUAL_RATIO = 0.15
# Of fewer rows PostgreSQL wouldn't make its workers' start good, and of more rows than this share of them it would be
# slower to keep what was computed than to compute it in one process.
_PARALLEL_FROM, _FEW = 100_000, 0.1
_WHERE = {
    Way.DATABASE: "in the coordinator's session",
    Way.PUSHED: "in one statement that the executor reads",
    Way.SLICED: "in slices, each one statement that a task of the executor carries",
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
    given_up: GivenUp | None = None
    """How long the difference was tried in vain."""
    doubt: float | None = None
    """What PostgreSQL was asked: its estimate for the difference, as a multiple of that for FULL."""
    source_rows: float | None = None
    """Estimated rows of all sources, if they were asked for."""
    repairs: bool = False
    """Stored rows with a wrong row id are replaced, too: somebody asked for a FULL, or they may be of another kind."""
    net_changes: int | None = None
    """The changes that are computed, many of one row as one where they are netted."""
    size: float = 0.0
    """By this it is told whether memory suffices: changed rows, or for the whole content all rows of the sources."""
    in_place: InPlace | None = None
    """What is set in the stored rows before the computed change is written."""

    @property
    def taken(self) -> Candidate:
        """The way that is taken."""
        return Candidate(self.way, self.whole)

    def __str__(self) -> str:
        reason = f" ({self.decision.fallback_reason})" if self.decision.fallback_reason else ""
        head = f"{self.name}: {self.decision.action}{reason}, {self.source_changes} pending source rows"
        if self.in_place is not None:
            head += f"\nset {', '.join(self.in_place.names)} where rows are stored:\n{self.in_place.values}"
        if self.computation is None:
            return head
        yields = "the whole content" if self.whole else "the change"
        if self.computation.meeting is not None:
            yields += " less the stored rows"
        where = _WHERE[self.way]
        target = "the stage table" if self.computation.large else "the driver"
        if self.way is Way.DATABASE and self.computation.identified:
            target = "a temporary table"
        expected = f"about {self.computation.expected_rows} rows to {target}"
        predicted = "".join(f"\n{c.title}: {c.predicted_ms:.0f} ms predicted" for c in self.candidates)
        how = str(self.computation.spark or "\n".join(self.computation.slices) or self.computation.sql)
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
    given_up: GivenUp | None = None,
    lacking: Collection[Candidate] = (),
    describe: Callable[[], object] = lambda: None,
) -> Planned:
    """Decide a table's action and plan its work. `upstream`: by key, what earlier tables of the unit hand on.

    A change of an earlier table that is too large for SQL text is read in the coordinator's session, which made it.
    `read_here`: a later member reads this member's change, so the change has to come to the coordinator's session.
    `experience`: what is known of the table's refreshes; it is asked for only if there is a choice.
    `broken`: why the difference that was planned before could not be computed.
    `given_up`: how long it was computed before it was given up for FULL.
    `lacking`: the ways for which memory was too short just now.
    `describe`: tells PostgreSQL how much has changed, before its estimates are asked for.
    """
    upstream = {key: change for key, change in upstream.items() if key in member.states}
    known = _facts(member, upstream, sizes, settings, forced=forced, broken=broken)
    if (counted := _netted(coordinator, member, known)) is not member:
        member = counted
        known = _facts(member, upstream, sizes, settings, forced=forced, broken=broken)
    decision = _keeping(member, decide(known), upstream, sizes, settings, broken=broken)
    only_here = any(change.here_only for change in upstream.values())
    source_rows = sum(sizes.get(key, 0.0) for key in member.states)
    placement = "database" if only_here else placement
    possible = _possible(member, known, decision, sizes, settings, placement, read_here=read_here)
    free = _chooses(member, settings)
    is_open = len(_competing(possible, free=free)) > 1 or member.stored.has_lacked
    learned = experience() if is_open else Experience()
    suffice = [c for c in possible if c not in lacking and learned.suffices(c, known.net_changes, source_rows)]
    binding = Binding(
        sources={
            key: SourceBinding(
                changed=state.is_changed or bool(change and change.rows),
                window=state.window,
                handed_on=change.handed_on if change else None,
                least=state.least,
                most=state.most,
            )
            for key, state in member.states.items()
            for change in [upstream.get(key)]
        },
        stored=(member.stored.schema, member.stored.name),
        cut_by=partitions.cut_by(member.stored),
        readings=member.readings,
        is_filled=member.stored.is_populated,
    )
    in_place = None
    if decision.keeps and isinstance(member.kept, Kept):
        binding = _binding_before(member)
        in_place = member.kept.in_place(binding)
    options = suffice or possible
    chosen, candidates = Candidate(Way.PUSHED, whole=False), list[Candidate]()
    slices: tuple[str, ...] = ()
    in_spark = None
    doubt = asked = None
    while options:
        candidates = _competing(options, free=free)
        if len(candidates) > 1:
            candidates = [learned.predicted(candidate, known.net_changes, source_rows) for candidate in candidates]
        if doubt is None and given_up is None and learned.is_in_doubt(candidates):
            doubt = learned.doubt(known.net_changes)
            if doubt is None:
                describe()
                doubt = asked = _doubt(coordinator, member, binding)
        if doubt is not None:
            candidates = doubted(candidates, doubt)
        fulls = [candidate for candidate in candidates if candidate.whole]
        is_given_up = given_up is not None and bool(fulls)
        chosen = min(fulls, key=lambda c: c.predicted_ms) if is_given_up else learned.chosen(candidates)
        if chosen.way is Way.SLICED:
            size = _expected(member, known, sizes, settings, whole=chosen.whole)
            slices = _slices(coordinator, member, binding, chosen.whole, size, settings)
        elif chosen.way is Way.LOWERED:
            in_spark = _in_spark(coordinator, member, binding, settings)
        if chosen.way in (Way.DATABASE, Way.PUSHED) or slices or in_spark is not None:
            break
        # It can't be cut, or Spark would have nothing to compute.
        options = [option for option in options if option.kind != chosen.kind]
        chosen = replace(chosen, way=Way.PUSHED)
    if chosen.whole and not decision.whole:
        can_differ = any(not candidate.whole for candidate in candidates)
        decision = Decision(Action.FULL, Fallback.CHEAPER if can_differ else Fallback.MEMORY)
    whole = decision.whole
    rows = _rows_sql(member, decision, binding)
    if rows is None:
        return _planned(member, MemberPlan(member.name, decision, known.source_changes, in_place=in_place))
    here = chosen.way is Way.DATABASE
    identified = member.st.server_row_ids
    repairs = forced or bool(member.reinit_reason) or not member.stored.frontier
    expected = _expected(member, known, sizes, settings, whole=whole or decision.keeps)
    large = expected > settings.collect_max_rows and not here and not read_here
    meeting = None
    if large and whole and chosen.way is Way.PUSHED and _can_meet(member):
        statement, meeting = _met(coordinator, member, rows, repairs=repairs)
    else:
        statement = _typed(member, rows) if here and identified else _as_text(member, rows)
    computation = Computation(
        sql=statement,
        columns=tuple(column.name for column in member.st.storage),
        expected_rows=expected,
        identified=identified,
        large=large,
        slices=slices,
        parallel=here and identified and _pays_apart(coordinator, member, known, sizes, whole=whole),
        planner=ANY_ORDER if whole and statement.count(" JOIN ") >= MANY_JOINS else (),
        # A window is read in full, also where its changes are netted.
        patience_ms=None if whole or decision.keeps else patience_ms(known.source_changes),
        limit_ms=limit_ms(chosen, candidates, learned) if identified or not here else None,
        meeting=meeting,
        timezone=member.st.timezone,
        spark=in_spark,
    )
    several = tuple(candidates) if len(candidates) > 1 and not decision.keeps else ()
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
            chosen.way,
            several,
            given_up,
            asked,
            rows_now,
            repairs=repairs,
            net_changes=known.net_changes,
            size=source_rows if whole else known.net_changes,
            in_place=in_place,
        ),
    )


def _planned(member: Observed, plan: MemberPlan) -> Planned:
    return Planned(**vars(member), plan=plan)


def _possible(
    member: Observed,
    known: MemberFacts,
    decision: Decision,
    sizes: Mapping[str, float],
    settings: Settings,
    placement: str,
    *,
    read_here: bool,
) -> list[Candidate]:
    """The ways in which the decision, or in mode AUTO FULL instead of it, can be carried out; the best known first."""
    if decision.action in (Action.NO_DATA, Action.SKIP):
        return []
    free = decision.action is Action.DIFFERENTIAL and member.st.refresh_mode == "AUTO"
    found = []
    for whole in (False, True) if free else (decision.whole,):
        expected = _expected(member, known, sizes, settings, whole=whole)
        # Spark's own session has UTC, whatever a table's zone.
        lowers = whole and member.st.timezone is None
        by_spark: tuple[Way, ...] = (Way.PUSHED, Way.LOWERED) if lowers else (Way.PUSHED,)
        # A content that meets the stored rows is one join, of which few rows travel.
        is_cut = member.st.server_row_ids and not read_here and not (whole and _can_meet(member))
        if expected > settings.collect_max_rows and is_cut:
            by_spark = (Way.SLICED, *by_spark)
        if decision.keeps:
            by_spark = (Way.PUSHED,)
        ways = {"database": (Way.DATABASE,), "spark": by_spark, "auto": (Way.DATABASE, *by_spark)}[placement]
        found += [Candidate(way, whole) for way in ways]
    return found


def _competing(possible: Sequence[Candidate], *, free: bool) -> list[Candidate]:
    """What cost chooses among. FULL competes with a difference if `free`."""
    return list(possible) if free else [c for c in possible if c.whole == possible[0].whole]


def _chooses(member: Observed, settings: Settings) -> bool:
    """Whether FULL may be taken for no other reason than its cost."""
    return member.st.refresh_mode == "AUTO" and _given_ratio(member, settings) is None


def _given_ratio(member: Observed, settings: Settings) -> float | None:
    """The share of changed rows that somebody has set, for the table or for all."""
    given = member.st.differential_max_change_ratio
    return settings.differential_max_change_ratio if given is None else given


def sized(members: Mapping[str, Observed], settings: Settings, *, forced: bool) -> list[Source]:
    """The sources whose size the decisions and the choice of a stage may need."""
    found: dict[str, Source] = {}
    for member in members.values():
        is_moved = bool(member.moved)
        unchanged = (
            member.stored.is_populated and not member.reinit_reason and not forced and member.steady and not is_moved
        )
        changed = is_moved or any(state.pending_rows or key in members for key, state in member.states.items())
        chooses = changed and _chooses(member, settings)
        for key, state in member.states.items():
            asked = chooses or state.pending_rows > 0 or state.buffer_lost or key in members or not unchanged
            if state.source.kind != "FOREIGN_TABLE" and asked:
                found[key] = state.source
    return list(found.values())


def _pays_apart(
    coordinator: Connection, member: Observed, known: MemberFacts, sizes: Mapping[str, float], *, whole: bool
) -> bool:
    """Whether workers may compute the rows, and these are far fewer than what may be read for them.

    They are kept once more before they are staged. Workers hand on rows in another order each time: where that shows,
    in the last digits of a float or in who comes first, a content that hasn't changed would be written anew.
    """
    if member.query.refusal is not None or member.query.left_open != Open():
        return False
    read = sum(sizes.get(key, 0.0) for key in member.states)
    if read < _PARALLEL_FROM:
        return False
    if not whole:
        return known.net_changes <= read * _FEW
    # Of a table that nobody has analyzed it is known how many rows fit into it.
    row = coordinator.execute(
        "SELECT coalesce(nullif(reltuples, -1), pg_catalog.pg_relation_size(oid) / 32) FROM pg_catalog.pg_class"
        " WHERE oid = %s",
        (member.stored.relid,),
    ).fetchone()
    return row is not None and row[0] <= read * _FEW


def _slices(
    coordinator: Connection, member: Observed, binding: Binding, whole: bool, expected: int, settings: Settings
) -> tuple[str, ...]:
    """Statements for as many readers, the bag union of whose rows is the content or the change; none for one reader."""
    if whole:
        pieces = member.query.pieces(binding, lambda source: ctid_slices(*_extent(coordinator, source), settings))
        return tuple(_as_text(member, _weighed(piece)) for piece in pieces)
    if slice_count(expected, settings) < 2:
        return ()
    found = member.query.slices(binding, _cut(coordinator, binding, expected, settings))
    return tuple(_as_text(member, part) for part in found)


def _cut(coordinator: Connection, binding: Binding, expected: int, settings: Settings) -> dict[str, tuple[str, ...]]:
    """By source, conditions that divide its buffer by pages, so that each of its changes is read once.

    Rows keep their places while the buffer is locked: until this transaction ends nothing rewrites it.
    """
    cut = {}
    for key, bound in binding.sources.items():
        window = bound.window
        if not isinstance(window, Window) or window.net or window.beyond or bound.handed_on is not None:
            continue
        coordinator.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(sql.Identifier(*window.buffer)))
        row = coordinator.execute(
            "SELECT pg_catalog.pg_relation_size(pg_catalog.to_regclass(%s))"
            " / pg_catalog.current_setting('block_size')::bigint",
            (sql.Identifier(*window.buffer).as_string(coordinator),),
        ).fetchone()
        pages = int(row[0] or 0) if row is not None else 0
        cut[key] = ctid_slices(*window.buffer, pages, expected, settings) or ("true",)
    return cut


def _doubt(conn: Connection, member: Observed, binding: Binding) -> float | None:
    """What PostgreSQL's planner expects of the difference, as a multiple of FULL; None where it can't plan them."""
    change, content = member.query.delta(binding), member.query.full(binding)
    if change is None:
        return None
    try:
        with in_zone(conn, member.st.timezone):
            expected = _estimate(conn, change)
            return expected / max(_estimate(conn, content), 1.0) if expected >= LARGE_ESTIMATE else 0.0
    except psycopg.DataError:
        return None  # of constants, which are computed here already


def _estimate(conn: Connection, statement: str) -> float:
    with read_only(conn):
        row = conn.execute(sql.SQL("EXPLAIN (FORMAT JSON) {}").format(sql.SQL(statement))).fetchone()
    assert row is not None
    return float(row[0][0]["Plan"]["Total Cost"])


def _in_spark(coordinator: Connection, member: Observed, binding: Binding, settings: Settings) -> SparkPlan | None:
    """The whole content as a plan for Spark; None if it is better computed by PostgreSQL alone."""
    found = member.query.spark(
        binding,
        key=member.st.identity_columns,
        describe=lambda statement: _described(coordinator, statement),
        slices=lambda source: ctid_slices(*_extent(coordinator, source), settings),
        prefix=f"pgt_{member.st.id}_{uuid.uuid4().hex[:12]}",
    )
    if found is None or not found.pays or _is_refused_unfilled(coordinator, member, found.late):
        return None
    return found


def _is_refused_unfilled(coordinator: Connection, member: Observed, late: Sequence[tuple[str, str]]) -> bool:
    """Whether a late column may refuse the NULL that it is on the stage at first: its domain may check it."""
    if not late:
        return False
    row = coordinator.execute(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid"
        " WHERE a.attrelid = %s AND a.attname = ANY(%s) AND t.typtype = 'd')",
        (member.stored.relid, [name for name, _ in late]),
    ).fetchone()
    return row is not None and bool(row[0])


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
    ratio = _given_ratio(member, settings)
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


def _expected(
    member: Observed, known: MemberFacts, sizes: Mapping[str, float], settings: Settings, *, whole: bool
) -> int:
    """About how many rows are computed."""
    return _largest(member, sizes, settings) if whole else known.net_changes


def _largest(member: Observed, sizes: Mapping[str, float], settings: Settings) -> int:
    """Rows of the largest source. A source of unknown size, a foreign table, counts as large."""
    return int(max((sizes.get(key, settings.collect_max_rows + 1) for key in member.states), default=1))


def _keeping(
    member: Observed,
    decision: Decision,
    upstream: Mapping[str, UpstreamChange],
    sizes: Mapping[str, float],
    settings: Settings,
    *,
    broken: str | None,
) -> Decision:
    """The decision to compute an altered query's content from the stored rows, if that is possible and no more work."""
    if decision.action is not Action.REINITIALIZE or member.kept is None:
        return decision
    why = member.kept if isinstance(member.kept, str) else None
    if isinstance(member.kept, Kept):
        changes = {key: state.pending_rows for key, state in member.before.items()}
        given = _given_ratio(member, settings)
        limit = _USUAL_RATIO if given is None else given
        if broken:
            why = f"a value can't be computed from what is stored: {broken}"
        elif upstream:
            why = "it is refreshed together with what it reads"
        elif any(state.buffer_lost or state.truncated for state in member.before.values()):
            why = "changes of its sources may be missing, or there was a TRUNCATE"
        elif limit > 0 and any(n > limit * max(sizes.get(key, 0.0), 1.0) for key, n in changes.items()):
            why = "too much has changed since its last refresh"
        else:
            reason = f"{decision.fallback_reason}: kept what is stored ({member.kept.words})"
            return Decision(Action.REINITIALIZE, reason, keeps=True)
    return Decision(Action.REINITIALIZE, f"{decision.fallback_reason}: computed anew, because {why}")


def _binding_before(member: Observed) -> Binding:
    """The windows of the query whose content is stored."""
    sources = {key: SourceBinding(changed=s.is_changed, window=s.window) for key, s in member.before.items()}
    return Binding(sources=sources, stored=(member.stored.schema, member.stored.name))


def _rows_sql(member: Observed, decision: Decision, binding: Binding) -> str | None:
    """SQL of `__pgt_w` and the storage columns, with the types that the query yields; None if nothing is computed."""
    if decision.action in (Action.NO_DATA, Action.SKIP):
        return None
    if decision.keeps:
        return member.kept.change(binding) if isinstance(member.kept, Kept) else None
    if not decision.whole:
        return member.query.delta(binding)
    return _weighed(member.query.full(binding))


def _weighed(rows: str) -> str:
    """SQL of rows of a content with their weight."""
    return sql.SQL("SELECT 1 AS {}, f.* FROM ({}) AS f").format(sql.Identifier(WEIGHT), sql.SQL(rows)).as_string(None)


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


def _can_meet(member: Observed) -> bool:
    """Whether a session that reads the whole content can subtract the stored rows from it, instead of sending all."""
    st = member.st
    is_stored = member.stored.is_populated and not member.reinit_reason
    return is_stored and st.server_row_ids and st.keyed and bool(st.identity)


def _met(conn: Connection, member: Observed, rows: str, *, repairs: bool) -> tuple[str, Meeting]:
    """SQL of the content less the stored rows, as text, and what its session does before and after."""
    target = member.target(conn)
    content = stage.computed(_typed(member, rows), target.names)
    unmatched = stage.unmatched(target, member.st.id, content, repairs=repairs).as_string(conn)
    prepare = (stage.allowing("work_mem", local=False), stage.counting(member.st.id))
    sizes = stage.sizes_of(target, member.st.id)
    meeting = Meeting(tuple(statement.as_string(conn) for statement in prepare), sizes.as_string(conn))
    return _texts(member, sql.Identifier("d", ROW_ID).as_string(conn), unmatched), meeting


def _as_text(member: Observed, rows: str) -> str:
    """SQL of the rows, each column as text that PostgreSQL's own input functions read back, and the identity's key."""
    if member.st.server_row_ids:
        return _texts(member, '"d"."__pgt_key"', _typed(member, rows))
    return _texts(member, identity.canonical_sql(member.st.identity_columns, "d"), rows)


def _texts(member: Observed, key: str, rows: str) -> str:
    storage = member.st.storage
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
