"""Granularity `graph`: one task refreshes all that is due in one warm session; light tasks show each one's state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import AssetAlias, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowSkipException, DownstreamTasksSkipped

from airflow_provider_pgtrickle.errors import SURROUNDINGS, PgTrickleError
from airflow_provider_pgtrickle.links import AssetLink, ExplainLink, RefreshHistoryLink
from airflow_provider_pgtrickle.names import QualifiedName
from airflow_provider_pgtrickle.operators import edges, outcome
from airflow_provider_pgtrickle.operators.database import hook_of
from airflow_provider_pgtrickle.operators.faults import as_airflow
from airflow_provider_pgtrickle.operators.fenced_run import FencedRun
from airflow_provider_pgtrickle.operators.plan import due_units
from airflow_provider_pgtrickle.operators.readiness import NO_CHANGE
from airflow_provider_pgtrickle.stream_table import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow.sdk import Asset, Context

    from airflow_provider_pgtrickle.operators.outcome import Outcome
    from airflow_provider_pgtrickle.operators.unit import Unit
    from airflow_provider_pgtrickle.schedule import Effective


class StreamTableGraphRefreshOperator(BaseOperator):
    """Refreshes the units that are due and changed, one after the other, in one Spark session or application.

    A unit that fails stops what reads it and nothing else; the state tasks show which one it was. Those of units that
    nothing happened to are skipped from here: each would cost a process of a second or more to say so itself.
    """

    template_fields: Sequence[str] = ("postgres_conn_id", "spark_conn_id")
    ui_color = "#d9ead3"

    def __init__(
        self,
        *,
        units: Sequence[Unit],
        schedules: Mapping[str, Effective],
        postgres_conn_id: str = DEFAULT_CONN_ID,
        spark_conn_id: str = "spark_default",
        spark_args: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.units = tuple(units)
        self.schedules = dict(schedules)
        self.postgres_conn_id = postgres_conn_id
        self.spark_conn_id = spark_conn_id
        self.spark_args = dict(spark_args or {})
        self._run: FencedRun | None = None

    def execute(self, context: Context) -> dict[str, Any]:
        from airflow_provider_pgtrickle import metrics

        with as_airflow():
            run = self._run = FencedRun(hook_of(self.postgres_conn_id), context)
            states, verdict = due_units(run.database, self.units, self.schedules, context)
            reads = edges.upstream(self.units, states)
            due = [
                unit
                for unit in edges.upstream_first(self.units, reads)
                if verdict.skip.get(unit.task_id, NO_CHANGE) == NO_CHANGE
            ]
            run.end_earlier_rounds(context)
            changed = {name for name, state in states.items() if state.has_work}
            failed = self._refresh(run, due, reads, changed)
            outcomes = run.outcomes()
        metrics.record(o.result for o in outcomes.values())
        for name, o in sorted(outcomes.items()):
            self.log.info("%s: %s", name, o.summary)
        # The state tasks fail where a unit did: this task is done when everything possible was.
        summary = {"run_token": run.token, "refreshed": len(outcomes), "failed": sorted(failed)}
        told = {name for name, o in outcomes.items() if not o.idle}
        idle = sorted(
            unit.task_id for unit in self.units if unit.task_id not in failed and not told.intersection(unit.names)
        )
        if not idle:
            return summary
        # Leaving by this exception, a task pushes nothing by itself.
        context["ti"].xcom_push(key="return_value", value=summary)
        raise DownstreamTasksSkipped(tasks=idle)

    def _refresh(
        self, run: FencedRun, due: Sequence[Unit], reads: Mapping[str, set[str]], changed: set[str]
    ) -> set[str]:
        """The task ids of the units that failed, or wait for one that did."""
        failed: set[str] = set()
        wanted: dict[str, Unit] = {}
        for unit in due:
            if reads[unit.task_id] & failed:
                failed.add(unit.task_id)
            elif changed.intersection(unit.names) or reads[unit.task_id] & wanted.keys():
                wanted[unit.task_id] = unit
            else:
                try:
                    if not run.confirm([table.qualified for table in unit.tables]):
                        wanted[unit.task_id] = unit
                except SURROUNDINGS:
                    raise
                except PgTrickleError as error:
                    self.log.error("%s: %s", unit.task_id, error)
                    failed.add(unit.task_id)
        return failed | self._compute(run, wanted, reads) if wanted else failed

    def _compute(self, run: FencedRun, wanted: Mapping[str, Unit], reads: Mapping[str, set[str]]) -> set[str]:
        """Those of the wanted that Spark failed at; what it never got to is an error of the whole task."""
        before = max((o.refresh_id for o in run.outcomes().values()), default=0)
        run.open(self.spark_conn_id, self.spark_args)
        try:
            run.refresh([[table.name for table in unit.tables] for unit in wanted.values()])
        except SURROUNDINGS:
            raise
        except PgTrickleError as error:
            told = {name: o for name, o in run.outcomes().items() if o.refresh_id > before}
            failed = _failed(told, wanted.values(), reads)
            if failed is None:
                raise
            self.log.error("%s", error)
            return failed
        finally:
            run.close()
        return set()

    def on_kill(self) -> None:
        if self._run is not None:
            self._run.kill()


def _failed(told: Mapping[str, Outcome], units: Iterable[Unit], reads: Mapping[str, set[str]]) -> set[str] | None:
    """By what the history tells; None where a unit neither ended nor waits for one that failed."""
    failed: set[str] = set()
    for unit in units:
        states = {told[name].result.status for name in unit.names if name in told}
        if reads[unit.task_id] & failed or "FAILED" in states:
            failed.add(unit.task_id)
        elif not states or "RUNNING" in states:
            return None
    return failed


class StreamTableStateOperator(BaseOperator):
    """Shows what the graph's refresh did to one unit: done, skipped or failed; updates its assets."""

    template_fields: Sequence[str] = ("tables", "postgres_conn_id")
    operator_extra_links = (RefreshHistoryLink(), ExplainLink(), AssetLink())
    ui_color = "#eef5ec"

    def __init__(
        self,
        *,
        tables: Sequence[str],
        refresh_task_id: str = "refresh",
        postgres_conn_id: str = DEFAULT_CONN_ID,
        assets: Mapping[str, Asset] | None = None,
        **kwargs: Any,
    ) -> None:
        self.assets = dict(assets or {})
        self.alias = AssetAlias(f"pgtrickle {postgres_conn_id} {', '.join(tables)}"[:1500]) if self.assets else None
        if self.alias is not None:
            kwargs["outlets"] = [*(kwargs.get("outlets") or ()), self.alias]
        super().__init__(**kwargs)
        self.tables = tables
        self.refresh_task_id = refresh_task_id
        self.postgres_conn_id = postgres_conn_id

    @property
    def stream_tables(self) -> list[str]:
        """For the links."""
        return [str(QualifiedName.parse(table)) for table in self.tables]

    def execute(self, context: Context) -> dict[str, Any]:
        done = context["ti"].xcom_pull(task_ids=self.refresh_task_id) or {}
        if self.task_id in done.get("failed", ()):
            raise AirflowException(f"The refresh failed: see the log of task {self.refresh_task_id!r}")
        if not done.get("run_token"):
            raise AirflowSkipException("no change")
        with (
            as_airflow(),
            hook_of(self.postgres_conn_id).get_client() as client,
            client.database.transaction() as conn,
        ):
            outcomes = outcome.read(conn, done["run_token"], self.stream_tables)
        if self.alias is not None:
            outcome.emit(context, self.alias, self.assets, outcomes)
        if all(o.idle for o in outcomes.values()):
            raise AirflowSkipException("not due or no change")
        return {name: o.summary for name, o in sorted(outcomes.items())}
