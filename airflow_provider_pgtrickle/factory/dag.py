"""A graph's tables as tasks: `plan`, then its units, each after those it reads; as a DAG or in a group of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import (
    DAG,
    Asset,
    AssetAny,
    AssetOrTimeSchedule,
    BaseOperator,
    CronTriggerTimetable,
    DeltaTriggerTimetable,
    MultipleCronTriggerTimetable,
    Param,
    TaskGroup,
    TriggerRule,
)
from airflow.sdk.bases.timetable import BaseTimetable

from airflow_provider_pgtrickle.engine.schedule import Cron, Effective, Every
from airflow_provider_pgtrickle.factory import documentation
from airflow_provider_pgtrickle.factory.components import Component
from airflow_provider_pgtrickle.operators.plan import StreamTablePlanOperator
from airflow_provider_pgtrickle.operators.refresh import StreamTableRefreshOperator
from airflow_provider_pgtrickle.operators.refresh_graph import StreamTableGraphRefreshOperator
from airflow_provider_pgtrickle.operators.unit import Unit
from airflow_provider_pgtrickle.operators.unit_state import StreamTableOutcomeOperator, StreamTableStateOperator
from airflow_provider_pgtrickle.operators.verify import StreamTableVerifyOperator
from airflow_provider_pgtrickle.stream_table import Home, StreamTable, asset_of


class Declared(Protocol):
    """What a `StreamTableGraph` says of its DAGs."""

    @property
    def granularity(self) -> str: ...

    @property
    def home(self) -> Home: ...

    @property
    def declared(self) -> tuple[str, ...]: ...

    name: str
    file: str
    postgres_conn_id: str
    spark_conn_id: str
    on_removed: Literal["keep", "gate", "drop"]
    moved_from: str | None
    spark_args: dict[str, Any]
    default_args: dict[str, Any]
    dag_args: dict[str, Any]
    tags: tuple[str, ...]
    pool: str | None
    deadline: timedelta | None
    follows: tuple[Asset, ...]
    behind: Callable[[Place, Component], object] | None


#: Airflow needs a start date; the content of stream tables doesn't depend on it.
_START = datetime(2024, 1, 1, tzinfo=UTC)
#: A hyphen can't occur in a table's task id, so these are nobody's.
_VERIFY = "verify-contents"
_DONE = "up-to-date"
#: Periods in seconds that divide the day and that a cron expression can say.
_DIVISORS = tuple(60 * m for m in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1440))
#: How often a DAG looks whether writers still maintain its tables, if it has no others.
_WATCH = Every(300)
_DEFAULT_ARGS: dict[str, Any] = {"retries": 2, "retry_delay": timedelta(seconds=30)}


@dataclass(frozen=True)
class Place:
    """Where tasks are put: a DAG, or a task group in it."""

    dag: DAG
    group: TaskGroup | None = None
    due_only: bool | None = None
    """Whether each table waits until it is due; None: in the runs of the schedule, which is made of the tables'."""

    @property
    def prefix(self) -> str:
        """What its tasks' ids begin with."""
        return self.group.child_id("") if self.group is not None else ""

    def named(self, name: str, title: str | None = None) -> dict[str, Any]:
        """The arguments that put a task there. The group adds its prefix to the id by itself."""
        return {"task_id": name, "task_display_name": title or name, "dag": self.dag, "task_group": self.group}


def build(graph: Declared, component: Component) -> DAG:
    """The DAG. Everything in it is sorted, so that the same declarations serialize to the same bytes."""
    count = len(component.tables)
    options: dict[str, Any] = {
        "schedule": _schedule(graph, component),
        "start_date": _START,
        "doc_md": documentation.of_component(component),
        "description": f"Keeps {count} stream table{'s' if count > 1 else ''} up to date",
        **_deadline(graph, component),
        **graph.dag_args,
    }
    options["params"] = {**_params(), **(graph.dag_args.get("params") or {})}
    dag = DAG(
        component.dag_id,
        # Two runs at once would only wait for each other's locks, and nothing is lost with a missed tick.
        max_active_runs=1,
        catchup=False,
        default_args={**_DEFAULT_ARGS, **graph.default_args},
        tags=sorted({"pgtrickle", *graph.tags}),
        **options,
    )
    fill(graph, component, Place(dag))
    return dag


