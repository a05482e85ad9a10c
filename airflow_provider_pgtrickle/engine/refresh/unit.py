"""A refresh has five steps: locked, observed, planned, computed, written. A unit has one snapshot and one commit.

`refresh_unit` takes one unit through them and tries again after a transient failure, `refresh_units` takes several.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial

import psycopg

from airflow_provider_pgtrickle.engine.capture.cleanup import clean_buffers
from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.database import Database, translating
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.declare import dependencies
from airflow_provider_pgtrickle.engine.dvm.budget import deep
from airflow_provider_pgtrickle.engine.errors import SURROUNDINGS, LeaseLost, PgTrickleError, TransientFault
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh import cost, failure, history, lease, lock, snapshot, turn, use
from airflow_provider_pgtrickle.engine.refresh.compute import Computed, Lacking, NoValue, compute, hand_on
from airflow_provider_pgtrickle.engine.refresh.cost import Candidate, Experience, GivenUp, Way
from airflow_provider_pgtrickle.engine.refresh.decision import Skip, held_by
from airflow_provider_pgtrickle.engine.refresh.executor import Executor, NoExecutor, more_to_do
from airflow_provider_pgtrickle.engine.refresh.failure import Verdict, judge
from airflow_provider_pgtrickle.engine.refresh.history import Finished, RefreshResult, Trace
from airflow_provider_pgtrickle.engine.refresh.lease import RunToken
from airflow_provider_pgtrickle.engine.refresh.lock import Queries, Request
from airflow_provider_pgtrickle.engine.refresh.observe import Describer, Observed, observe, sizes
from airflow_provider_pgtrickle.engine.refresh.plan import UpstreamChange, plan, sized
from airflow_provider_pgtrickle.engine.refresh.query import MustBeRead, Unread, analysed, unread
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection
from airflow_provider_pgtrickle.engine.refresh.write import write
from airflow_provider_pgtrickle.engine.settings import Settings

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Apart:
    """The tables that have to be refreshed and committed before the others of the unit."""

    first: tuple[QualifiedName, ...]


@dataclass(frozen=True)
class Along:
    """The tables that were not named, and are in a unit with one that was."""

    names: tuple[QualifiedName, ...]


def refresh_unit(
    database: Database,
    names: Sequence[QualifiedName],
    *,
    executor: Callable[[], Executor],
    settings: Settings,
    force_full: bool = False,
    run_token: str | None = None,
    initiated_by: str = "manual",
    queries: Queries = analysed,
    instant: datetime | None = None,
    queues: bool = True,
    along: Sequence[QualifiedName] = (),
) -> dict[str, RefreshResult]:
    """Refresh the named stream tables. Returns the results by full name, upstream first.

    What is in a unit by declaration with one of them is refreshed with them, and is in the results, too.
    `executor` is called only if something has to be computed. `run_token` names the run: a retry with the same token
    takes the tables over from the attempt before it, another token finds them locked and is skipped. The text after
    a # in it names the turn: see `lease.revoke`. `instant`: the time that the clock shows, if it is not the server's.
    `queues`: whether it waits for its turn, where refreshes are limited. `along`: those of `names` for which nobody
    asked. They aren't computed in full, and one of them that is halted holds the others back.
    Transient failures are tried again here; a failure that remains is recorded and raised.
    """
    run = RunToken.of(run_token)
    request = Request(
        database,
        tuple(dict.fromkeys(names)),
        executor,
        queries,
        settings,
        force_full,
        run,
        initiated_by,
        instant=instant,
        queues=queues,
        along=tuple(along),
    )
    results = _refreshed(request)
    if isinstance(results, Along):
        # Whoever declares or asks for a table anew means that one alone.
        names, along = (*request.names, *results.names), (*request.along, *results.names)
        request = replace(request, names=names, along=along, is_piece=True, token=RunToken.of(run_token))
        results = _refreshed(request)
        assert not isinstance(results, Along)
    # The results of parts are left out; they are in the history.
    return {name: results[name] for name in results if name in request.unit}


def refresh_idle(
    database: Database,
    names: Sequence[QualifiedName],
    *,
    settings: Settings,
    run_token: str | None = None,
    initiated_by: str = "manual",
) -> dict[str, RefreshResult] | None:
    """Move the data timestamps of tables in which nothing has changed, on one snapshot and in one commit.

    None, and nothing was done, if one of them is unavailable or has to be computed, or if it fails: each is to be
    refreshed by itself then. Most of what a refresh takes is for the unit, so many take little more than one.
    """
    # Their queries are read only if something came in their sources that may not concern them.
    for queries in (unread, analysed):
        run, trace = RunToken.of(run_token), Trace()
        request = Request(
            database,
            tuple(names),
            _nobody,
            queries,
            settings,
            force_full=False,
            token=run,
            initiated_by=initiated_by,
            idle=True,
            queues=False,
        )
        try:
            with translating(), deep():
                results = _attempt(request, trace)
        except BaseException as error:
            gives_way = isinstance(error, NoExecutor) or not isinstance(error, SURROUNDINGS)
            gives_way = gives_way and isinstance(error, PgTrickleError)
            with suppress(PgTrickleError):
                cause = more_to_do() if gives_way else error
                failure.record(database, names, run, cause, trace, settings, final=True)
            if not gives_way:
                raise
            if not isinstance(error, MustBeRead):
                return None
        else:
            assert not isinstance(results, (Apart, Along))
            return {name: results[name] for name in results if name in request.unit}
    return None


def _nobody() -> Executor:
    raise more_to_do()


def refresh_units(
    database: Database,
    units: Sequence[Sequence[QualifiedName]],
    *,
    executor: Callable[[], Executor],
    settings: Settings,
    force_full: bool = False,
    run_token: str | None = None,
    initiated_by: str = "manual",
    along: Collection[QualifiedName] = (),
) -> dict[str, RefreshResult]:
    """Refresh each unit, upstream first, with a snapshot and a commit of its own. `along`: see `refresh_unit`.

    A unit that fails stops its readers and nothing else; the first error is raised when all other units are done.
    A fault of the surroundings stops everything.
    """
    results: dict[str, RefreshResult] = {}
    faults: list[PgTrickleError] = []
    halted: set[str] = set()
    for number, unit in enumerate(units, 1):
        if halted.intersection(map(str, unit)):
            continue
        try:
            refreshed = refresh_unit(
                database,
                unit,
                executor=executor,
                settings=settings,
                force_full=force_full,
                run_token=run_token,
                initiated_by=initiated_by,
                along=[name for name in unit if name in along],
            )
            results |= refreshed
            for name, result in refreshed.items():
                _log.info(
                    "Unit %d of %d: %s %s in %.0f ms", number, len(units), name, result.action, result.duration_ms
                )
        except SURROUNDINGS:
            raise
        except PgTrickleError as error:
            faults.append(error)
            if len(units) > 1:
                _log.error("%s", error)
                halted |= _readers(database, unit)
    if faults:
        raise faults[0]
    return results


def _refreshed(request: Request) -> dict[str, RefreshResult] | Along:
    outcome = _persistently(request)
    if not isinstance(outcome, Apart):
        return outcome
    again = replace(request, token=RunToken.of(request.token.given), is_piece=True)
    rest = tuple(name for name in request.names if name not in outcome.first)
    pieces = replace(again, names=outcome.first), replace(again, names=rest, done=(*request.done, *outcome.first))
    results: dict[str, RefreshResult] = {}
    for piece in pieces:
        refreshed = _refreshed(piece)
        assert not isinstance(refreshed, Along)
        results |= refreshed
    return results


def _persistently(request: Request) -> dict[str, RefreshResult] | Apart | Along:
    tries = max(request.settings.retry_attempts, 1)
    subject = str(request.names[0]) if len(request.names) == 1 else None
    for number in range(1, tries + 1):
        trace = Trace()
        try:
            with translating(subject), deep():
                return _attempt(request, trace)
        except BaseException as error:
            again = judge(error) is Verdict.RETRY and number < tries
            kept = True
            with suppress(PgTrickleError):  # if the database can't be reached, the first error says so
                kept = failure.record(
                    request.database,
                    request.names,
                    request.token,
                    error,
                    trace,
                    request.settings,
                    final=not again,
                )
            if not again:
                raise
            if not kept:
                # Whoever ended this attempt's session meant to end the run, not only this attempt.
                raise LeaseLost(
                    "Another run took this refresh over, or it was killed; it is not tried again",
                    stream_table=subject,
                    remedy="Look at that run's result instead.",
                ) from error
        time.sleep(failure.back_off(number, request.settings))
        request = replace(request, token=request.token.again(), takes_over=False)
    raise AssertionError("the last try returns or raises")


def _attempt(request: Request, trace: Trace) -> dict[str, RefreshResult] | Apart | Along:
    """Refresh all tables of the unit in one commit, or none of them. A failure leaves nothing behind."""
    # One session holds the locks, the snapshot and the commit.
    with lease.at_work(request.token), request.database.session() as conn:
        # A lost history row does no harm, but a lost refresh would, so the commit switches this on again.
        conn.execute("SET synchronous_commit = off")
        with trace.phase("queue"):
            has_turn = turn.take(conn, request)
        if not has_turn:
            named = records.named(conn, request.names)
            return _skip(conn, named, lock.all_of(named, Skip.QUEUED), request, trace)
        with trace.phase("lock"):
            held = lock.hold(conn, request, trace)
            if request.idle and (held.missing or held.unavailable):
                raise more_to_do()
            if held.missing:
                return Along(held.missing)
            if held.unavailable:
                return _skip(conn, (*held.tables, *held.live), held.unavailable, request, trace)
        watched = use.begin(conn, held.tables)
        with trace.phase("schema"):
            locked, moment = lock.define(conn, held, request)
            first = lock.to_go_first(conn, locked, request)
        if first:
            if request.idle:
                raise more_to_do()
            history.withdraw(conn, trace)
            lease.give_back(conn, held.ids, request.token)
            return Apart(first)
        at, observed = observe(conn, locked, request, trace)
        if any(isinstance(member.query, Unread) and not _is_idle(member) for member in observed.values()):
            raise MustBeRead("Something came in its sources")
        try:
            with Describer(request.database) as describer:
                computed = _computed(conn, observed, request, trace, describer)
        except (psycopg.Error, PgTrickleError) as error:
            # If a table or function has just been replaced or dropped, that is the cause and not the query, so
            # `stayed` raises its own error.
            with suppress(psycopg.Error):
                conn.execute("ROLLBACK")
                lock.stayed(conn, locked, moment, error)
            raise
        conn.execute("COMMIT")  # this ends the snapshot; temporary tables and advisory locks stay
        if any(member.plan.computation is not None for member in computed.values()):
            lock.stayed(conn, locked, moment)
        written = write(conn, computed, at, request.token, trace, request.settings)
        if written is None:
            lease.give_back(conn, held.ids, request.token)
            return _moved(conn, computed, request, trace)
        _clean_up(conn, computed.values())
        use.end(conn, watched)
        return {**written, **_skipped(held.live, lock.all_of(held.live, Skip.LIVE), request, trace)}


def _is_idle(member: Observed) -> bool:
    """Whether nothing at all has come in the sources since the content was computed."""
    return member.stored.is_populated and all(
        state.source.captured and not state.buffer_lost and not state.held_rows for state in member.states.values()
    )


def _computed(
    conn: Connection, unit: Mapping[str, Observed], request: Request, trace: Trace, describer: Describer
) -> dict[str, Computed]:
    """Plan and compute one table after the other, because a plan contains the changes that earlier tables hand on."""
    with trace.phase("decide"):
        rows = sizes(conn, request.database, sized(unit, request.settings, forced=request.force_full))
    ids, has_lacked = [m.stored.id for m in unit.values()], any(m.stored.has_lacked for m in unit.values())
    learned = cache(lambda: cost.read(conn, ids, request.settings, has_lacked=has_lacked))
    executor: Executor | None = None
    snapshot_id = ""
    computed: dict[str, Computed] = {}
    upstream: dict[str, UpstreamChange] = {}
    for key, member in unit.items():
        read_here = any(key in later.states for later in unit.values())
        forced = request.is_full(member.stored) and member.stored.qualified not in request.done
        made: Computed | NoValue | GivenUp | Lacking | None = None
        broken, given_up, lacking = None, None, list[Candidate]()
        while not isinstance(made, Computed):
            # If a row of the difference has no value, or it takes too long, the table is planned as the whole content.
            broken = made.words if isinstance(made, NoValue) else broken
            given_up = made if isinstance(made, GivenUp) else given_up
            with trace.phase("decide"):
                planned = plan(
                    conn,
                    member,
                    upstream,
                    rows,
                    request.settings,
                    forced=forced,
                    read_here=read_here,
                    placement=member.stored.placement or request.settings.placement,
                    experience=partial(_known, learned, member),
                    broken=broken,
                    given_up=given_up,
                    lacking=lacking,
                    describe=partial(describer.describe, member.states.values()),
                )
                if isinstance(made, Lacking) and planned.plan.taken in lacking:
                    raise made.error  # there is no other way
                if planned.plan.computation is not None and request.idle:
                    raise more_to_do()
                if planned.plan.computation is not None and not planned.plan.whole:
                    describer.describe(member.states.values())
            if planned.plan.computation is not None and planned.plan.way is not Way.DATABASE and executor is None:
                with trace.phase("spark"):
                    executor, snapshot_id = request.executor(), snapshot.export(conn)
            begun = time.perf_counter()
            # Each try has a stage of its own.
            tries = "w" * (bool(broken) + bool(given_up) + len(lacking))
            token = f"{request.token.attempt}{tries}"
            with trace.phase("compute"):
                made = compute(conn, request.database, executor, snapshot_id, planned, token)
            if isinstance(made, Lacking):
                # What ended of it has to be started anew, which takes another attempt if it is told only now.
                executor = None
                if lacking and isinstance(made.error, TransientFault):
                    raise made.error
                lacking.append(planned.plan.taken)
                trace.lack(member.stored.id, planned.plan.taken.title, planned.plan.size, request.settings)
        if read_here:
            with trace.phase("hand_on"):
                made, upstream[key] = hand_on(conn, made, request.settings)
        computed[key] = replace(made, spent_ms=(time.perf_counter() - begun) * 1000)
    return computed


def _known(learned: Callable[[], Mapping[int, Experience]], member: Observed) -> Experience:
    return learned()[member.stored.id]


def _clean_up(conn: Connection, unit: Iterable[Computed]) -> None:
    """Delete consumed rows of the buffers just read.

    An error is ignored, because the refresh is done and the next one cleans up as well.
    """
    read = {key for member in unit for key, state in member.states.items() if state.held_rows}
    if not read:
        return
    with suppress(psycopg.Error, PgTrickleError), conn.transaction():
        conn.execute("SET LOCAL lock_timeout = '100ms'")
        clean_buffers(conn, read)


def _skip(
    conn: Connection, tables: Sequence[StreamTable], reasons: Mapping[str, str], request: Request, trace: Trace
) -> dict[str, RefreshResult]:
    """The results of tables that are not refreshed, which the history tells, too."""
    results = _skipped(tables, reasons, request, trace)
    told = {st.id: results[str(st.qualified)].fallback_reason for st in tables}
    history.skip(conn, told, request.unit, request.token.run, request.initiated_by)
    return results


def _skipped(
    tables: Iterable[StreamTable], reasons: Mapping[str, str], request: Request, trace: Trace
) -> dict[str, RefreshResult]:
    """A table without a reason of its own is held back by the first that has one."""
    results = {}
    for st in tables:
        name = str(st.qualified)
        holder = None if name in reasons else next(iter(reasons))
        results[name] = RefreshResult(
            name=name,
            action="SKIP",
            fallback_reason=reasons[name] if holder is None else held_by(holder, reasons[holder]),
            held_by=holder,
            duration_ms=trace.total_ms,
            data_timestamp=st.data_timestamp,
            run_token=request.token.run,
            status="SKIPPED",
        )
    return results


def _moved(conn: Connection, unit: Mapping[str, Computed], request: Request, trace: Trace) -> dict[str, RefreshResult]:
    """The results of a unit that somebody else refreshed meanwhile: the computed rows are outdated and thrown away."""
    stored = [member.stored for member in unit.values()]
    results = _skipped(stored, lock.all_of(stored, Skip.FRONTIER_MOVED), request, trace)
    history.finish(conn, [Finished(m.stored.id, results[m.name], str(m.plan)) for m in unit.values()], trace)
    return results


def _readers(database: Database, unit: Sequence[QualifiedName]) -> set[str]:
    """All stream tables that read one of the unit directly or through others, as the catalog knows them."""
    with database.transaction() as conn:
        beside = records.connected(conn, [st.id for st in records.named(conn, unit)])
        graph = dependencies.graph(conn, beside)
    return {reader for name in unit for reader in graph.downstream(str(name))}
