"""`StreamTableRefreshedTrigger`: every refresh that changed rows is seen, whatever happens to the connection."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from airflow.sdk.execution_time.context import AssetStateStoreAccessors
from airflow.triggers.base import TriggerEvent
from airflow.triggers.shared_stream import SharedStreamManager

from airflow_provider_pgtrickle.triggers.refreshed import StreamTableRefreshedTrigger
from tests.airflow.listened import CONN_ID, NEVER, Catalog, event_of


class KeptCursor(AssetStateStoreAccessors):
    """The state store of one asset, kept in memory: Airflow's own needs its supervisor."""

    class _One:
        def __init__(self) -> None:
            self.values: dict[str, Any] = {}
            self.saved: asyncio.Queue[Any] = asyncio.Queue()

        async def aget(self, key: str, default: Any = None) -> Any:
            return self.values.get(key, default)

        async def aset(self, key: str, value: Any) -> None:
            self.values[key] = value
            self.saved.put_nowait(value)

    def __init__(self) -> None:
        super().__init__(inlets=[])
        self.one = self._One()
        self._by_name = {"asset": self.one}  # type: ignore[dict-item]


def watcher(name: str = "totals", store: KeptCursor | None = None) -> StreamTableRefreshedTrigger:
    trigger = StreamTableRefreshedTrigger(stream_table=name, postgres_conn_id=CONN_ID, poll_interval=NEVER)
    trigger.asset_state_store = store
    return trigger


@asynccontextmanager
async def shared(*triggers: StreamTableRefreshedTrigger) -> AsyncIterator[list[AsyncIterator[TriggerEvent]]]:
    """The triggers' events, run as the triggerer runs them: over its shared streams."""
    streams = SharedStreamManager()
    try:
        yield [
            trigger.filter_shared_stream(
                streams.subscribe(trigger_id=number, trigger=trigger, key=trigger.shared_stream_key())
            )
            for number, trigger in enumerate(triggers)
        ]
    finally:
        await streams.stop_all()


def test_a_refresh_from_before_the_connect_is_caught_up(catalog: Catalog) -> None:
    async def scenario() -> None:
        catalog.declare("totals")
        catalog.refresh("totals", inserted=7)
        event = await event_of(watcher().run())
        assert event.payload["stream_table"] == "public.totals"
        assert event.payload["rows_inserted"] == 7

    asyncio.run(scenario())


def test_a_refresh_is_announced_when_its_notification_comes(catalog: Catalog) -> None:
    async def scenario() -> None:
        catalog.declare("totals")
        catalog.refresh("totals", inserted=1)
        events = watcher().run()
        await event_of(events)
        took = []
        for inserted in range(2, 12):
            started = time.perf_counter()
            catalog.refresh("totals", inserted=inserted)
            assert (await event_of(events)).payload["rows_inserted"] == inserted
            took.append((time.perf_counter() - started) * 1000)
        print(f"refresh committed with NOTIFY -> event: median {sorted(took)[5]:.1f} ms, max {max(took):.1f} ms")

    asyncio.run(scenario())


def test_a_refresh_during_a_lost_connection_is_seen_after_it(catalog: Catalog) -> None:
    async def scenario() -> None:
        catalog.declare("totals")
        catalog.refresh("totals", inserted=1)
        events = watcher().run()
        await event_of(events)
        assert catalog.cut_listeners() == 1
        # Nobody listens, so this notification is lost for good.
        catalog.refresh("totals", inserted=2)
        assert (await event_of(events)).payload["rows_inserted"] == 2

    asyncio.run(scenario())


def test_a_refresh_that_changed_nothing_is_no_event(catalog: Catalog) -> None:
    async def scenario() -> None:
        catalog.declare("totals")
        catalog.refresh("totals", inserted=1)
        events = watcher().run()
        await event_of(events)
        catalog.refresh("totals", inserted=0)
        catalog.refresh("totals", inserted=3)
        assert (await event_of(events)).payload["rows_inserted"] == 3

    asyncio.run(scenario())


def test_all_watchers_of_a_connection_share_one_session_and_each_sees_its_own(catalog: Catalog) -> None:
    async def scenario() -> None:
        for name in ("a", "b", "c"):
            catalog.declare(name)
        async with shared(watcher("a"), watcher("b"), watcher("c")) as streams:
            for name, stream in zip("abc", streams, strict=True):
                waiting = asyncio.ensure_future(event_of(stream))
                catalog.refresh(name)
                assert (await waiting).payload["stream_table"] == f"public.{name}"
            assert len(catalog.listeners()) == 1

    asyncio.run(scenario())


def test_a_watcher_that_joins_a_running_stream_need_not_wait_for_a_notification(catalog: Catalog) -> None:
    async def scenario() -> None:
        catalog.declare("a")
        catalog.declare("b")
        catalog.refresh("a")
        catalog.refresh("b")
        async with shared(watcher("a"), watcher("b")) as (early, late):
            await event_of(early)
            # The stream has looked already and nothing will wake it: what it saw must be passed on.
            assert (await event_of(late)).payload["stream_table"] == "public.b"

    asyncio.run(scenario())


def test_a_restarted_triggerer_repeats_nothing_and_misses_nothing(catalog: Catalog) -> None:
    async def scenario() -> None:
        store = KeptCursor()
        catalog.declare("totals")
        catalog.refresh("totals", inserted=1)
        before = watcher(store=store).run()
        await event_of(before)
        waiting = asyncio.ensure_future(event_of(before))
        await store.one.saved.get()
        waiting.cancel()
        await asyncio.wait([waiting])
        catalog.refresh("totals", inserted=2)
        after = watcher(store=store).run()
        assert (await event_of(after)).payload["rows_inserted"] == 2

    asyncio.run(scenario())


def test_a_triggerer_that_died_before_the_cursor_was_kept_repeats_the_event(catalog: Catalog) -> None:
    async def scenario() -> None:
        store = KeptCursor()
        catalog.declare("totals")
        catalog.refresh("totals", inserted=1)
        for _ in range(2):
            assert (await event_of(watcher(store=store).run())).payload["rows_inserted"] == 1

    asyncio.run(scenario())


def test_it_survives_the_journey_through_the_metadata_database() -> None:
    classpath, kwargs = watcher().serialize()
    assert classpath == "airflow_provider_pgtrickle.triggers.refreshed.StreamTableRefreshedTrigger"
    assert StreamTableRefreshedTrigger(**kwargs).serialize() == (classpath, kwargs)
