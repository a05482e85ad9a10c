"""Refresh one unit of stream tables, on Spark or in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from airflow_provider_pgtrickle.engine.errors import PgTrickleError, RefreshError, UnknownStreamTable
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.links import AssetLink, ExplainLink, RefreshHistoryLink
from airflow_provider_pgtrickle.operators import outcome, readiness
from airflow_provider_pgtrickle.operators.asked import Asked, is_true
from airflow_provider_pgtrickle.operators.database import as_airflow, hook_of
from airflow_provider_pgtrickle.operators.fenced_run import FencedRun
from airflow_provider_pgtrickle.operators.outcome import Outcome
from airflow_provider_pgtrickle.stream_table import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Asset, Context

    from airflow_provider_pgtrickle.operators.readiness import TableState


class StreamTableRefreshOperator(BaseOperator):
    """Refreshes stream tables together: one snapshot, one commit.

    The task is skipped, without starting Spark, if nothing changed. With placement `auto` or `database` it asks for
    Spark only if something is to be computed there. Killing it revokes its lease in PostgreSQL, so that
    a driver that survives can't commit.

    :param tables: their names, templated
    :param spark_conn_id: a connection of type `spark` or `spark_connect`; the type chooses the back end
    :param force_full: recompute everything; still only what differs is written
    :param assets: the asset of each table by `schema.name`, updated when its rows changed
    :param spark_args: arguments of `SparkSubmitHook`, such as `conf` and `executor_memory`
    """

    template_fields: Sequence[str] = ("tables", "force_full", "postgres_conn_id", "spark_conn_id")
    operator_extra_links = (RefreshHistoryLink(), ExplainLink(), AssetLink())
    ui_color = "#d9ead3"

    def __init__(
        self,
        *,
        tables: Sequence[str],
        postgres_conn_id: str = DEFAULT_CONN_ID,
        spark_conn_id: str = "spark_default",
        force_full: bool | str = False,
        assets: Mapping[str, Asset] | None = None,
        spark_args: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.assets = dict(assets or {})
        if self.assets:
            kwargs["outlets"] = [*(kwargs.get("outlets") or ()), *self.assets.values()]
        super().__init__(**kwargs)
        self.tables = tables
        self.postgres_conn_id = postgres_conn_id
        self.spark_conn_id = spark_conn_id
        self.force_full = force_full
        self.spark_args = dict(spark_args or {})
        self._run: FencedRun | None = None
        self._outcomes: dict[str, Outcome] = {}

    @property
    def stream_tables(self) -> list[str]:
        """The tables' full names, for the links."""
        return [str(table) for table in self._parsed]

    @property
    def _parsed(self) -> list[QualifiedName]:
        return [QualifiedName.parse(table) for table in self.tables]

    def execute(self, context: Context) -> dict[str, Any]:
        with as_airflow():
            run = self._run = FencedRun(hook_of(self.postgres_conn_id), context)
            full = is_true(self.force_full) or Asked.of(context).full_refresh
            states = self._ready(run, full)
            has_work = full or any(state.has_work for state in states)
            needs_spark = has_work and all(state.placement(run.settings) == "spark" for state in states)
            run.end_earlier_rounds(context)
            if full:
                run.withdraw(self._parsed)
            if needs_spark or not run.refresh_without_spark(self._parsed, force_full=full):
                self._refresh(run, full)
            self._outcomes = run.outcomes(self.stream_tables)
        return self._report(context)

    def _ready(self, run: FencedRun, full: bool) -> list[TableState]:
        """Look again, because the plan may be minutes old and upstream refreshes may have changed nothing."""
        states = self._states(run)
        if full:
            return list(states.values())
        for name in self.stream_tables:
            if name not in states:
                raise UnknownStreamTable(f"There is no stream table named {name}", remedy="Run the task `plan` first.")
        if held := readiness.held(states.values()):
            raise AirflowSkipException(held)
        if halted := readiness.halted(states.values()):
            if run.settings.halted == "warn":
                raise AirflowSkipException(halted)
            raise RefreshError(halted)
        run.withdraw([table for table in self._parsed if states[str(table)].has_to_be_withdrawn])
        return list(states.values())

    def _states(self, run: FencedRun) -> dict[str, TableState]:
        with run.database.transaction() as conn:
            return readiness.read(conn, self.stream_tables)

    def _refresh(self, run: FencedRun, full: bool) -> None:
        run.open(self.spark_conn_id, self.spark_args)
        try:
            run.refresh([self.tables], force_full=full)
        except PgTrickleError as error:
            raise self._explained(run, error) from error
        finally:
            run.close()

    def _explained(self, run: FencedRun, error: PgTrickleError) -> PgTrickleError:
        """The error with the history's message, which says more than the application's exit code."""
        told = next((o for o in outcome.failed(run.outcomes(self.stream_tables)) if o.error), None)
        # If trying again can't help, the refresh itself has set status ERROR.
        hopeless = any(state.status == "ERROR" for state in self._states(run).values())
        kind = RefreshError if hopeless else type(error)
        if told is None or told.error is None or told.error in str(error):
            return kind(error.message, stream_table=error.stream_table, place=error.place, remedy=error.remedy)
        return kind(told.error, stream_table=told.result.name, remedy=error.remedy)

    def _report(self, context: Context) -> dict[str, Any]:
        if not self._outcomes:
            raise AirflowException(
                f"The run left no trace in the refresh history: its Spark application never reached {self.tables}"
            )
        from airflow_provider_pgtrickle import metrics

        metrics.record(o.result for o in self._outcomes.values())
        for _, o in sorted(self._outcomes.items()):
            self.log.info("%s", o)
        outcome.note(context, (o for _, o in sorted(self._outcomes.items())))
        broken = outcome.failed(self._outcomes)
        if broken:
            raise AirflowException(f"{broken[0].result.name}: {broken[0].error or 'the refresh failed'}")
        told = sorted(name for name, o in self._outcomes.items() if o.result.changed and name in self.assets)
        outcome.emit(context, self, [(self.assets[name], self._outcomes[name].event) for name in told])
        summary = {name: o.summary for name, o in sorted(self._outcomes.items())}
        if all(o.idle for o in self._outcomes.values()):
            context["ti"].xcom_push(key="return_value", value=summary)
            reasons = {o.result.fallback_reason or readiness.NO_CHANGE for o in self._outcomes.values()}
            raise AirflowSkipException("; ".join(sorted(reasons)))
        return summary

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage | None:
        from airflow_provider_pgtrickle.openlineage import facets

        return facets(self.postgres_conn_id, {name: o.result for name, o in self._outcomes.items()})

    def on_kill(self) -> None:
        if self._run is not None:
            self._run.kill()
