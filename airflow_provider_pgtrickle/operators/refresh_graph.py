"""Granularity `graph`: one task refreshes everything that is due in one session, and reports on each table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.bases.skipmixin import XCOM_SKIPMIXIN_KEY, XCOM_SKIPMIXIN_SKIPPED

from airflow_provider_pgtrickle.engine.errors import SURROUNDINGS, PgTrickleError
from airflow_provider_pgtrickle.operators import outcome
from airflow_provider_pgtrickle.operators.asked import Asked
from airflow_provider_pgtrickle.operators.database import as_airflow, hook_of
from airflow_provider_pgtrickle.operators.fenced_run import FencedRun, together
from airflow_provider_pgtrickle.operators.plan import MOST_NAMES, due_units
from airflow_provider_pgtrickle.operators.readiness import NO_CHANGE
from airflow_provider_pgtrickle.operators.unit import Unit
from airflow_provider_pgtrickle.stream_table import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow.sdk import Asset, Context

    from airflow_provider_pgtrickle.engine.schedule import Effective
    from airflow_provider_pgtrickle.operators.outcome import Outcome
    from airflow_provider_pgtrickle.operators.readiness import TableState
    from airflow_provider_pgtrickle.operators.unit import Unit

#: Airflow registers all asset events of a task in the request that ends it, which may take five seconds.
_EVENTS_AT_ONCE = 50


class StreamTableGraphRefreshOperator(BaseOperator):
    """Refreshes the units that are due and changed, one after the other, in one Spark session or application.

    Units that PostgreSQL computes are refreshed by this process, which opens no Spark for them. Those that don't read
    each other are refreshed side by side, up to `parallel_refreshes` at a time.

    A unit that fails stops only the units that read it. The tasks of units that were brought up to date are left to the
    scheduler, the others are skipped. It returns the arguments of a mapped `StreamTableOutcomeOperator`.

    :param assets: the asset of each table by `schema.name`
    :param due_only: whether tables wait until they are due; None: in scheduled runs
    """

    template_fields: Sequence[str] = ("postgres_conn_id", "spark_conn_id")
    ui_color = "#d9ead3"
    # With this the scheduler reads from XCom which tasks to skip, also after one of them was cleared alone.
    inherits_from_skipmixin = True

    def __init__(
        self,
        *,
        units: Sequence[Unit],
        schedules: Mapping[str, Effective],
        postgres_conn_id: str = DEFAULT_CONN_ID,
        spark_conn_id: str = "spark_default",
        assets: Mapping[str, Asset] | None = None,
        spark_args: Mapping[str, Any] | None = None,
        due_only: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.due_only = due_only
        self.assets = dict(assets or {})
        self.units = tuple(units)
        self.schedules = dict(schedules)
        self.postgres_conn_id = postgres_conn_id
        self.spark_conn_id = spark_conn_id
        self.spark_args = dict(spark_args or {})
        self._run: FencedRun | None = None

    def execute(self, context: Context) -> list[dict[str, Any]]:
        with as_airflow():
            run = self._run = FencedRun(hook_of(self.postgres_conn_id), context)
            states, verdict = due_units(run.database, self.units, self.schedules, context, self.due_only)
            reads = _upstream(self.units, states)
            due = [
                unit
                for unit in _upstream_first(self.units, reads)
                if verdict.skip.get(unit.task_id, NO_CHANGE) == NO_CHANGE
            ]
            run.end_earlier_rounds(context)
            full = Asked.of(context).full_refresh
            if full:
                run.withdraw([table.qualified for unit in due for table in unit.tables])
            for_spark = {
                name
                for name, state in states.items()
                if (state.has_work or full) and state.placement(run.settings) == "spark"
            }
            halted = dict(verdict.halted) if run.settings.halted == "fail" else {}
            due = [unit for unit in due if unit.task_id not in halted]
            if not full:
                done = _moved(run, _idle(due, reads, verdict.skip, halted), reads)
                due = [unit for unit in due if unit.task_id not in done]
            failed = self._refresh(run, due, reads, for_spark, halted, full)
            outcomes = run.outcomes()
        return self._report(context, failed, outcomes)

    def _report(
        self, context: Context, failed: Mapping[str, str], outcomes: Mapping[str, Outcome]
    ) -> list[dict[str, Any]]:
        from airflow_provider_pgtrickle import metrics

        metrics.record(o.result for o in outcomes.values())
        for _, o in sorted(outcomes.items()):
            self.log.info("%s", o)
        for error in failed.values():
            self.log.error("%s", error)
        told = {name: o.summary for name, o in sorted(outcomes.items()) if not o.idle}
        worth_telling = [o for _, o in sorted(outcomes.items()) if not o.idle]
        # Those that failed first: there may be hundreds.
        worth_telling.sort(key=lambda o: o.error is None)
        outcome.note(context, worth_telling[:MOST_NAMES])
        done = {unit.task_id for unit in self.units if told.keys() & set(unit.names)} - failed.keys()
        push = context["ti"].xcom_push
        push(key="refreshed", value={"tables": len(told), "first": dict(list(told.items())[:MOST_NAMES])})
        push(
            key=XCOM_SKIPMIXIN_KEY,
            value={XCOM_SKIPMIXIN_SKIPPED: [unit.task_id for unit in self.units if unit.task_id not in done]},
        )
        # This task succeeds even if tables failed: the instances of `outcomes` report that.
        return [*self._updated(outcomes), *self._broken(failed)]

    def _updated(self, outcomes: Mapping[str, Outcome]) -> Iterable[dict[str, Any]]:
        events = (
            {"name": self.assets[name].name, "uri": self.assets[name].uri, "extra": o.event}
            for name, o in sorted(outcomes.items())
            if name in self.assets and o.result.changed
        )
        while batch := list(islice(events, _EVENTS_AT_ONCE)):
            yield {"title": f"{len(batch)} updated", "events": batch}

    def _broken(self, failed: Mapping[str, str]) -> Iterable[dict[str, Any]]:
        for unit in self.units:
            if unit.task_id in failed:
                yield {"title": unit.task_id, "tables": list(unit.names), "error": failed[unit.task_id]}

    def _refresh(
        self,
        run: FencedRun,
        due: Sequence[Unit],
        reads: Mapping[str, set[str]],
        for_spark: set[str],
        halted: Mapping[str, str],
        full: bool,
    ) -> dict[str, str]:
        """By task id: why units failed, are halted, or were left out because they read such a unit."""
        failed = dict(halted)
        left: set[str] = set()
        units = {unit.task_id: unit for unit in due}

        def refresh(task_id: str) -> None:
            unit = units[task_id]
            if broken := {read for read in reads[task_id] if read in failed}:
                failed[task_id] = _left_out(unit, broken)
            elif for_spark.intersection(unit.names) or not left.isdisjoint(reads[task_id]):
                left.add(task_id)
            else:
                try:
                    if not run.refresh_without_spark([table.qualified for table in unit.tables], force_full=full):
                        left.add(task_id)
                except SURROUNDINGS:
                    raise
                except PgTrickleError as error:
                    failed[task_id] = str(error)

        run.side_by_side(list(units), reads, refresh)
        wanted = {task_id: unit for task_id, unit in units.items() if task_id in left}
        return failed | self._compute(run, wanted, reads, full) if wanted else failed

    def _compute(
        self, run: FencedRun, wanted: Mapping[str, Unit], reads: Mapping[str, set[str]], full: bool
    ) -> dict[str, str]:
        """The units that failed on Spark. If it didn't get to all units, the whole task fails."""
        before = max((o.refresh_id for o in run.outcomes().values()), default=0)
        run.open(self.spark_conn_id, self.spark_args)
        try:
            run.refresh([[table.name for table in unit.tables] for unit in wanted.values()], force_full=full)
        except SURROUNDINGS:
            raise
        except PgTrickleError:
            told = {name: o for name, o in run.outcomes().items() if o.refresh_id > before}
            failed = _failed(told, wanted.values(), reads)
            if failed is None:
                raise
            return failed
        finally:
            run.close()
        return {}

    def on_kill(self) -> None:
        if self._run is not None:
            self._run.kill()


