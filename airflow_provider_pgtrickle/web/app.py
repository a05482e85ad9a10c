"""The FastAPI application. Every route needs a logged-in user; those of a connection need the right to see it."""

from __future__ import annotations

import secrets
from importlib import resources
from typing import Annotated, Any

import psycopg
from airflow.api_fastapi.core_api.security import requires_access_connection, requires_authenticated
from fastapi import Depends, FastAPI, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse

from airflow_provider_pgtrickle.catalog.faults import translated
from airflow_provider_pgtrickle.errors import (
    ConnectionFault,
    PermissionFault,
    PgTrickleError,
    UnknownStreamTable,
    UsageError,
)
from airflow_provider_pgtrickle.web import state

_STATUS: tuple[tuple[type[PgTrickleError], int], ...] = (
    (UnknownStreamTable, 404),
    (UsageError, 404),
    (PermissionFault, 403),
    (ConnectionFault, 502),
    (PgTrickleError, 500),
)

_CONNECTION = "/api/connections/{connection_id}/stream-tables"


def create_app() -> FastAPI:
    # The schema's own routes would stand outside the app's dependencies, open to anyone.
    app = FastAPI(
        title="Stream tables",
        dependencies=[Depends(requires_authenticated())],
        openapi_url=None,
    )
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

    @app.get(_CONNECTION, dependencies=may_see)
    def stream_tables(connection_id: str) -> list[dict[str, Any]]:
        return state.stream_tables(connection_id)

    @app.get(_CONNECTION + "/{name}", dependencies=may_see)
    def stream_table(connection_id: str, name: str, limit: Annotated[int, Query(ge=1, le=500)] = 50) -> dict[str, Any]:
        return state.stream_table(connection_id, name, limit)

    @app.get(_CONNECTION + "/{name}/explanation", dependencies=may_see, response_class=PlainTextResponse)
    def explanation(connection_id: str, name: str) -> str:
        return state.explanation(connection_id, name)

    return app


def _sentence(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, psycopg.Error):
        error = translated(error)
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    return JSONResponse({"detail": str(error)}, status_code=status)
