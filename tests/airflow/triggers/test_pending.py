"""`ChangesPendingTrigger`: changes of base tables are an event, once for each state of the stream table."""

import asyncio

from airflow_provider_pgtrickle.triggers.pending import ChangesPendingTrigger
from airflow_provider_pgtrickle.triggers.record import Record, TableState
from airflow_provider_pgtrickle.triggers.stream import Observation
from tests.airflow.listened import CONN_ID, NEVER, Catalog, event_of

NAME = "public.totals"


def watcher(**options: object) -> ChangesPendingTrigger:
    return ChangesPendingTrigger(**{"stream_table": "totals", "postgres_conn_id": CONN_ID, **options})  # type: ignore[arg-type]


def shop(catalog: Catalog) -> None:
    catalog.connection.execute("CREATE TABLE orders (id int PRIMARY KEY, total int)")
    catalog.connection.execute("CREATE TABLE customers (id int PRIMARY KEY)")
    catalog.declare("totals")
    catalog.capture("totals", "orders", "customers")
    catalog.consume("totals")


def test_changes_from_before_the_connect_are_an_event(catalog: Catalog) -> None:
    async def scenario() -> None:
        shop(catalog)
        catalog.connection.execute("INSERT INTO orders VALUES (1, 1), (2, 2)")
        catalog.connection.execute("INSERT INTO customers VALUES (1)")
        event = await event_of(watcher(poll_interval=NEVER).run())
        assert event.payload == {
            "event": "changes_pending",
            "stream_table": NAME,
            "pending_rows": 3,
            "sources": {"public.customers": 1, "public.orders": 2},
        }

    asyncio.run(scenario())


def test_changes_while_it_watches_are_noticed_by_polling(catalog: Catalog) -> None:
    async def scenario() -> None:
        shop(catalog)
        waiting = asyncio.ensure_future(event_of(watcher(poll_interval=0.05).run()))
        catalog.connection.execute("INSERT INTO orders VALUES (1, 1)")
        assert (await waiting).payload["pending_rows"] == 1

    asyncio.run(scenario())


def test_the_next_event_waits_for_a_refresh(catalog: Catalog) -> None:
    async def scenario() -> None:
        shop(catalog)
        catalog.connection.execute("INSERT INTO orders VALUES (1, 1)")
        events = watcher(poll_interval=NEVER).run()
        await event_of(events)
        waiting = asyncio.ensure_future(event_of(events))
        catalog.connection.execute("INSERT INTO orders VALUES (2, 2)")
        catalog.notify("a writer's hint")
        catalog.consume("totals", notify=True)
        catalog.connection.execute("INSERT INTO orders VALUES (3, 3), (4, 4), (5, 5)")
        catalog.notify("a writer's hint")
        # Two rows were pending when the first hint came: not announced, for no refresh had moved the table yet.
        assert (await waiting).payload["pending_rows"] == 3

    asyncio.run(scenario())


def test_a_transaction_that_wrote_early_and_commits_late_is_not_missed(catalog: Catalog) -> None:
    import psycopg

    async def scenario() -> None:
        shop(catalog)
        with psycopg.connect(catalog.dsn) as late:
            late.execute("INSERT INTO orders VALUES (1, 1)")
            catalog.connection.execute("INSERT INTO orders VALUES (2, 2)")
            catalog.consume("totals")
            late.commit()
        event = await event_of(watcher(poll_interval=NEVER).run())
        assert event.payload["pending_rows"] == 1

    asyncio.run(scenario())


def seen(pending_rows: int, data_timestamp: str = "2026-01-01T00:00:00+00:00") -> Observation:
    table = TableState(1, NAME, "1", "ACTIVE", False, None, data_timestamp, 0, None, False)
    return Observation(Record({NAME: table}, {(NAME, "public.orders"): pending_rows}))


def test_it_counts_only_the_source_it_was_told() -> None:
    assert watcher(source_table="orders").news(seen(1), {})[0]
    assert not watcher(source_table="customers").news(seen(1), {})[0]


def test_fewer_changes_than_asked_for_are_no_event() -> None:
    assert not watcher(min_rows=10).news(seen(9), {})[0]
    assert watcher(min_rows=10).news(seen(10), {})[0]


def test_an_event_that_led_to_no_refresh_is_repeated_after_its_time() -> None:
    patient, impatient = watcher(rearm_seconds=3600), watcher(rearm_seconds=0)
    _, cursor = patient.news(seen(1), {})
    assert not patient.news(seen(2), cursor)[0]
    _, cursor = impatient.news(seen(1), {})
    assert impatient.news(seen(2), cursor)[0]


def test_it_survives_the_journey_through_the_metadata_database() -> None:
    classpath, kwargs = watcher(min_rows=5, source_table="orders").serialize()
    assert ChangesPendingTrigger(**kwargs).serialize() == (classpath, kwargs)
