"""The target of a link: the stream tables of an operator, and an address of the web server."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from airflow.sdk.configuration import conf

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator


def stream_tables(operator: BaseOperator) -> list[str]:
    """The names an operator works on: one, or the members of its refresh unit."""
    for attribute in ("stream_tables", "stream_table", "name"):
        named = getattr(operator, attribute, None)
        if named:
            return [named] if isinstance(named, str) else [str(name) for name in named]
    return []


def url(path: str, *, fragment: str = "", **query: str) -> str:
    """An address of the web server, relative if `base_url` isn't configured on this machine."""
    base = (conf.get("api", "base_url", fallback="") or "").rstrip("/")
    return f"{base}{path}?{urlencode(query)}" + (f"#{fragment}" if fragment else "")
