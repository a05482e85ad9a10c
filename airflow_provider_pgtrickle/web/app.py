"""The FastAPI application. Every route needs a logged-in user, and those of a connection the right to read it.

What changes something needs the right to edit the connection, and a request that no other site can send.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from functools import partial
from importlib import resources
from typing import Annotated, Any, TypeVar

import anyio
import anyio.to_thread
import psycopg
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_connection, requires_authenticated
from airflow.api_fastapi.logging.decorators import action_logging
from airflow.configuration import conf
from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from pydantic import BaseModel, Field
from starlette.types import ASGIApp, Receive, Scope, Send

from airflow_provider_pgtrickle.engine.catalog.faults import translated
from airflow_provider_pgtrickle.engine.errors import (
    ConnectionFault,
    PermissionFault,
    PgTrickleError,
    TransientFault,
    UnknownStreamTable,
    UsageError,
    caller,
)
from airflow_provider_pgtrickle.links.target import page_url
from airflow_provider_pgtrickle.web import actions, metadata, state


class _TooLong(PgTrickleError):
    def __init__(self) -> None:
        super().__init__("The database took too long to answer", remedy="Try again, or ask it with psql.")


_STATUS: tuple[tuple[type[PgTrickleError], int], ...] = (
    (UnknownStreamTable, 404),
    (UsageError, 404),
    (PermissionFault, 403),
    (ConnectionFault, 502),
    (TransientFault, 503),
    (_TooLong, 504),
    (PgTrickleError, 500),
)

#: A connection's id may hold a slash. A stream table's name may hold anything, so it is a query parameter.
_CONNECTION = "/api/connections/{connection_id:path}"

#: Seconds until an answer, whatever the database does. A frozen server ignores its own timeouts.
LONGEST = 30.0
#: The number of requests that may wait for a database at once, in threads that the API server doesn't use.
_WAITING = 8
#: Seconds, and databases at once, for counting tables in the list of connections: those that are dead hold nobody up.
COUNTED = 3.0
_COUNTING = 4
#: What no form and no link of another site can send, and no script either: a browser asks us first, and we don't agree.
CSRF_HEADER = "X-Pgtrickle-Page"

_T = TypeVar("_T")


class Asked(BaseModel):
    """What a person wants done."""

    action: actions.Action
    name: str = Field(max_length=300)
    reason: str | None = Field(default=None, max_length=300)


class _InAirflowsWords:
    """Has errors name what a person in front of Airflow can do, and not what a Python program would call."""

    def __init__(self, served: ASGIApp) -> None:
        self._served = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        words = caller.set("dag")
        try:
            await self._served(scope, receive, send)
        finally:
            caller.reset(words)


async def _within(limiter: anyio.CapacityLimiter, ask: Callable[..., _T], *arguments: Any) -> _T:
    try:
        with anyio.fail_after(LONGEST):
            return await anyio.to_thread.run_sync(partial(ask, *arguments), abandon_on_cancel=True, limiter=limiter)
    except TimeoutError:
        raise _TooLong from None


def _from_our_page(request: Request) -> None:
    """Refuse what a browser sends because of another site. The session's cookie alone doesn't tell."""
    if CSRF_HEADER not in request.headers or request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise HTTPException(403, "Forbidden")


def _bundle() -> tuple[bytes, str]:
    """The page's script as it is shipped, and its digest."""
    script = resources.files(__package__).joinpath("page.js").read_bytes()
    return script, f'"{hashlib.sha256(script).hexdigest()[:32]}"'