def _failed(told: Mapping[str, Outcome], units: Iterable[Unit], reads: Mapping[str, set[str]]) -> dict[str, str] | None:
    """The failures by the history; None if a unit neither ended nor reads one that failed."""
    failed: dict[str, str] = {}
    for unit in units:
        outcomes = [told[name] for name in unit.names if name in told]
        states = {o.result.status for o in outcomes}
        if "FAILED" in states:
            failed[unit.task_id] = next((o.error for o in outcomes if o.error), "The refresh failed")
        elif broken := reads[unit.task_id] & failed.keys():
            failed[unit.task_id] = _left_out(unit, broken)
        elif not states or "RUNNING" in states:
            return None
    return failed


def _left_out(unit: Unit, failed: Iterable[str]) -> str:
    return f"{unit.task_id} was not refreshed: it reads {', '.join(sorted(failed))}, which failed"


def _idle(
    due: Sequence[Unit], reads: Mapping[str, set[str]], skip: Mapping[str, str], halted: Mapping[str, str]
) -> list[Unit]:
    """Those of the units, upstream first, in which nothing has changed, nor is going to by what they read."""
    busy = set(halted)
    for unit in due:
        if unit.task_id not in skip or reads[unit.task_id] & busy:
            busy.add(unit.task_id)
    return [unit for unit in due if unit.task_id not in busy]


def _moved(run: FencedRun, idle: Sequence[Unit], reads: Mapping[str, set[str]]) -> set[str]:
    """Move the data timestamps of units without changes, side by side too; the task ids of those that were moved."""
    batches = {batch[0].task_id: batch for batch in together(idle)}
    home = {unit.task_id: first for first, batch in batches.items() for unit in batch}
    between = {
        first: {home[read] for unit in batch for read in reads[unit.task_id] if read in home} - {first}
        for first, batch in batches.items()
    }
    moved: set[str] = set()

    def move(first: str) -> None:
        if run.refresh_idle(batches[first]):
            moved.update(unit.task_id for unit in batches[first])

    run.side_by_side(list(batches), between, move)
    return moved


def _upstream(units: Sequence[Unit], states: Mapping[str, TableState]) -> dict[str, set[str]]:
    """By task id: the units that each one reads, by its declaration or, through a view, by PostgreSQL's catalog."""
    home = {name: unit.task_id for unit in units for name in unit.names}
    found = {}
    for unit in units:
        read = {source for name in unit.names if name in states for source in states[name].stream_tables}
        found[unit.task_id] = {*unit.upstream, *(home[source] for source in read if source in home)} - {unit.task_id}
    return found


def _upstream_first(units: Sequence[Unit], reads: Mapping[str, set[str]]) -> list[Unit]:
    """The units, each after those it reads. Where views close a circle of units the declared order stays."""
    position = {unit.task_id: number for number, unit in enumerate(units)}
    order: list[Unit] = []
    sorter = TopologicalSorter({unit.task_id: reads[unit.task_id] for unit in units})
    try:
        sorter.prepare()
    except CycleError:
        return list(units)
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=position.__getitem__)
        order.extend(units[position[task_id]] for task_id in ready)
        sorter.done(*ready)
    return order
