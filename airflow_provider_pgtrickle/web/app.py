"""The FastAPI application. Every route needs a logged-in user, and those of a connection the right to read it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from importlib import resources
from typing import Annotated, Any, TypeVar

import anyio
import anyio.to_thread
import psycopg
from airflow.api_fastapi.core_api.security import requires_access_connection, requires_authenticated
from fastapi import Depends, FastAPI, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse

from airflow_provider_pgtrickle.engine.catalog.faults import translated
from airflow_provider_pgtrickle.engine.errors import (
    ConnectionFault,
    PermissionFault,
    PgTrickleError,
    TransientFault,
    UnknownStreamTable,
    UsageError,
)
from airflow_provider_pgtrickle.web import state


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

_T = TypeVar("_T")


async def _within(limiter: anyio.CapacityLimiter, ask: Callable[..., _T], *arguments: Any) -> _T:
    try:
        with anyio.fail_after(LONGEST):
            return await anyio.to_thread.run_sync(partial(ask, *arguments), abandon_on_cancel=True, limiter=limiter)
    except TimeoutError:
        raise _TooLong from None


def create_app() -> FastAPI:
    # The routes of the OpenAPI schema would be open to anyone, because the app's dependencies don't cover them.
    app = FastAPI(
        title="Stream tables",
        dependencies=[Depends(requires_authenticated())],
        openapi_url=None,
    )
    limiter = anyio.CapacityLimiter(_WAITING)
    may_see = [Depends(requires_access_connection(method="GET"))]
    app.add_exception_handler(PgTrickleError, _sentence)
    app.add_exception_handler(psycopg.Error, _sentence)

    @app.get("/", response_class=HTMLResponse)
    def page() -> HTMLResponse:
        nonce = secrets.token_urlsafe(16)
        text = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
            "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
        )
        return HTMLResponse(text.replace("{{nonce}}", nonce), headers={"Content-Security-Policy": policy})

    @app.get(_CONNECTION + "/stream-tables", dependencies=may_see)
    async def stream_tables(connection_id: str) -> list[dict[str, Any]]:
        return await _within(limiter, state.stream_tables, connection_id)

    @app.get(_CONNECTION + "/stream-table", dependencies=may_see)
    async def stream_table(
        connection_id: str, name: str, limit: Annotated[int, Query(ge=1, le=500)] = 50
    ) -> dict[str, Any]:
        return await _within(limiter, state.stream_table, connection_id, name, limit)

    @app.get(_CONNECTION + "/explanation", dependencies=may_see, response_class=PlainTextResponse)
    async def explanation(connection_id: str, name: str) -> str:
        return await _within(limiter, state.explanation, connection_id, name)

    return app


def _sentence(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error.__cause__ or error, psycopg.errors.QueryCanceled):
        error = _TooLong()
    elif isinstance(error, psycopg.Error):
        error = translated(error)
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    return JSONResponse({"detail": str(error)}, status_code=status)
