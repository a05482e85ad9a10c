"""One connected component as an Airflow DAG: `plan`, then its units, level by level."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from airflow.sdk import (
    DAG,
    Asset,
    AssetAlias,
    AssetAny,
    AssetOrTimeSchedule,
    BaseOperator,
    CronTriggerTimetable,
    DeltaTriggerTimetable,
    MultipleCronTriggerTimetable,
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
from airflow_provider_pgtrickle.stream_table import StreamTable


class Declared(Protocol):
    """What a `StreamTableGraph` says of its DAGs."""

    @property
    def granularity(self) -> str: ...

    postgres_conn_id: str
    spark_conn_id: str
    spark_args: dict[str, Any]
    default_args: dict[str, Any]
    dag_args: dict[str, Any]
    tags: tuple[str, ...]
    pool: str | None
    deadline: timedelta | None
    follows: tuple[Asset, ...]
    behind: Callable[[DAG, Component], object] | None


#: Airflow needs a start date; the content of stream tables doesn't depend on it.
_START = datetime(2024, 1, 1, tzinfo=UTC)
#: A hyphen can't occur in a table's task id.
_VERIFY = "verify-contents"
#: Periods in seconds that divide the day and that a cron expression can say.
_DIVISORS = tuple(60 * m for m in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1440))
#: How often a DAG looks whether writers still maintain its tables, if it has no others.
_WATCH = Every(300)
_DEFAULT_ARGS: dict[str, Any] = {"retries": 2, "retry_delay": timedelta(seconds=30)}


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
    dag = DAG(
        component.dag_id,
        # Two runs at once would only wait for each other's locks, and nothing is lost with a missed tick.
        max_active_runs=1,
        catchup=False,
        default_args={**_DEFAULT_ARGS, **graph.default_args},
        tags=sorted({"pgtrickle", *graph.tags}),
        **options,
    )
    plan = StreamTablePlanOperator(
        task_id="plan",
        dag=dag,
        tables=component.tables,
        units=component.units,
        schedules=dict(component.schedules),
        skips=graph.granularity == "unit",
        verifies=_VERIFY if _verified(component) else None,
        postgres_conn_id=graph.postgres_conn_id,
        # Of tables that writers change between two runs.
        outlets=[AssetAlias(f"pgtrickle {graph.postgres_conn_id} {component.dag_id} written")]
        if any(table.is_immediate for table in component.tables)
        else [],
        doc_md="Creates or replaces what is declared, then skips what is not due or has no change.",
    )
    if graph.granularity == "graph":
        _one_task_for_all(graph, component, dag, plan)
    else:
        _one_task_each(graph, component, dag, plan)
    if _verified(component):
        _verify(graph, component, dag, plan)
    if graph.behind is not None:
        graph.behind(dag, component)
    return dag


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


def _one_task_each(graph: Declared, component: Component, dag: DAG, plan: BaseOperator) -> None:
    tasks: dict[str, BaseOperator] = {}
    groups = _groups(component, dag)
    for unit in component.units:
        tasks[unit.task_id] = StreamTableRefreshOperator(
            tables=[table.name for table in unit.tables],
            assets={str(table.qualified): table.asset for table in unit.tables},
            spark_conn_id=graph.spark_conn_id,
            spark_args=graph.spark_args,
            postgres_conn_id=graph.postgres_conn_id,
            # A skipped table upstream is up to date, so only a failed one stops this task.
            trigger_rule=TriggerRule.NONE_FAILED,
            **_common(component, unit, dag, groups[unit.level]),
            **_pool(graph),
        )
    _wire(component, tasks, plan)


def _one_task_for_all(graph: Declared, component: Component, dag: DAG, plan: BaseOperator) -> None:
    refresh = StreamTableGraphRefreshOperator(
        task_id="refresh",
        dag=dag,
        units=component.units,
        schedules=component.schedules,
        postgres_conn_id=graph.postgres_conn_id,
        spark_conn_id=graph.spark_conn_id,
        spark_args=graph.spark_args,
        assets={str(table.qualified): table.asset for table in component.tables},
        # `outcomes` is mapped over its return value.
        do_xcom_push=True,
        doc_md="Refreshes all that is due in one Spark session; the tasks after it show each table's state.",
        **_pool(graph),
    )
    plan >> refresh
    StreamTableOutcomeOperator.partial(
        task_id="outcomes",
        dag=dag,
        postgres_conn_id=graph.postgres_conn_id,
        outlets=[AssetAlias(f"pgtrickle {graph.postgres_conn_id} {component.dag_id}")],
        map_index_template="{{ task.title }}",
        doc_md="Updates the assets of what changed, and fails by name for what failed or reads what did.",
    ).expand_kwargs(refresh.output)
    groups = _groups(component, dag)
    tasks: dict[str, BaseOperator] = {}
    for unit in component.units:
        tasks[unit.task_id] = StreamTableStateOperator(
            # All run when the refresh is done; the edges between tables are only for the graph view.
            trigger_rule=TriggerRule.ONE_SUCCESS,
            **_common(component, unit, dag, groups[unit.level]),
        )
    _wire(component, tasks, refresh)
    refresh.set_downstream([tasks[unit.task_id] for unit in component.units if unit.upstream])


def _verified(component: Component) -> list[StreamTable]:
    return [table for table in component.tables if table.verify_every]


def _verify(graph: Declared, component: Component, dag: DAG, plan: BaseOperator) -> None:
    """Add a task that verifies all tables with `verify_every` after their refreshes, if `plan` finds one due."""
    tables = {str(table.qualified): table for table in _verified(component)}
    task = StreamTableVerifyOperator(
        task_id=_VERIFY,
        dag=dag,
        tables=list(tables),
        only_due=True,
        postgres_conn_id=graph.postgres_conn_id,
        trigger_rule=TriggerRule.NONE_FAILED,
        doc_md="Compares contents with their queries when `verify_every` has passed; fails if one differs.",
        **_pool(graph),
    )
    after = [unit.task_id for unit in component.units if tables.keys() & set(unit.names)]
    task.set_upstream([plan, *map(dag.get_task, after if graph.granularity == "unit" else ["refresh"])])


def _common(component: Component, unit: Unit, dag: DAG, group: TaskGroup | None) -> dict[str, Any]:
    return {
        "task_id": unit.task_id,
        "dag": dag,
        "task_group": group,
        "doc_md": documentation.of_unit(component, unit),
    }


def _pool(graph: Declared) -> dict[str, Any]:
    return {"pool": graph.pool} if graph.pool else {}


def _groups(component: Component, dag: DAG) -> dict[int, TaskGroup | None]:
    """A task group for each level, or none if there is only one. A table's task id can't have a hyphen."""
    levels = sorted({unit.level for unit in component.units})
    if len(levels) == 1:
        return {levels[0]: None}
    return {level: TaskGroup(f"level-{level}", dag=dag, prefix_group_id=False) for level in levels}


def _wire(component: Component, tasks: dict[str, BaseOperator], first: BaseOperator) -> None:
    for unit in component.units:
        task = tasks[unit.task_id]
        if unit.upstream:
            task.set_upstream([tasks[upstream] for upstream in unit.upstream])
        else:
            task.set_upstream(first)
