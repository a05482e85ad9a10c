"""One connected part as an Airflow DAG: `plan`, then its units, level by level."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, AssetAlias, BaseOperator, TaskGroup, TriggerRule

from airflow_provider_pgtrickle.factory import documentation
from airflow_provider_pgtrickle.factory.parts import Part
from airflow_provider_pgtrickle.factory.timetable import timetable
from airflow_provider_pgtrickle.operators.plan import StreamTablePlanOperator
from airflow_provider_pgtrickle.operators.refresh import StreamTableRefreshOperator
from airflow_provider_pgtrickle.operators.refresh_graph import StreamTableGraphRefreshOperator
from airflow_provider_pgtrickle.operators.unit import Unit
from airflow_provider_pgtrickle.operators.unit_state import StreamTableOutcomeOperator, StreamTableStateOperator
from airflow_provider_pgtrickle.operators.verify import StreamTableVerifyOperator
from airflow_provider_pgtrickle.stream_table import StreamTable

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.factory.stream_table_graph import StreamTableGraph

#: Airflow needs a start; what stream tables hold does not depend on it.
_START = datetime(2024, 1, 1, tzinfo=UTC)
#: A hyphen can't occur in a table's task id.
_VERIFY = "verify-contents"
_DEFAULT_ARGS: dict[str, Any] = {"retries": 2, "retry_delay": timedelta(seconds=30)}


def build(graph: StreamTableGraph, part: Part) -> DAG:
    """The DAG. Everything in it is sorted: the same declarations give the same bytes."""
    options: dict[str, Any] = {
        "schedule": timetable(part.schedules.values()),
        "start_date": _START,
        "doc_md": documentation.of_part(part),
        "description": f"Keeps {len(part.tables)} stream table{'s' if len(part.tables) > 1 else ''} up to date",
        **_deadline(graph, part),
        **graph.dag_args,
    }
    dag = DAG(
        part.dag_id,
        # Two runs at once would only wait for each other's locks, and a missed tick has nothing to catch up.
        max_active_runs=1,
        catchup=False,
        default_args={**_DEFAULT_ARGS, **graph.default_args},
        tags=sorted({"pgtrickle", *graph.tags}),
        **options,
    )
    plan = StreamTablePlanOperator(
        task_id="plan",
        dag=dag,
        tables=part.tables,
        units=part.units,
        schedules=dict(part.schedules),
        skips=graph.granularity == "unit",
        verifies=_VERIFY if _verified(part) else None,
        postgres_conn_id=graph.postgres_conn_id,
        doc_md="Creates or replaces what is declared, then skips what is not due or has no change.",
    )
    if graph.granularity == "graph":
        _one_task_for_all(graph, part, dag, plan)
    else:
        _one_task_each(graph, part, dag, plan)
    if _verified(part):
        _verify(graph, part, dag, plan)
    return dag


def _deadline(graph: StreamTableGraph, part: Part) -> dict[str, Any]:
    if graph.deadline is None:
        return {}
    from airflow_provider_pgtrickle.factory.deadline import deadline_alert

    return {"deadline": deadline_alert(part, graph.deadline, graph.postgres_conn_id)}


def _one_task_each(graph: StreamTableGraph, part: Part, dag: DAG, plan: BaseOperator) -> None:
    tasks: dict[str, BaseOperator] = {}
    groups = _groups(part, dag)
    for unit in part.units:
        tasks[unit.task_id] = StreamTableRefreshOperator(
            tables=[table.name for table in unit.tables],
            assets={str(table.qualified): table.asset for table in unit.tables},
            spark_conn_id=graph.spark_conn_id,
            spark_args=graph.spark_args,
            postgres_conn_id=graph.postgres_conn_id,
            # A skipped table upstream is up to date; only a failed one stops what reads it.
            trigger_rule=TriggerRule.NONE_FAILED,
            **_common(part, unit, dag, groups[unit.level]),
            **_pool(graph),
        )
    _wire(part, tasks, plan)


def _one_task_for_all(graph: StreamTableGraph, part: Part, dag: DAG, plan: BaseOperator) -> None:
    refresh = StreamTableGraphRefreshOperator(
        task_id="refresh",
        dag=dag,
        units=part.units,
        schedules=part.schedules,
        postgres_conn_id=graph.postgres_conn_id,
        spark_conn_id=graph.spark_conn_id,
        spark_args=graph.spark_args,
        assets={str(table.qualified): table.asset for table in part.tables},
        # It is mapped over.
        do_xcom_push=True,
        doc_md="Refreshes all that is due in one Spark session; the tasks after it show each table's state.",
        **_pool(graph),
    )
    plan >> refresh
    StreamTableOutcomeOperator.partial(
        task_id="outcomes",
        dag=dag,
        postgres_conn_id=graph.postgres_conn_id,
        outlets=[AssetAlias(f"pgtrickle {graph.postgres_conn_id} {part.dag_id}")],
        map_index_template="{{ task.title }}",
        doc_md="Updates the assets of what changed, and fails by name for what failed or reads what did.",
    ).expand_kwargs(refresh.output)
    groups = _groups(part, dag)
    tasks: dict[str, BaseOperator] = {}
    for unit in part.units:
        tasks[unit.task_id] = StreamTableStateOperator(
            # All at once when the refresh is done: the edges between tables are there to be seen.
            trigger_rule=TriggerRule.ONE_SUCCESS,
            **_common(part, unit, dag, groups[unit.level]),
        )
    _wire(part, tasks, refresh)
    refresh.set_downstream([tasks[unit.task_id] for unit in part.units if unit.upstream])


def _verified(part: Part) -> list[StreamTable]:
    return [table for table in part.tables if table.verify_every]


def _verify(graph: StreamTableGraph, part: Part, dag: DAG, plan: BaseOperator) -> None:
    """One task for all tables that ask for it, after their refreshes; `plan` skips it until one is due."""
    tables = {str(table.qualified): table for table in _verified(part)}
    task = StreamTableVerifyOperator(
        task_id=_VERIFY,
        dag=dag,
        tables=list(tables),
        only_due=True,
        postgres_conn_id=graph.postgres_conn_id,
        trigger_rule=TriggerRule.NONE_FAILED,
        doc_md="Holds contents against their queries, where `verify_every` has passed; fails where one differs.",
        **_pool(graph),
    )
    after = [unit.task_id for unit in part.units if tables.keys() & set(unit.names)]
    task.set_upstream([plan, *map(dag.get_task, after if graph.granularity == "unit" else ["refresh"])])


def _common(part: Part, unit: Unit, dag: DAG, group: TaskGroup | None) -> dict[str, Any]:
    return {
        "task_id": unit.task_id,
        "dag": dag,
        "task_group": group,
        "doc_md": documentation.of_unit(part, unit),
    }


def _pool(graph: StreamTableGraph) -> dict[str, Any]:
    return {"pool": graph.pool} if graph.pool else {}


def _groups(part: Part, dag: DAG) -> dict[int, TaskGroup | None]:
    """One group for each level; none where there is but one. A hyphen can't occur in a table's task id."""
    levels = sorted({unit.level for unit in part.units})
    if len(levels) == 1:
        return {levels[0]: None}
    return {level: TaskGroup(f"level-{level}", dag=dag, prefix_group_id=False) for level in levels}


def _wire(part: Part, tasks: dict[str, BaseOperator], first: BaseOperator) -> None:
    for unit in part.units:
        task = tasks[unit.task_id]
        if unit.upstream:
            task.set_upstream([tasks[upstream] for upstream in unit.upstream])
        else:
            task.set_upstream(first)
