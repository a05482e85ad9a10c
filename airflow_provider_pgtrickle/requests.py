"""Carries out what SQL asked for: declares and refreshes as its client would, and answers each request once."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog import migrate, records, requests
from airflow_provider_pgtrickle.engine.catalog.alerts import CHANNEL
from airflow_provider_pgtrickle.engine.catalog.database import translating
from airflow_provider_pgtrickle.engine.catalog.requests import Request, Wanted
from airflow_provider_pgtrickle.engine.catalog.search_path import own_path
from airflow_provider_pgtrickle.engine.declare import owners
from airflow_provider_pgtrickle.engine.declare.options import check
from airflow_provider_pgtrickle.engine.errors import (
    EnvironmentFault,
    PgTrickleError,
    PgTrickleWarning,
    RefreshError,
    UnknownStreamTable,
    redact,
)
from airflow_provider_pgtrickle.engine.refresh.decision import Skip

if TYPE_CHECKING:
    from psycopg import Connection

    from airflow_provider_pgtrickle.client import PgTrickle
    from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult

_log = logging.getLogger(__name__)

#: How long a server waits for a notification before it looks by itself, because notifications are hints.
_LOOK_SECONDS = 30.0


@dataclass(frozen=True)
class Served:
    """What came of a request."""

    request: Request
    answer: dict[str, Any] | None = None
    """What was done; None if nothing was."""
    error: str | None = None
    """Why it failed. Without an answer and an error it waits for a refresh that runs elsewhere."""

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.request}: {self.error}"
        if self.answer is None:
            return f"{self.request}: waits for the refresh that runs elsewhere"
        done = self.answer.get("action") or self.answer.get("status") or "DROPPED"
        return f"{self.request}: {done}"


def serve(client: PgTrickle, *, wait: bool = False, wanted: Wanted = requests.ALL) -> Iterator[Served]:
    """Carry requests out, oldest first, all or those that are wanted.

    It ends when nothing is left to do; with `wait` it then listens for more, until it is interrupted.
    """
    with client.database.connect(autocommit=True, application_name="pgtrickle requests") as conn, translating():
        migrate.require(conn)
        if wait:
            # Before the first look, or what is asked for between the two would wait.
            conn.execute(sql.SQL("LISTEN {}").format(sql.Identifier(CHANNEL)))
        while True:
            yield from _waiting(client, conn, wanted)
            if not wait:
                return
            for _ in conn.notifies(timeout=_LOOK_SECONDS, stop_after=1):
                pass


def _waiting(client: PgTrickle, conn: Connection, wanted: Wanted) -> Iterator[Served]:
    """Carry out what waits now."""
    requests.settle(conn, wanted.names)
    requests.see(conn, wanted.names)
    busy: set[int] = set()
    while (request := requests.take(conn, beside=busy, wanted=wanted)) is not None:
        number = request.request_id
        try:
            served = _served(client, request)
            if served.error is not None:
                requests.refuse(conn, number, served.error)
            elif served.answer is not None:
                requests.answer(conn, number, served.answer)
            else:
                requests.put_back(conn, number)
                busy.add(number)
        finally:
            if not conn.broken:
                requests.leave(conn, number)
        yield served


def _served(client: PgTrickle, request: Request) -> Served:
    if request.begun >= requests.MOST_BEGUN:
        # Once more would end this process, too.
        return Served(
            request,
            error=f"It was begun {request.begun} times, and each time its process ended before it was done. Look at the"
            " log of who serves requests, for memory most of all, then ask again.",
        )
    try:
        return Served(request, _CARRIED_OUT[request.kind](client, request))
    except PgTrickleError as error:
        return Served(request, error=str(error))
    except Exception as error:
        # What nobody foresaw is this request's error, and no reason to leave the others without an answer.
        _log.exception("%s", request)
        return Served(request, error=f"Unexpected {type(error).__name__}: {redact(str(error)).strip() or 'no message'}")


def _declared(client: PgTrickle, request: Request) -> dict[str, Any]:
    assert request.query is not None
    with _as_asked(client, request) as (declaring, notices):
        declared = declaring.create_or_replace_stream_table(
            request.table.quoted, request.query, initialize=request.initialize, **request.options
        )
    return {
        "stream_table": str(declared.qualified),
        "status": declared.status,
        "refresh_mode": declared.refresh_mode,
        "is_populated": declared.is_populated,
        "notices": notices,
    }


@contextmanager
def _as_asked(client: PgTrickle, request: Request) -> Iterator[tuple[PgTrickle, list[str]]]:
    """A client to which names mean what they meant to who asked, and what its declarations tell."""
    with client.under(request.search_path) as declaring, _heard() as notices:
        with declaring.database.transaction() as conn:
            _refuse_other_path(own_path(conn), request.search_path)
        yield declaring, notices


@contextmanager
def _heard_of(client: PgTrickle) -> Iterator[tuple[PgTrickle, list[str]]]:
    with _heard() as notices:
        yield client, notices


def _refuse_other_path(own: str, meant: str | None) -> None:
    """Raise if names would mean something else: schemas that are gone or closed, or a pooler that drops the path."""
    if own.removesuffix("pg_temp").removesuffix(", ") != (meant or ""):
        raise EnvironmentFault(
            f"Its names are meant along the search_path {meant}, and the server of requests has {own}",
            remedy="Give it USAGE on these schemas and no pooler that drops startup options, or qualify the names.",
        )


def _refreshed(client: PgTrickle, request: Request) -> dict[str, Any] | None:
    """The answer, or None while another refresh runs."""
    result = client.refresh_stream_table(request.table.quoted, force_full=request.force_full)
    if result.action != "SKIP":
        return _told(result)
    if result.fallback_reason in (Skip.LOCKED, Skip.FRONTIER_MOVED, Skip.QUEUED):
        return None
    why = f"it is {result.fallback_reason}"
    if result.held_by:
        why = f"{result.held_by} is refreshed together with it ({result.fallback_reason})"
    raise RefreshError(
        f"It was not refreshed, because {why}",
        stream_table=result.name,
        remedy="End what holds it back, then ask again.",
    )


def _dropped(client: PgTrickle, request: Request) -> dict[str, Any]:
    """What was dropped: nothing if the table that was meant is gone, whatever has its name now."""
    with client.database.transaction() as conn:
        there = records.find(conn, request.table)
    if there is None or there.id != request.options["pgt_id"]:
        return {"dropped": []}
    name, readers = request.table.quoted, bool(request.options["and_readers"])
    return {"dropped": list(client.drop_stream_table(name, cascade=readers, if_exists=True))}


def _altered(client: PgTrickle, request: Request) -> dict[str, Any]:
    """What was changed of the table that was meant. What a file declares is changed there, but for the status."""
    changes = request.options["changes"]
    options = {name: value for name, value in changes.items() if name not in ("query", "status", "accept")}
    check(client.settings, options)
    with client.database.transaction() as conn:
        there = records.find(conn, request.table)
        if there is None or there.id != request.options["pgt_id"]:
            raise UnknownStreamTable(f"The stream table {request.table} that was meant is gone")
        if options or "query" in changes:
            owners.refuse_stranger(conn, str(request.table))
    # What is no query has no names that the path could change.
    asked = _as_asked(client, request) if "query" in changes else _heard_of(client)
    with asked as (declaring, notices):
        altered = declaring.alter_stream_table(request.table.quoted, **changes)
    return {
        "stream_table": str(altered.qualified),
        "altered": sorted(changes),
        "status": altered.status,
        "refresh_mode": altered.refresh_mode,
        "is_populated": altered.is_populated,
        "notices": notices,
    }


_CARRIED_OUT: dict[str, Callable[[PgTrickle, Request], dict[str, Any] | None]] = {
    requests.DECLARE: _declared,
    requests.REFRESH: _refreshed,
    requests.DROP: _dropped,
    requests.ALTER: _altered,
}


def _told(result: RefreshResult) -> dict[str, Any]:
    """The result as `settle` tells it."""
    told = asdict(result)
    kept = {"stream_table": told["name"], **{key: told[key] for key in _TOLD}}
    return dict(json.loads(json.dumps(kept, default=lambda value: value.isoformat())))


_TOLD = (
    "action",
    "fallback_reason",
    "rows_inserted",
    "rows_updated",
    "rows_deleted",
    "duration_ms",
    "data_timestamp",
)


@contextmanager
def _heard() -> Iterator[list[str]]:
    """What a declaration tells its author, which goes into the answer."""
    heard: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield heard
        heard.extend(str(w.message) for w in caught if issubclass(w.category, PgTrickleWarning))
