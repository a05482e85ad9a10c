"""The target of a link: the stream tables of an operator, and an address of the web server."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from airflow.sdk.configuration import conf

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

#: Where Airflow's UI shows the page: the route of the plugin's React app.
PAGE_ROUTE = "stream-tables"


def stream_tables(operator: BaseOperator) -> list[str]:
    """The names an operator works on: one, or the members of its refresh unit."""
    for attribute in ("stream_tables", "stream_table", "name"):
        named = getattr(operator, attribute, None)
        if named:
            return [named] if isinstance(named, str) else [str(name) for name in named]
    return []


def url(path: str, **query: str) -> str:
    """An address of the web server, relative if `base_url` isn't configured on this machine."""
    return _joined(conf.get("api", "base_url", fallback="") or "", path, query)


def page_url(base: str, *, conn_id: str | None, stream_table: str | None = None, part: str | None = None) -> str:
    """The page, opened on a stream table and a part of what it shows."""
    query = {"conn_id": conn_id, "stream_table": stream_table, "part": part}
    return _joined(base, f"/plugin/{PAGE_ROUTE}", {key: value for key, value in query.items() if value})


def _joined(base: str, path: str, query: dict[str, str]) -> str:
    return f"{base.rstrip('/')}{path}" + (f"?{urlencode(query)}" if query else "")
