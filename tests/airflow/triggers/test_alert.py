"""`AlertTrigger`: each alert once, also those that were sent while nobody listened."""

import asyncio
from typing import Any

import pytest

from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.triggers.alert import ALERTS, AlertTrigger
from airflow_provider_pgtrickle.triggers.record import Record, TableState
from airflow_provider_pgtrickle.triggers.stream import Observation
from tests.airflow.listened import CONN_ID, NEVER, Catalog, event_of


def watcher(**options: Any) -> AlertTrigger:
    return AlertTrigger(**{"postgres_conn_id": CONN_ID, "poll_interval": NEVER, **options})


def fail(catalog: Catalog, name: str, error: str) -> None:
    with catalog.connection.transaction():
        catalog.connection.execute(
            "INSERT INTO pgtrickle.pgt_refresh_history (pgt_id, action, status, start_time, initiated_by) "
            "SELECT pgt_id, 'DIFFERENTIAL', 'FAILED', now(), 'manual' "
            "FROM pgtrickle.pgt_stream_tables WHERE pgt_name = %s",
            [name],
        )
        catalog.update(name, consecutive_errors=1, last_error=error)
        catalog.notify("refresh_failed", f"public.{name}")


def test_a_failure_from_before_the_connect_is_announced(catalog: Catalog) -> None:
    async def scenario() -> None:
        catalog.declare("totals", data_timestamp="now")
        fail(catalog, "totals", "column gone")
        event = await event_of(watcher().run())
        assert event.payload == {
            "event": "refresh_failed",
            "stream_table": "public.totals",
            "consecutive_errors": 1,
            "error": "column gone",
        }

    asyncio.run(scenario())


def test_each_failure_is_announced_once(catalog: Catalog) -> None:
    async def scenario() -> None:
        catalog.declare("totals", data_timestamp="now")
        events = watcher(events=["refresh_failed"]).run()
        for error in ("first", "second"):
            waiting = asyncio.ensure_future(event_of(events))
            fail(catalog, "totals", error)
            assert (await waiting).payload["error"] == error
            catalog.notify("a hint that tells nothing new")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("columns", "event"),
    [
        ({"status": "SUSPENDED", "consecutive_errors": 3, "last_error": "no"}, "auto_suspended"),
        ({"needs_reinit": True, "reinit_reason": "column added"}, "reinitialize_needed"),
        ({"data_timestamp": "yesterday"}, "stale_data"),
        ({"append_only": True, "append_only_ended": "rows of public.orders were deleted"}, "append_only_ended"),
    ],
)
def test_what_the_catalog_shows_is_an_alert_without_a_notification(
    catalog: Catalog, columns: dict[str, Any], event: str
) -> None:
    async def scenario() -> None:
        catalog.declare("totals", **{"data_timestamp": "now", **columns})
        assert (await event_of(watcher(events=[event]).run())).payload["event"] == event

    asyncio.run(scenario())


def test_a_condition_that_went_away_is_announced_when_it_is_back() -> None:
    def seen(needs_reinit: bool) -> Observation:
        table = TableState(1, "public.totals", "1", "ACTIVE", needs_reinit, "column added", None, 0, None, False)
        return Observation(Record({table.name: table}))

    trigger = watcher()
    cursor: dict[str, Any] = {}
    announced = []
    for needs_reinit in (True, True, False, True):
        events, cursor = trigger.news(seen(needs_reinit), cursor)
        announced.append(len(events))
    assert announced == [1, 0, 0, 1]


def test_a_buffer_that_grew_beyond_the_setting_is_an_alert(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setenv("PGTRICKLE_CHANGE_BUFFER_WARNING_ROWS", "2")
        catalog.connection.execute("CREATE TABLE orders (id int PRIMARY KEY)")
        catalog.declare("totals", data_timestamp="now")
        catalog.capture("totals", "orders")
        catalog.consume("totals")
        catalog.connection.execute("INSERT INTO orders SELECT generate_series(1, 3)")
        event = await event_of(watcher().run())
        assert event.payload == {
            "event": "buffer_growth_warning",
            "stream_table": "public.totals",
            "source": "public.orders",
            "pending_rows": 3,
        }

    asyncio.run(scenario())


def test_a_content_that_differs_is_an_alert_until_a_verification_finds_it_right(catalog: Catalog) -> None:
    async def scenario() -> None:
        catalog.declare("totals", data_timestamp="now")
        catalog.connection.execute(
            "INSERT INTO pgtrickle.pgt_verifications (pgt_id, definition, status, differences, ended_at)"
            " SELECT pgt_id, 'd', 'DIFFERENT', 2, now() FROM pgtrickle.pgt_stream_tables"
        )
        event = await event_of(watcher().run())
        assert event.payload == {"event": "content_differs", "stream_table": "public.totals"}

    asyncio.run(scenario())


def test_a_partial_failure_of_a_diamond_is_passed_on_with_its_details(catalog: Catalog) -> None:
    async def scenario() -> None:
        catalog.declare("totals", data_timestamp="yesterday")
        events = watcher().run()
        # Its first event shows that it listens: this alert isn't in the catalog, it must be heard.
        await event_of(events)
        catalog.notify("diamond_partial_failure", "public.totals", failed=["public.left"])
        assert (await event_of(events)).payload == {
            "event": "diamond_partial_failure",
            "stream_table": "public.totals",
            "failed": ["public.left"],
        }

    asyncio.run(scenario())


def test_only_the_tables_and_alerts_asked_for_are_announced(catalog: Catalog) -> None:
    async def scenario() -> None:
        catalog.declare("others", data_timestamp="now", needs_reinit=True)
        catalog.declare("totals", data_timestamp="yesterday", needs_reinit=True)
        event = await event_of(watcher(events=["reinitialize_needed"], stream_tables=["totals"]).run())
        assert event.payload["stream_table"] == "public.totals"

    asyncio.run(scenario())


def test_good_news_is_no_alert() -> None:
    assert not {"resumed", "refresh_completed"} & set(ALERTS)


def test_an_unknown_alert_is_refused_naming_the_known() -> None:
    with pytest.raises(UsageError, match=r"no alert named 'bang'.*stale_data"):
        watcher(events=["bang"])


def test_it_survives_the_journey_through_the_metadata_database() -> None:
    classpath, kwargs = watcher(events=["stale_data"], stream_tables=["a"]).serialize()
    assert AlertTrigger(**kwargs).serialize() == (classpath, kwargs)
