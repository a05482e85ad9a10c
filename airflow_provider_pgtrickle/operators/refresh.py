"""Refresh one unit of stream tables on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import AssetAlias, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from airflow_provider_pgtrickle.backends.request import Backend, RefreshRequest
from airflow_provider_pgtrickle.errors import PgTrickleError, RefreshError, UnknownStreamTable
from airflow_provider_pgtrickle.links import AssetLink, ExplainLink, RefreshHistoryLink
from airflow_provider_pgtrickle.names import QualifiedName
from airflow_provider_pgtrickle.operators import outcome, readiness
from airflow_provider_pgtrickle.operators.confirm import confirm
from airflow_provider_pgtrickle.operators.database import hook_of
from airflow_provider_pgtrickle.operators.faults import as_airflow
from airflow_provider_pgtrickle.operators.outcome import Outcome
from airflow_provider_pgtrickle.settings import Settings
from airflow_provider_pgtrickle.stream_table import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Asset, Context

    from airflow_provider_pgtrickle.catalog.database import Database


class StreamTableRefreshOperator(BaseOperator):
    """Refreshes stream tables together: one snapshot, one commit.

    Skips without starting Spark where nothing changed. Killing it takes its lease away in PostgreSQL, so that a
    driver which survives can't commit.

    :param tables: their names, templated
    :param spark_conn_id: of type `spark` or `spark_connect`: its type chooses the back end
    :param force_full: recompute; only what differs is written all the same
    :param assets: the asset of each table by `schema.name`, updated when its rows changed
    :param spark_args: arguments of `SparkSubmitHook`, such as `conf` and `executor_memory`
    """

    template_fields: Sequence[str] = ("tables", "force_full", "postgres_conn_id", "spark_conn_id")
    operator_extra_links = (RefreshHistoryLink(), ExplainLink(), AssetLink())
    ui_color: ClassVar[str] = "#d9ead3"

    def __init__(
        self,
        *,
        tables: Sequence[str],
        postgres_conn_id: str = DEFAULT_CONN_ID,
        spark_conn_id: str = "spark_default",
        force_full: bool = False,
        assets: Mapping[str, Asset] | None = None,
        spark_args: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.assets = dict(assets or {})
        # An ordinary outlet is updated whenever its task succeeds; an alias only by the events added to it.
        self.alias = AssetAlias(_alias_name(tables, postgres_conn_id)) if self.assets else None
        if self.alias is not None:
            kwargs["outlets"] = [*(kwargs.get("outlets") or ()), self.alias]
        super().__init__(**kwargs)
        self.tables = tables
        self.postgres_conn_id = postgres_conn_id
        self.spark_conn_id = spark_conn_id
        self.force_full = force_full
        self.spark_args = dict(spark_args or {})
        self._backend: Backend | None = None
        self._database: Database | None = None
        self._token: str | None = None
        self._outcomes: dict[str, Outcome] = {}

    @property
    def stream_tables(self) -> list[str]:
        """For the links."""
        return [str(QualifiedName.parse(table)) for table in self.tables]

    def execute(self, context: Context) -> dict[str, Any]:
        with as_airflow():
            hook = hook_of(self.postgres_conn_id)
            with hook.get_client() as client:
                self._database = client.database
            self._token = outcome.run_token(context)
            request = RefreshRequest(
                tables=tuple(self.tables),
                run_token=self._token,
                dsn=hook.dsn,
                force_full=self.force_full,
                initiated_by=outcome.initiator(context),
                settings=hook.settings,
            )
            has_work = self.force_full or self._has_work()
            self._take_over(context)
            if has_work or not self._confirmed(request):
                self._run(request)
            self._outcomes = self._read()
        return self._report(context)

    def _has_work(self) -> bool:
        """The plan may be minutes old, and what is upstream may have changed nothing."""
        with self._database.transaction() as conn:
            states = readiness.read(conn, self.stream_tables)
        for name in self.stream_tables:
            if name not in states:
                raise UnknownStreamTable(f"There is no stream table named {name}", remedy="Run the task `plan` first.")
        held = [f"{name} is {state.held}" for name, state in states.items() if state.held]
        if held:
            raise AirflowSkipException("; ".join(held))
        return any(state.has_work for state in states.values())

    def _confirmed(self, request: RefreshRequest) -> bool:
        """Whether the unit was brought to this instant without Spark."""
        return (
            confirm(
                self._database,
                [QualifiedName.parse(table) for table in self.tables],
                Settings.load(**request.settings),
                run_token=request.run_token,
                initiated_by=request.initiated_by,
            )
            is not None
        )

    def _take_over(self, context: Context) -> None:
        """End what is left of this task before it was cleared; attempts of the same round are ended by the lease."""
        from airflow_provider_pgtrickle.refresh import lease

        with self._database.transaction() as conn:
            for earlier in range(outcome.current_round(context)):
                lease.revoke(conn, outcome.run_token(context, earlier))

    def _run(self, request: RefreshRequest) -> None:
        from airflow_provider_pgtrickle.backends.selection import backend_for

        self._backend = backend_for(self.spark_conn_id, self.spark_args)
        try:
            self._backend.refresh(request)
        except PgTrickleError as error:
            raise self._explained(error) from error
        finally:
            self._backend.close()
            self._backend = None

    def _read(self) -> dict[str, Outcome]:
        with self._database.transaction() as conn:
            return outcome.read(conn, self._token, self.stream_tables)

    def _explained(self, error: PgTrickleError) -> PgTrickleError:
        """What the application wrote into the history says more than its exit code."""
        told = [o for o in outcome.failed(self._read()) if o.error]
        with self._database.transaction() as conn:
            states = readiness.read(conn, self.stream_tables)
        # The refresh itself knows whether trying again can help: then it leaves status ERROR.
        kind = RefreshError if any(state.status == "ERROR" for state in states.values()) else type(error)
        if not told or told[0].error in str(error):
            return kind(error.message, stream_table=error.stream_table, place=error.place, remedy=error.remedy)
        return kind(told[0].error, stream_table=told[0].result.name, remedy=error.remedy)

    def _report(self, context: Context) -> dict[str, Any]:
        if not self._outcomes:
            raise AirflowException(
                f"The run left no trace in the refresh history: its Spark application never reached {self.tables}"
            )
        from airflow_provider_pgtrickle import metrics

        metrics.record(o.result for o in self._outcomes.values())
        for name, o in sorted(self._outcomes.items()):
            self.log.info("%s: %s", name, o.summary)
        broken = outcome.failed(self._outcomes)
        if broken:
            raise AirflowException(f"{broken[0].result.name}: {broken[0].error or 'the refresh failed'}")
        if self.alias is not None:
            outcome.emit(context, self.alias, self.assets, self._outcomes)
        summary = {name: o.summary for name, o in sorted(self._outcomes.items())}
        actions = {o.result.action for o in self._outcomes.values()}
        if actions <= {"SKIP", "NO_DATA"}:
            context["ti"].xcom_push(key="return_value", value=summary)
            reasons = {o.result.fallback_reason for o in self._outcomes.values()} - {None}
            raise AirflowSkipException("; ".join(sorted(reasons)) or "no change")
        return summary

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage | None:
        from airflow_provider_pgtrickle.lineage import facets

        return facets(self.postgres_conn_id, {name: o.result for name, o in self._outcomes.items()})

    def on_kill(self) -> None:
        from airflow_provider_pgtrickle.refresh import lease

        # First the fence: whatever survives the rest of this can't commit any more.
        if self._database is not None and self._token is not None:
            try:
                with self._database.transaction() as conn:
                    lease.revoke(conn, self._token)
            except PgTrickleError as error:
                self.log.warning("The lease could not be taken away: %s", error)
        if self._backend is not None:
            self._backend.kill()


def _alias_name(tables: Sequence[str], postgres_conn_id: str) -> str:
    return f"pgtrickle {postgres_conn_id} {', '.join(tables)}"[:1500]
