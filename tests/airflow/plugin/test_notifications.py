"""`AlertNotifier`: into PostgreSQL's channel and on to other notifiers."""

import asyncio
import json
from typing import Any

import psycopg
import pytest
from airflow.sdk.bases.notifier import BaseNotifier

from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.notifications import AlertNotifier
from airflow_provider_pgtrickle.triggers.listening import CHANNEL
from tests.airflow.listened import CONN_ID, Catalog


class Kept(BaseNotifier):
    """Keeps what it was told."""

    template_fields = ("said",)

    def __init__(self) -> None:
        super().__init__()
        self.said = "{{ alert.event }} of {{ alert.stream_table }}: {{ alert.text }}"

    def notify(self, context: Any) -> None:
        self.heard = self.said

    async def async_notify(self, context: Any) -> None:
        self.heard = self.said


def heard(catalog: Catalog, send: Any) -> list[dict[str, Any]]:
    with psycopg.connect(catalog.dsn, autocommit=True) as listener:
        listener.execute(f"LISTEN {CHANNEL}")
        send()
        return [json.loads(notice.payload) for notice in listener.notifies(timeout=20, stop_after=1)]


def test_a_callback_is_an_alert_with_its_text_rendered(catalog: Catalog) -> None:
    notifier = AlertNotifier(stream_table="public.{{ params.table }}", text="{{ exception }}", postgres_conn_id=CONN_ID)
    context = {"params": {"table": "totals"}, "exception": "it broke"}
    assert heard(catalog, lambda: notifier(context)) == [
        {"event": "refresh_failed", "stream_table": "public.totals", "text": "it broke"}
    ]


def test_in_the_triggerer_it_does_the_same(catalog: Catalog) -> None:
    async def send() -> None:
        await AlertNotifier(
            event="stale_data",
            stream_table="public.totals",
            text="late",
            postgres_conn_id=CONN_ID,
            context={"run_id": "r"},
        )

    assert heard(catalog, lambda: asyncio.run(send())) == [
        {"event": "stale_data", "stream_table": "public.totals", "text": "late"}
    ]


def test_forwarded_notifiers_find_the_alert_in_their_templates() -> None:
    kept = Kept()
    AlertNotifier(stream_table="t", text="why", postgres_conn_id=None, forward=[kept])({"run_id": "r"})
    assert kept.heard == "refresh_failed of t: why"


def test_forwarded_notifiers_find_it_in_the_triggerer_too() -> None:
    kept = Kept()

    async def send() -> None:
        await AlertNotifier(
            stream_table="t", text="why", postgres_conn_id=None, forward=[kept], context={"run_id": "r"}
        )

    asyncio.run(send())
    assert kept.heard == "refresh_failed of t: why"


def test_its_defaults_name_the_task_that_failed() -> None:
    class Task:
        dag_id, task_id = "shop", "totals"

    notifier = AlertNotifier(postgres_conn_id=None)
    notifier({"ti": Task(), "run_id": "r1"})
    assert notifier.alert == {"event": "refresh_failed", "stream_table": "totals", "text": "shop.totals r1"}


def test_a_password_in_an_error_text_is_blanked() -> None:
    notifier = AlertNotifier(text="no postgresql://bob:s3cret@db/shop", postgres_conn_id=None)
    assert "s3cret" not in notifier.alert["text"]


def test_a_text_longer_than_a_notification_may_be_is_cut_and_still_sent(catalog: Catalog) -> None:
    notifier = AlertNotifier(stream_table="t", text="é\n" * 10_000, postgres_conn_id=CONN_ID)
    (alert,) = heard(catalog, lambda: notifier({}))
    assert alert["text"].startswith("é\né")


def test_an_unknown_alert_is_refused_naming_the_known() -> None:
    with pytest.raises(UsageError, match=r"no alert named 'bang'.*stale_data"):
        AlertNotifier(event="bang")
