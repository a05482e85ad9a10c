"""The base of the event triggers: one connection for all watchers of an Airflow connection.

The triggerer opens the shared stream once for each `shared_stream_key` and gives every watcher all that it yields. That
is the whole record and not an event: each watcher compares it with the cursor of what it has announced. So nothing is
lost if a watcher subscribes late, a connection breaks or the triggerer restarts: the cursor is in the watched asset's
state store.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import psycopg
from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_provider_pgtrickle.triggers import record
from airflow_provider_pgtrickle.triggers.listening import Alert, observe

DEFAULT_POLL_INTERVAL = 30.0

_CURSOR = "pgtrickle_cursor"


@dataclass(frozen=True)
class Observation:
    """The record, and the notifications after which it was read."""

    record: record.Record
    alerts: tuple[Alert, ...] = ()


class _Store(Protocol):
    async def aget(self, key: str, default: Any = None) -> Any: ...
    async def aset(self, key: str, value: Any) -> None: ...


class RecordTrigger(BaseEventTrigger):
    """Fires an event for everything new in the record that the cursor doesn't cover: at least once, never lost."""

    #: The last observation of a key's running stream, for watchers that subscribe before the next one.
    _latest: ClassVar[dict[Hashable, Observation]] = {}
    #: How many running watchers of a key want the pending rows counted.
    _pending_wanted: ClassVar[Counter[Hashable]] = Counter()

    def __init__(self, *, postgres_conn_id: str, poll_interval: float = DEFAULT_POLL_INTERVAL) -> None:
        super().__init__()
        #: Whether `news` uses `record.pending`, which costs a query.
        self.needs_pending = False
        self.postgres_conn_id = postgres_conn_id
        self.poll_interval = poll_interval

    @abstractmethod
    def news(self, seen: Observation, cursor: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The payloads of the events that `cursor` doesn't cover, and the cursor that does."""

    def shared_stream_key(self) -> Hashable:
        return _key(self.postgres_conn_id, self.poll_interval)

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncIterator[Observation]:
        poll_interval = kwargs.get("poll_interval", DEFAULT_POLL_INTERVAL)
        key = _key(kwargs["postgres_conn_id"], poll_interval)
        before: record.Record | None = None

        async def read(connection: psycopg.AsyncConnection) -> record.Record:
            return await record.read(connection, before, with_pending=RecordTrigger._pending_wanted[key] > 0)

        try:
            async for now, alerts in observe(kwargs["postgres_conn_id"], poll_interval, read):
                before = now
                RecordTrigger._latest[key] = Observation(now)
                yield Observation(now, alerts)
        finally:
            RecordTrigger._latest.pop(key, None)

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Observation]) -> AsyncIterator[TriggerEvent]:
        key = self.shared_stream_key()
        store = self._store()
        cursor = await self._kept_cursor(store)
        RecordTrigger._pending_wanted[key] += self.needs_pending
        try:
            async for seen in _from_latest(key, shared_stream):
                events, covering = self.news(seen, cursor)
                for payload in events:
                    yield TriggerEvent(payload)
                # The cursor is stored after the events: a crash in between repeats them and doesn't lose them.
                if store and covering != cursor:
                    await self._keep(store, covering)
                cursor = covering
        finally:
            RecordTrigger._pending_wanted[key] -= self.needs_pending

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Watch without a triggerer that shares streams."""
        _, kwargs = self.serialize()
        async for event in self.filter_shared_stream(self.open_shared_stream(kwargs)):
            yield event

    async def _kept_cursor(self, store: _Store | None) -> dict[str, Any]:
        try:
            return (await store.aget(_CURSOR) if store else None) or {}
        except AirflowRuntimeError as error:
            # A watcher without its cursor repeats events, which is better than to stop.
            self.log.warning("The cursor can't be read: %s", error)
            return {}

    async def _keep(self, store: _Store, cursor: dict[str, Any]) -> None:
        try:
            await store.aset(_CURSOR, cursor)
        except AirflowRuntimeError as error:
            self.log.warning("The cursor can't be kept: %s", error)

    def _store(self) -> _Store | None:
        """The state store of the watched asset; if there are several, the first asset's."""
        accessors = self.asset_state_store
        if accessors is None:
            return None
        named = [*accessors._by_name.values(), *accessors._by_uri.values()]
        return named[0] if named else None


def _key(postgres_conn_id: str, poll_interval: float) -> Hashable:
    return ("pgtrickle", postgres_conn_id, poll_interval)


async def _from_latest(key: Hashable, shared_stream: AsyncIterator[Observation]) -> AsyncIterator[Observation]:
    if (latest := RecordTrigger._latest.get(key)) is not None:
        yield latest
    async for seen in shared_stream:
        yield seen