def fill(graph: Declared, component: Component, place: Place) -> None:
    """Put the tasks of these tables there. In a task group their ids get its prefix."""
    component = component.under(place.prefix)
    verified = [table for table in component.tables if table.verify_every]
    plan = StreamTablePlanOperator(
        **place.named("plan"),
        tables=component.tables,
        units=component.units,
        schedules=dict(component.schedules),
        graph=graph.name,
        file=graph.file,
        declared=graph.declared,
        on_removed=graph.on_removed,
        moved_from=graph.moved_from,
        due_only=place.due_only,
        skips=graph.granularity == "unit",
        verifies=f"{place.prefix}{_VERIFY}" if verified else None,
        postgres_conn_id=graph.postgres_conn_id,
        # Of tables that writers change between two runs.
        outlets=[table.asset for table in component.tables if table.is_immediate],
        doc_md="Creates or replaces what is declared, then skips what is not due or has no change.",
    )
    if graph.granularity == "graph":
        ends = _one_task_for_all(graph, component, place, plan)
    else:
        ends = _one_task_each(graph, component, place, plan)
    if verified:
        _verify(graph, component, place, verified, [plan, *ends])
    if graph.behind is not None:
        graph.behind(place, component)
    if place.group is not None:
        leaves = list(place.group.get_leaves())
        # What comes after the group would be skipped with the tables that have no change.
        done = EmptyOperator(**place.named(_DONE), trigger_rule=TriggerRule.NONE_FAILED)
        done.set_upstream(leaves)


def _params() -> dict[str, Param]:
    """What a person who triggers the DAG may ask for."""
    return {
        "full_refresh": Param(
            False, type="boolean", title="Full refresh", description="Compute the tables anew instead of by differences"
        ),
        "tables": Param(
            None,
            type=["null", "string"],
            title="Tables",
            description="Only these: `totals`, `+totals` with what feeds it, `totals+` with what reads it, `tag:sales`",
        ),
    }


def _schedule(graph: Declared, component: Component) -> BaseTimetable:
    """The clock of its tables, and the assets that it follows."""
    clock = _timetable(_clocks(component))
    return AssetOrTimeSchedule(timetable=clock, assets=AssetAny(*graph.follows)) if graph.follows else clock


def _clocks(component: Component) -> list[Effective]:
    """The schedules of its tables. One that writers maintain has none."""
    clocks = [component.schedules[str(table.qualified)] for table in component.tables if not table.is_immediate]
    return clocks or [_WATCH]


def _timetable(schedules: Iterable[Effective]) -> BaseTimetable:
    """How often the DAG ticks, aligned to the clock, in UTC: at its shortest duration and at each cron expression."""
    found = set(schedules)
    crons = sorted(s.expression for s in found if isinstance(s, Cron))
    durations = [s.seconds for s in found if isinstance(s, Every)]
    if durations:
        smallest = Every(min(durations))
        if smallest.cron is None and (not crons or smallest.seconds < 60):
            return DeltaTriggerTimetable(timedelta(seconds=smallest.seconds))
        crons = sorted({_clock_aligned(smallest), *crons})
    if len(crons) == 1:
        return CronTriggerTimetable(crons[0], timezone="UTC")
    return MultipleCronTriggerTimetable(*crons, timezone="UTC")


def _clock_aligned(every: Every) -> str:
    """The duration, or the next shorter one that divides the day, as a cron expression."""
    fitting = every if every.cron else Every(max(period for period in _DIVISORS if period <= every.seconds))
    assert fitting.cron is not None
    return fitting.cron


def _deadline(graph: Declared, component: Component) -> dict[str, Any]:
    """An alert `stale_data` for the tables that nobody reads, where a run isn't done in time.

    The triggerer sends it, whatever holds the run up. The time counts from the queueing, because a run by hand or by
    an asset has no logical date.
    """
    if graph.deadline is None:
        return {}
    from airflow.sdk.definitions.callback import AsyncCallback
    from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

    from airflow_provider_pgtrickle.engine.catalog.alerts import Event

    ends = [name for name in component.schedules if not component.graph.downstream(name)]
    alert = DeadlineAlert(
        DeadlineReference.DAGRUN_QUEUED_AT,
        graph.deadline,
        # The notifier is named by its path, so that parsing a DAG file doesn't import it.
        AsyncCallback(
            "airflow_provider_pgtrickle.notifications.AlertNotifier",
            {
                "event": str(Event.STALE_DATA),
                "stream_table": ", ".join(ends),
                "text": f"{{{{ dag_run.dag_id }}}} {{{{ dag_run.dag_run_id }}}} was not done within {graph.deadline}",
                "postgres_conn_id": graph.postgres_conn_id,
            },
        ),
    )
    return {"deadline": alert}