def create_app() -> FastAPI:
    # The routes of the OpenAPI schema would be open to anyone, because the app's dependencies don't cover them.
    app = FastAPI(
        title="Stream tables",
        dependencies=[Depends(requires_authenticated())],
        openapi_url=None,
    )
    limiter, counting = anyio.CapacityLimiter(_WAITING), anyio.CapacityLimiter(_COUNTING)
    may_see = [Depends(requires_access_connection(method="GET"))]
    may_edit = [
        Depends(_from_our_page),
        Depends(requires_access_connection(method="GET")),
        Depends(requires_access_connection(method="PUT")),
        # Airflow's audit log has who asked for what, and why.
        Depends(action_logging(event="pgtrickle action")),
    ]
    app.add_middleware(_InAirflowsWords)
    app.add_exception_handler(PgTrickleError, _sentence)
    app.add_exception_handler(psycopg.Error, _sentence)

    @app.get("/page.js")
    def script(request: Request) -> Response:
        text, digest = _bundle()
        headers = {"ETag": digest, "Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}
        if request.headers.get("If-None-Match") == digest:
            return Response(status_code=304, headers=headers)
        return Response(text, media_type="text/javascript", headers=headers)

    @app.get("/")
    def page(conn_id: str | None = None, stream_table: str | None = None) -> RedirectResponse:
        """Where the page stood in earlier releases."""
        base = conf.get("api", "base_url", fallback="") or ""
        return RedirectResponse(page_url(base, conn_id=conn_id, stream_table=stream_table))

    @app.get("/api/connections")
    async def connections(user: GetUserDep) -> list[dict[str, Any]]:
        found = await _within(limiter, metadata.connections, user)
        # Null is for those that aren't asked, and for databases without a catalog.
        counted: list[dict[str, Any]] = [
            {**connection, "stream_tables": None, "failed": connection["conn_type"] == metadata.OURS}
            for connection in found
        ]

        async def count(connection: dict[str, Any]) -> None:
            # One that doesn't answer says why when it is chosen.
            with contextlib.suppress(Exception):
                connection["stream_tables"] = await _within(counting, state.count, connection["conn_id"])
                connection["failed"] = False

        with anyio.move_on_after(COUNTED):
            async with anyio.create_task_group() as asking:
                for connection in counted:
                    if connection["conn_type"] == metadata.OURS:
                        asking.start_soon(count, connection)
        return sorted(counted, key=lambda c: not c["stream_tables"])

    @app.get(_CONNECTION + "/stream-tables", dependencies=may_see)
    async def stream_tables(connection_id: str) -> list[dict[str, Any]]:
        return await _within(limiter, state.stream_tables, connection_id)

    @app.get(_CONNECTION + "/graph", dependencies=may_see)
    async def graph(connection_id: str, user: GetUserDep) -> dict[str, Any]:
        found = await _within(limiter, state.graph, connection_id)
        refreshed_by = {table["name"]: table.pop("last_initiated_by") for table in found["tables"]}
        return {
            **found,
            "gone": await _within(limiter, metadata.gone, refreshed_by, found["owners"]),
            "may_edit": await _within(limiter, metadata.may, user, "PUT", connection_id),
        }

    @app.get(_CONNECTION + "/pending", dependencies=may_see)
    async def pending(connection_id: str) -> list[dict[str, Any]]:
        return await _within(limiter, state.pending, connection_id)

    @app.get(_CONNECTION + "/growth", dependencies=may_see)
    async def growth(connection_id: str) -> list[dict[str, Any]]:
        return await _within(limiter, state.growth, connection_id)

    @app.get(_CONNECTION + "/costs", dependencies=may_see)
    async def costs(connection_id: str, hours: Annotated[int, Query(ge=1, le=24 * 31)] = 24) -> list[dict[str, Any]]:
        return await _within(limiter, state.costs, connection_id, hours)

    @app.get(_CONNECTION + "/stream-table", dependencies=may_see)
    async def stream_table(
        connection_id: str, name: str, user: GetUserDep, limit: Annotated[int, Query(ge=1, le=500)] = 50
    ) -> dict[str, Any]:
        found = await _within(limiter, state.stream_table, connection_id, name, limit)
        around = await _within(limiter, _around, user, connection_id, found)
        for row in found["history"]:
            row.pop("run_token")
        return {**found, **around}

    @app.get(_CONNECTION + "/plan", dependencies=may_see)
    async def plan(connection_id: str, name: str, refresh_id: int) -> dict[str, str | None]:
        return {"plan": await _within(limiter, state.refresh_plan, connection_id, name, refresh_id)}

    @app.get(_CONNECTION + "/explanation", dependencies=may_see, response_class=PlainTextResponse)
    async def explanation(connection_id: str, name: str) -> str:
        return await _within(limiter, state.explanation, connection_id, name)

    @app.get(_CONNECTION + "/explain", dependencies=may_see)
    async def explain(connection_id: str, name: str) -> dict[str, Any]:
        return await _within(limiter, state.explain, connection_id, name)

    @app.post(_CONNECTION + "/action", dependencies=may_edit)
    async def action(connection_id: str, asked: Asked, user: GetUserDep) -> dict[str, str]:
        by = user.get_name()
        done = await _within(
            limiter, actions.carry_out, connection_id, asked.action, asked.name, asked.reason or None, by
        )
        return {"done": done}

    return app


def _around(user: Any, connection_id: str, table: dict[str, Any]) -> dict[str, Any]:
    """What Airflow knows of the table: its DAG, the runs in its history, what the user may do."""
    by = [row["initiated_by"] for row in table["history"] if (row["initiated_by"] or "").startswith("airflow ")]
    owner = table["owner"] or {}
    # A graph that declares the table no more doesn't refresh it either.
    graphs = {table["name"]: owner["graph"]} if owner and not owner["removed_at"] else {}
    initiators = {table["name"]: by[0] if by else None}
    gone = metadata.gone(initiators, {table["name"]: owner} if owner else {})
    return {
        "dag": metadata.dags(user, initiators, graphs).get(table["name"]),
        "gone": gone.get(table["name"]),
        "assets": metadata.assets(
            user, connection_id, [table["name"], *(source["name"] for source in table["sources"])]
        ),
        "runs": metadata.runs(user, table["history"]),
        "may_edit": metadata.may(user, "PUT", connection_id),
    }


def _sentence(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error.__cause__ or error, psycopg.errors.QueryCanceled):
        error = _TooLong()
    elif isinstance(error, psycopg.Error):
        error = translated(error)
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    return JSONResponse({"detail": str(error)}, status_code=status)
