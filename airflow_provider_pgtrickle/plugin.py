"""The Airflow plugin: a page of stream tables in Airflow's navigation."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from airflow_provider_pgtrickle.links import AssetLink, ExplainLink, RefreshHistoryLink
from airflow_provider_pgtrickle.links.target import PAGE_ROUTE

URL_PREFIX = "/pgtrickle"


class _PageOnDemand:
    """The FastAPI application, made on its first request: most processes that load plugins never serve one."""

    def __init__(self) -> None:
        self._app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._app is None:
            from airflow_provider_pgtrickle.web.app import create_app

            self._app = create_app()
        await self._app(scope, receive, send)


class PgTricklePlugin(AirflowPlugin):
    name = "pgtrickle"
    fastapi_apps: list[Any] = [  # noqa: RUF012 (as Airflow declares it)
        {"app": _PageOnDemand(), "url_prefix": URL_PREFIX, "name": "Stream tables"}
    ]
    react_apps: list[Any] = [  # noqa: RUF012
        {
            # The bundle puts its component there under this name.
            "name": "Stream tables",
            # Below Airflow's base address, whatever that is.
            "bundle_url": f"{URL_PREFIX.lstrip('/')}/page.js",
            "destination": "nav",
            "category": "browse",
            "url_route": PAGE_ROUTE,
        }
    ]
    operator_extra_links: list[Any] = [RefreshHistoryLink(), ExplainLink(), AssetLink()]  # noqa: RUF012
