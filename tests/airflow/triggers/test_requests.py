"""`RequestsPendingTrigger`: what SQL asks for is an event, before and while it watches."""

import asyncio

from airflow_provider_pgtrickle.triggers.requests import RequestsPendingTrigger
from tests.airflow.listened import CONN_ID, NEVER, Catalog, event_of


def watcher(**options: object) -> RequestsPendingTrigger:
    return RequestsPendingTrigger(**{"postgres_conn_id": CONN_ID, "poll_interval": NEVER, **options})  # type: ignore[arg-type]


def test_requests_before_and_after_the_connect_are_events(catalog: Catalog) -> None:
    async def scenario() -> None:
        catalog.declare("totals")
        catalog.declare("others")
        catalog.connection.execute("SELECT pgtrickle.request_refresh('totals')")
        events = watcher().run()
        first = await event_of(events)
        assert first.payload == {"event": "requested", "requests": 1, "stream_tables": ["public.totals"]}
        waiting = asyncio.ensure_future(event_of(events))
        # A hint without a request is no event.
        catalog.notify("a hint")
        catalog.connection.execute("SELECT pgtrickle.request_refresh('others')")
        assert (await waiting).payload["stream_tables"] == ["public.others", "public.totals"]

    asyncio.run(scenario())


def test_requests_for_other_tables_are_left_to_others(catalog: Catalog) -> None:
    async def scenario() -> None:
        catalog.declare("totals")
        catalog.declare("others")
        catalog.connection.execute("SELECT pgtrickle.request_refresh('others')")
        catalog.connection.execute("SELECT pgtrickle.request_refresh('totals')")
        event = await event_of(watcher(stream_tables=["totals"]).run())
        assert event.payload == {"event": "requested", "requests": 1, "stream_tables": ["public.totals"]}

    asyncio.run(scenario())


def test_an_event_that_led_to_no_answer_is_repeated(catalog: Catalog) -> None:
    async def scenario() -> None:
        catalog.declare("totals")
        catalog.connection.execute("SELECT pgtrickle.request_refresh('totals')")
        events = watcher(rearm_seconds=0.0, poll_interval=0.05).run()
        assert (await event_of(events)).payload == (await event_of(events)).payload

    asyncio.run(scenario())


def test_it_travels_to_the_triggerer_and_back(catalog: Catalog) -> None:
    _, given = watcher(stream_tables=["totals"], rearm_seconds=5.0).serialize()
    assert RequestsPendingTrigger(**given).serialize()[1] == given
