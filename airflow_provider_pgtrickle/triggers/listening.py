"""Listens on `pg_trickle_alert` for ever: connects, reads the record, waits for a notification, reads again.

A notification is only a hint, because PostgreSQL drops it if nobody listens. So the catalog is read after every
connect, after every notification and at every poll interval, which shows what happened without a connection.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg
from asgiref.sync import sync_to_async
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from airflow_provider_pgtrickle.engine.catalog.alerts import CHANNEL
from airflow_provider_pgtrickle.engine.catalog.database import PINNED, pinning
from airflow_provider_pgtrickle.engine.errors import redact

_BACKOFF_FIRST_SECONDS = 0.1
_BACKOFF_LONGEST_SECONDS = 60.0

_log = logging.getLogger(__name__)
_Read = TypeVar("_Read")

#: Without these a listener would notice only after the poll interval or later that a firewall dropped its connection.
_KEEPALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "connect_timeout": 10}


@dataclass(frozen=True)
class Alert:
    """One notification, as its JSON payload says it."""

    event: str
    stream_table: str | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, payload: str) -> Alert:
        """The alert of a payload. Anyone may send anything on the channel; other texts become a hint without a name.

        >>> Alert.parse('{"event": "resumed", "stream_table": "shop.totals"}')
        Alert(event='resumed', stream_table='shop.totals', details={})
        >>> Alert.parse("hello")
        Alert(event='', stream_table=None, details={})
        """
        try:
            content = json.loads(payload)
        except ValueError:
            return cls("")
        if not isinstance(content, dict):
            return cls("")
        event = str(content.pop("event", ""))
        table = content.pop("stream_table", None)
        return cls(event, str(table) if table is not None else None, content)


async def connect(postgres_conn_id: str) -> psycopg.AsyncConnection:
    """An autocommit connection of the Airflow connection, with the settings of all our sessions."""
    # Airflow fetches the IAM token of a connection synchronously.
    dsn: str = await sync_to_async(_dsn)(postgres_conn_id)
    parameters: dict[str, Any] = {**_KEEPALIVE, **conninfo_to_dict(dsn), "application_name": "pgtrickle listener"}
    connection = await psycopg.AsyncConnection.connect(autocommit=True, **parameters)
    await connection.execute(pinning(PINNED, local=False))
    return connection


def _dsn(postgres_conn_id: str) -> str:
    # It is imported late: DAG files with a watcher are parsed all the time, and the hook's base takes 0.3 s to load.
    from airflow_provider_pgtrickle.hooks.pgtrickle import PgTrickleHook

    return PgTrickleHook(postgres_conn_id=postgres_conn_id).dsn


async def observe(
    postgres_conn_id: str,
    poll_interval: float,
    read: Callable[[psycopg.AsyncConnection], Awaitable[_Read]],
) -> AsyncIterator[tuple[_Read, tuple[Alert, ...]]]:
    """What `read` says after every connect, notification and poll interval, with the notifications that came.

    It never ends: a lost connection is opened again after growing pauses. Only the server's error about the statement
    itself (no catalog, no right) leaves it, because waiting doesn't help.
    """
    failures = 0
    while True:
        try:
            async with await connect(postgres_conn_id) as connection:
                # LISTEN comes before the first read, or a commit between the two would be missed.
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(CHANNEL)))
                alerts: tuple[Alert, ...] = ()
                while True:
                    observed = await read(connection)
                    failures = 0
                    yield observed, alerts
                    alerts = await _next_alerts(connection, poll_interval)
        except (psycopg.OperationalError, psycopg.InterfaceError) as lost:
            failures += 1
            pause = _backoff(failures)
            _log.warning(
                "The listener on connection %s lost PostgreSQL (%s); connecting again in %.1f s",
                postgres_conn_id,
                redact(str(lost)).strip(),
                pause,
            )
            await asyncio.sleep(pause)


async def _next_alerts(connection: psycopg.AsyncConnection, poll_interval: float) -> tuple[Alert, ...]:
    """The notifications of the next batch; none when the poll interval passes first."""
    return tuple(
        [Alert.parse(notice.payload) async for notice in connection.notifies(timeout=poll_interval, stop_after=1)]
    )


def _backoff(failures: int) -> float:
    longest: float = min(_BACKOFF_LONGEST_SECONDS, _BACKOFF_FIRST_SECONDS * 2 ** min(failures - 1, 16))
    # Without jitter all triggers of a triggerer would return to a restarted server at once.
    return longest * random.uniform(0.5, 1.0)
