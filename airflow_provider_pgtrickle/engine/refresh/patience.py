"""A difference that takes too long is stopped and asked for again, with hash joins only.

What the parts of a difference have in common PostgreSQL can't know, so now and then it expects a row where thousands
come, and loops over them. A hash join costs a reading of its table, however wrong the guess was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

import psycopg

from airflow_provider_pgtrickle.engine.errors import PgTrickleError

Planner = tuple[tuple[str, str], ...]
"""PostgreSQL settings for one statement."""

T = TypeVar("T")
_log = logging.getLogger(__name__)

# Fewer changed rows can't be looped over long enough to matter.
_MANY = 2_000
# Above what TPC-H's differences need at SF1 with 75,000 changes, but for the one that loops.
_LEAST_MS, _ROWS_A_MS = 4_000, 50


def patience_ms(changes: int) -> int | None:
    """How long the first try may take; None: as long as it likes."""
    return _LEAST_MS + changes // _ROWS_A_MS if changes >= _MANY else None


def patiently(limit_ms: int | None, run: Callable[[Planner], T]) -> T:
    """Run with the settings of the first try and, where that outlasts its limit, with those of the second."""
    if limit_ms is None:
        return run(())
    started = perf_counter()
    try:
        return run((("statement_timeout", str(limit_ms)),))
    except (PgTrickleError, psycopg.Error):
        # Told by the clock: what the server says of it is in its own language.
        seconds = perf_counter() - started
        if seconds * 1000 < limit_ms:
            raise
        _log.warning("The difference was not there after %.0f s; PostgreSQL computes it with hash joins only.", seconds)
    return run((("enable_nestloop", "off"),))
