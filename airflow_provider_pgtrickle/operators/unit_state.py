"""Granularity `graph`: the tasks that show each table's state after one task has refreshed them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import Asset, BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_pgtrickle.links import AssetLink, ExplainLink, RefreshHistoryLink
from airflow_provider_pgtrickle.operators.outcome import emit
from airflow_provider_pgtrickle.stream_table import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow.sdk import Context


class StreamTableStateOperator(EmptyOperator):
    """Shows that the graph's refresh brought a unit's rows up to date; it is skipped if that didn't happen.

    The scheduler ends it without a process, as long as it has neither outlets nor `on_success_callback`.
    """

    ui_color = "#eef5ec"


class StreamTableOutcomeOperator(BaseOperator):
    """Mapped over what the graph's refresh returns: updates the assets of some tables, or fails for a unit.

    An instance that fails has its unit's name, so that the failure shows there. A run in which nothing changed has no
    instance.

    :param title: the instance's name
    :param tables: the unit's tables, by `schema.name`, for the links
    :param events: name, URI and extra of the assets to update
    :param error: why the unit failed, or was left out
    """

    operator_extra_links = (RefreshHistoryLink(), ExplainLink(), AssetLink())
    ui_color = "#eef5ec"

    def __init__(
        self,
        *,
        title: str,
        tables: Sequence[str] = (),
        events: Sequence[Mapping[str, Any]] = (),
        error: str | None = None,
        postgres_conn_id: str = DEFAULT_CONN_ID,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.title = title
        self.stream_tables = list(tables)
        self.events = list(events)
        self.error = error
        self.postgres_conn_id = postgres_conn_id

    def execute(self, context: Context) -> None:
        if self.error is not None:
            # A retry of this task can't help. The next run, or clearing the refresh task, tries again.
            raise AirflowFailException(self.error)
        for event in self.events:
            self.log.info("%s: %s", event["name"], event["extra"])
        emit(context, self, [(Asset(name=event["name"], uri=event["uri"]), event["extra"]) for event in self.events])