def _one_task_each(graph: Declared, component: Component, place: Place, plan: BaseOperator) -> list[BaseOperator]:
    tasks: dict[str, BaseOperator] = {}
    for unit in component.units:
        tasks[unit.task_id] = StreamTableRefreshOperator(
            tables=[table.name for table in unit.tables],
            assets={str(table.qualified): table.asset for table in unit.tables},
            inlets=_sources(graph, unit.tables),
            spark_conn_id=graph.spark_conn_id,
            spark_args=graph.spark_args,
            postgres_conn_id=graph.postgres_conn_id,
            # A skipped table upstream is up to date, so only a failed one stops this task.
            trigger_rule=TriggerRule.NONE_FAILED,
            **_common(component, unit, place),
            **_pool(graph),
        )
    _wire(component, tasks, plan)
    return [task for unit, task in zip(component.units, tasks.values(), strict=True) if _is_verified(unit)]


def _one_task_for_all(graph: Declared, component: Component, place: Place, plan: BaseOperator) -> list[BaseOperator]:
    refresh = StreamTableGraphRefreshOperator(
        **place.named("refresh"),
        units=component.units,
        schedules=component.schedules,
        postgres_conn_id=graph.postgres_conn_id,
        spark_conn_id=graph.spark_conn_id,
        spark_args=graph.spark_args,
        assets={str(table.qualified): table.asset for table in component.tables},
        inlets=_sources(graph, component.tables),
        due_only=place.due_only,
        # `outcomes` is mapped over its return value.
        do_xcom_push=True,
        doc_md="Refreshes all that is due in one Spark session; the tasks after it show each table's state.",
        **_pool(graph),
    )
    plan >> refresh
    StreamTableOutcomeOperator.partial(
        **place.named("outcomes"),
        postgres_conn_id=graph.postgres_conn_id,
        outlets=[table.asset for table in component.tables],
        map_index_template="{{ task.title }}",
        doc_md="Updates the assets of what changed, and fails by name for what failed or reads what did.",
    ).expand_kwargs(refresh.output)
    tasks: dict[str, BaseOperator] = {}
    for unit in component.units:
        tasks[unit.task_id] = StreamTableStateOperator(
            # All run when the refresh is done; the edges between tables are only for the graph view.
            trigger_rule=TriggerRule.ONE_SUCCESS,
            **_common(component, unit, place),
        )
    _wire(component, tasks, refresh)
    refresh.set_downstream([tasks[unit.task_id] for unit in component.units if unit.upstream])
    return [refresh]


def _is_verified(unit: Unit) -> bool:
    return any(table.verify_every for table in unit.tables)


def _verify(
    graph: Declared, component: Component, place: Place, tables: list[StreamTable], after: list[BaseOperator]
) -> None:
    """Add a task that verifies all tables with `verify_every` after their refreshes, if `plan` finds one due."""
    task = StreamTableVerifyOperator(
        **place.named(_VERIFY),
        tables=[str(table.qualified) for table in tables],
        only_due=True,
        postgres_conn_id=graph.postgres_conn_id,
        trigger_rule=TriggerRule.NONE_FAILED,
        doc_md="Compares contents with their queries when `verify_every` has passed; fails if one differs.",
        **_pool(graph),
    )
    task.set_upstream(after)


def _common(component: Component, unit: Unit, place: Place) -> dict[str, Any]:
    return {
        **place.named(unit.task_id.removeprefix(place.prefix), unit.title),
        "doc_md": documentation.of_unit(component, unit),
    }


def _sources(graph: Declared, tables: Sequence[StreamTable]) -> list[Asset]:
    """What they read, by their queries' text, but for themselves."""
    read = {name for table in tables for name in table.reads} - {table.qualified for table in tables}
    return [asset_of(graph.home, name) for name in sorted(read)]


def _pool(graph: Declared) -> dict[str, Any]:
    return {"pool": graph.pool} if graph.pool else {}


def _wire(component: Component, tasks: dict[str, BaseOperator], first: BaseOperator) -> None:
    for unit in component.units:
        task = tasks[unit.task_id]
        if unit.upstream:
            task.set_upstream([tasks[upstream] for upstream in unit.upstream])
        else:
            task.set_upstream(first)
