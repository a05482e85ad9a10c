"""One measurement: what was run, how long it took, what it read and wrote."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.refresh.result import RefreshResult


@dataclass(frozen=True)
class Measured:
    """A row of the report. `facts` are its columns beside the time."""

    suite: str
    name: str
    seconds: float
    facts: dict[str, Any] = field(default_factory=dict)

    def as_row(self) -> dict[str, Any]:
        return {"suite": self.suite, "name": self.name, "seconds": round(self.seconds, 4), **self.facts}


@dataclass(frozen=True)
class Goal:
    """What the measurements are held against."""

    words: str
    wanted: float
    found: float
    at_most: bool = True

    @property
    def met(self) -> bool:
        return self.found <= self.wanted if self.at_most else self.found >= self.wanted

    def as_row(self) -> dict[str, Any]:
        sign = "<=" if self.at_most else ">="
        return {
            "goal": self.words,
            "wanted": f"{sign} {self.wanted:g}",
            "found": round(self.found, 3),
            "met": "yes" if self.met else "MISSED",
        }


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = perf_counter()
    result = work()
    return perf_counter() - start, result


def refreshed(pt: PgTrickle, name: str, *, full: bool = False) -> tuple[float, RefreshResult]:
    """One refresh, as its caller sees it."""
    seconds, result = timed(lambda: pt.refresh_stream_table(name, force_full=full))
    return seconds, result


def facts(result: RefreshResult) -> dict[str, Any]:
    changed = result.source_changes
    return {
        "action": result.action,
        "changed": changed,
        "read": result.rows_read,
        "read_per_change": round(result.rows_read / changed, 2) if changed else None,
        "written": result.rows_inserted + result.rows_updated + result.rows_deleted,
        "reads": result.reads,
        "jobs": result.spark_jobs,
        "fallback": result.fallback_reason,
    }


def median(values: list[float]) -> float:
    return statistics.median(values)
