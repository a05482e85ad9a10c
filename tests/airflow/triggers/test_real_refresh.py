"""The triggers hear real refreshes: declared, captured, refreshed and announced by the product itself."""

import asyncio

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.triggers.alert import AlertTrigger
from airflow_provider_pgtrickle.triggers.freshness import FreshnessTrigger
from airflow_provider_pgtrickle.triggers.pending import ChangesPendingTrigger
from airflow_provider_pgtrickle.triggers.refreshed import StreamTableRefreshedTrigger
from tests.airflow.listened import CONN_ID, NEVER, Catalog, event_of

QUERY = "SELECT customer, sum(total) AS spent FROM orders GROUP BY customer"


def client(catalog: Catalog) -> PgTrickle:
    database = PgTrickle(catalog.dsn).database
    return PgTrickle(catalog.dsn, executor=lambda: PostgresExecutor(database))


def declare(catalog: Catalog) -> None:
    catalog.connection.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, total numeric)")
    catalog.connection.execute("INSERT INTO orders VALUES (1, 1, 10)")
    with client(catalog) as pt:
        pt.create_stream_table("totals", QUERY, schedule="5m")


def test_changes_lead_to_an_event_a_refresh_and_its_event(catalog: Catalog) -> None:
    async def scenario() -> None:
        declare(catalog)
        refreshed = StreamTableRefreshedTrigger(
            stream_table="totals", postgres_conn_id=CONN_ID, poll_interval=NEVER
        ).run()
        assert (await event_of(refreshed)).payload["rows_inserted"] == 1
        catalog.connection.execute("INSERT INTO orders VALUES (2, 1, 5), (3, 2, 7)")
        pending = ChangesPendingTrigger(stream_table="totals", postgres_conn_id=CONN_ID, poll_interval=NEVER).run()
        assert (await event_of(pending)).payload["sources"] == {"public.orders": 2}
        with client(catalog) as pt:
            result = pt.refresh_stream_table("totals")
        event = (await event_of(refreshed)).payload
        assert event["action"] == result.action
        assert (event["rows_inserted"], event["rows_updated"]) == (result.rows_inserted, result.rows_updated) == (1, 1)

    asyncio.run(scenario())


def test_a_refresh_without_changes_is_no_event_but_makes_the_table_fresh(catalog: Catalog) -> None:
    async def scenario() -> None:
        declare(catalog)
        row = catalog.connection.execute("SELECT clock_timestamp()").fetchone()
        assert row is not None
        fresh = asyncio.ensure_future(
            event_of(
                FreshnessTrigger(
                    stream_table="totals", postgres_conn_id=CONN_ID, at_least=row[0].isoformat(), poll_interval=0.05
                ).run()
            )
        )
        with client(catalog) as pt:
            assert pt.refresh_stream_table("totals").action == "NO_DATA"
        assert (await fresh).payload["status"] == "success"

    asyncio.run(scenario())


def test_a_refresh_that_fails_is_an_alert(catalog: Catalog) -> None:
    async def scenario() -> None:
        declare(catalog)
        alerts = AlertTrigger(postgres_conn_id=CONN_ID, events=["refresh_failed"], poll_interval=NEVER).run()
        waiting = asyncio.ensure_future(event_of(alerts))
        catalog.connection.execute("ALTER TABLE orders DROP COLUMN total CASCADE")
        with client(catalog) as pt:
            try:
                pt.refresh_stream_table("totals")
            except Exception as error:
                told = str(error)
        event = (await waiting).payload
        assert event["stream_table"] == "public.totals"
        assert event["error"] in told

    asyncio.run(scenario())
