"""The request to a back end, and a back end's interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class RefreshRequest:
    """Refresh units, upstream first. Their outcome is not returned: it is in the history rows of `run_token`."""

    units: tuple[tuple[str, ...], ...]
    run_token: str
    dsn: str = field(repr=False)
    force_full: bool = False
    initiated_by: str = "airflow"
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings that the PostgreSQL connection overrides."""
    along: tuple[str, ...] = ()
    """Those of the tables that nobody asked for in full, if `force_full`."""


class Backend(Protocol):
    """Runs units one after the other, on one Spark session or application."""

    def refresh(self, request: RefreshRequest) -> None:
        """Refresh all units but those that read a failed one; then raise the first error."""

    def kill(self) -> None:
        """Stop what runs now. A signal handler calls this; what survives can't commit without its lease."""

    def close(self) -> None: ...
