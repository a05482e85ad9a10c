"""`AlertNotifier`: sends a task's or DAG's outcome as an alert on `pg_trickle_alert`, and on to other notifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.bases.notifier import BaseNotifier
from asgiref.sync import sync_to_async

from airflow_provider_pgtrickle.engine.catalog import alerts
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import UsageError, redact
from airflow_provider_pgtrickle.hooks.pgtrickle import PgTrickleHook
from airflow_provider_pgtrickle.triggers.alert import ALERTS

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


class AlertNotifier(BaseNotifier):
    """Sends one alert to listeners in the database and then through each notifier of `forward`.

    Use it as any callback: `on_failure_callback=AlertNotifier(event="refresh_failed", …)`, or as a
    deadline's. The forwarded notifiers find the alert in their context as `alert`
    (`{{ alert.event }}`, `{{ alert.stream_table }}`, `{{ alert.text }}`).

    :param event: one of stale_data, auto_suspended, reinitialize_needed, buffer_growth_warning,
        refresh_failed, diamond_partial_failure, content_differs, append_only_ended
    :param stream_table: the stream table it is about (templated)
    :param text: the alert's text (templated)
    :param postgres_conn_id: the connection on which to NOTIFY; None sends nothing to PostgreSQL
    :param forward: notifiers to call with the same context
    """

    template_fields: Sequence[str] = ("stream_table", "text")

    def __init__(
        self,
        *,
        event: str = "refresh_failed",
        stream_table: str = "{{ ti.task_id if ti else '' }}",
        text: str = "{{ ti.dag_id ~ '.' ~ ti.task_id if ti else '' }} {{ run_id }}",
        postgres_conn_id: str | None = "pgtrickle_default",
        forward: Sequence[BaseNotifier] = (),
        context: Context | None = None,
    ) -> None:
        super().__init__(context)
        if event not in ALERTS:
            raise UsageError(f"There is no alert named {event!r}", remedy=f"Known: {', '.join(ALERTS)}.")
        self.event = event
        self.stream_table = stream_table
        self.text = text
        self.postgres_conn_id = postgres_conn_id
        self.forward = tuple(forward)

    @property
    def alert(self) -> dict[str, str]:
        """The alert for forwarded notifiers, redacted: an exception's text may hold a connection string."""
        return {"event": self.event, "stream_table": self.stream_table, "text": redact(self.text)}

    def notify(self, context: Context) -> None:
        self._send()
        for notifier in self.forward:
            notifier({**context, "alert": self.alert})

    async def async_notify(self, context: Context) -> None:
        await sync_to_async(self._send)()
        for notifier in self.forward:
            forwarded: Any = {**context, "alert": self.alert}
            notifier.context = forwarded
            await notifier

    def _send(self) -> None:
        if self.postgres_conn_id is None:
            return
        database = Database(PgTrickleHook(postgres_conn_id=self.postgres_conn_id).dsn)
        with database.transaction(application_name="pgtrickle notifier") as connection:
            alerts.send(connection, alerts.Event(self.event), self.stream_table, text=self.text)
