"""What a back end is asked to do, and what it can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class RefreshRequest:
    """Refresh units, upstream first. The outcome is not returned: it is the history rows of `run_token`."""

    units: tuple[tuple[str, ...], ...]
    run_token: str
    dsn: str = field(repr=False)
    force_full: bool = False
    initiated_by: str = "airflow"
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the PostgreSQL connection says about settings."""


class Backend(Protocol):
    """Runs units one after the other, on a Spark that it starts once."""

    def refresh(self, request: RefreshRequest) -> None:
        """Run to the end; raises the first thing that went wrong. What doesn't read a failed unit is still done."""

    def kill(self) -> None:
        """Stop what runs now. Called in a signal handler; the fence makes sure even of what survives."""

    def close(self) -> None: ...
