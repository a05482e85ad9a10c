"""The listener: connect, read, wait for a hint, read again, and come back after a lost connection."""

import asyncio

import psycopg
import pytest

from airflow_provider_pgtrickle.triggers.listening import Alert, observe
from tests.airflow.listened import CONN_ID, NEVER, Catalog, event_of


async def _count(connection: psycopg.AsyncConnection) -> int:
    row = await (await connection.execute("SELECT count(*) FROM pgtrickle.pgt_stream_tables")).fetchone()
    assert row is not None
    return int(row[0])


def test_it_reads_the_record_when_it_connects(catalog: Catalog) -> None:
    async def scenario() -> None:
        catalog.declare("totals")
        assert await event_of(observe(CONN_ID, NEVER, _count)) == (1, ())

    asyncio.run(scenario())


def test_a_notification_wakes_it_and_comes_with_what_is_read(catalog: Catalog) -> None:
    async def scenario() -> None:
        seen = observe(CONN_ID, NEVER, _count)
        assert await event_of(seen) == (0, ())
        catalog.declare("totals")
        catalog.notify("resumed", "public.totals", by="test")
        assert await event_of(seen) == (1, (Alert("resumed", "public.totals", {"by": "test"}),))

    asyncio.run(scenario())


def test_without_any_notification_it_reads_again_after_the_poll_interval(catalog: Catalog) -> None:
    async def scenario() -> None:
        seen = observe(CONN_ID, 0.05, _count)
        assert await event_of(seen) == (0, ())
        catalog.declare("totals")
        assert await event_of(seen) == (1, ())

    asyncio.run(scenario())


def test_a_session_that_the_server_ended_is_opened_again_and_the_record_read(catalog: Catalog) -> None:
    async def scenario() -> None:
        seen = observe(CONN_ID, NEVER, _count)
        assert await event_of(seen) == (0, ())
        assert catalog.cut_listeners() == 1
        catalog.declare("totals")
        assert await event_of(seen) == (1, ())
        assert len(catalog.listeners()) == 1

    asyncio.run(scenario())


def test_a_database_that_is_not_there_yet_is_waited_for(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setenv("AIRFLOW_CONN_PGTRICKLE_LATER", "postgresql://nobody@127.0.0.1:1/nowhere")
        waiting = asyncio.ensure_future(anext(observe("pgtrickle_later", NEVER, _count)))
        monkeypatch.setenv("AIRFLOW_CONN_PGTRICKLE_LATER", catalog.dsn)
        assert await asyncio.wait_for(waiting, 20) == (0, ())

    asyncio.run(scenario())


@pytest.mark.parametrize("payload", ["", "hello", "[1, 2]", '"text"', "{"])
def test_a_foreign_payload_is_a_hint_without_a_name(payload: str) -> None:
    assert Alert.parse(payload) == Alert("")
