"""One measurement: what was run, how long it took, what it read and wrote."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import psutil
import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult


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


class Processor:
    """The processor's time of this process and of a server on this machine, which other work hardly changes.

    A session that ended counts by ticks of 10 ms.
    """

    def __init__(self, conn: psycopg.Connection) -> None:
        """`conn`: any session of the server."""
        session = psutil.Process(conn.info.backend_pid)
        server = session.parent()
        assert server is not None
        self._server = server

    def seconds(self) -> float:
        server = self._server
        live = sum(_run_ns(process.pid) for process in (server, *server.children()))
        ended = server.cpu_times()
        return time.process_time() + live / 1e9 + ended.children_user + ended.children_system

    def of(self, work: Callable[[], Any], enough: float = 0.3, most: int = 20) -> float:
        """Seconds of a call: the mean of as many as make up a sum that can be measured."""
        begun, calls = self.seconds(), 0
        while calls < 2 or (calls < most and self.seconds() - begun < enough):
            work()
            calls += 1
        return (self.seconds() - begun) / calls


def _run_ns(pid: int) -> int:
    """Nanoseconds that a process has run; 0 if it has just ended."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = perf_counter()
    result = work()
    return perf_counter() - start, result


@dataclass(frozen=True)
class Refreshed:
    """One refresh, as its caller sees it."""

    result: RefreshResult
    bytes_moved: int
    """Between all processes of the machine, over TCP: rows read and staged, requests and answers; nothing else runs."""


def refreshed(pt: PgTrickle, name: str, *, full: bool = False) -> tuple[float, Refreshed]:
    before = _loopback_bytes()
    seconds, result = timed(lambda: pt.refresh_stream_table(name, force_full=full))
    return seconds, Refreshed(result, _loopback_bytes() - before)


def _loopback_bytes() -> int:
    """Bytes that the loopback interface has received since the machine started; Linux counts them."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        interface, _, counters = line.partition(":")
        if interface.strip() == "lo":
            return int(counters.split()[0])
    return 0


def facts(refresh: Refreshed) -> dict[str, Any]:
    result, changed = refresh.result, refresh.result.source_changes
    return {
        "action": result.action,
        "changed": changed,
        "read": result.rows_read,
        "read_per_change": round(result.rows_read / changed, 2) if changed else None,
        "written": result.rows_inserted + result.rows_updated + result.rows_deleted,
        "reads": result.reads,
        "bytes": refresh.bytes_moved,
        "jobs": result.spark_jobs,
        "fallback": result.fallback_reason,
    }


def median(values: list[float]) -> float:
    return statistics.median(values)
