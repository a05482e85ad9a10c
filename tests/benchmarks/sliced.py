"""How a large change gets from PostgreSQL into the stage: each way in turns, on one snapshot.

`before` reads one statement by JDBC and stages it from Arrow by CSV (no FULL, whose reader meets the stored rows
first), `carried` carries the same statement's rows from COPY to COPY, `sliced` does so with slices of it side by side,
`lowered` joins and aggregates whole contents in Spark.

Elapsed time says little on a busy machine; it comes near to the time of the processor, of PostgreSQL and of Spark with
its Python.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh.executor import Computation, Staged, StageTarget
from airflow_provider_pgtrickle.engine.spark.execute import SparkExecutor
from airflow_provider_pgtrickle.engine.spark.leaf import Leaf, Snapshot, portable_dsn, read
from airflow_provider_pgtrickle.engine.spark.stage import copy_from_executors, with_row_id
from tests.benchmarks import matrix, place
from tests.benchmarks.measure import Goal, Measured, median, timed
from tests.ways import prefer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHAPES = {
    **{name: matrix.QUERIES[name] for name in ("scan", "join", "aggregate", "join_aggregate")},
    # PostgreSQL computes long, and few rows are carried.
    "long": "SELECT s.id, c.name FROM sale s JOIN customer c ON c.id = s.customer"
    " WHERE md5(md5(md5(s.label || s.amount || c.name))) < '1'",
}
_SHARE = 0.6
_REPEATS = 2
_TICKS = os.sysconf("SC_CLK_TCK")


def run(dsn: str, spark: Any, sizes: Iterable[int]) -> Iterator[Measured]:
    for size in sizes:
        for shape in SHAPES:
            with place.database(dsn) as url:
                prepare(url, size, shape)
                yield from measure(url, spark, size, shape)


def prepare(url: str, size: int, shape: str) -> None:
    """The first content, and a change of many rows."""
    with PgTrickle(url, placement="database") as pt, psycopg.connect(url, autocommit=True) as conn:
        pt.install()
        matrix.fill(conn, size)
        pt.create_stream_table("st", SHAPES[shape], schedule="1h", refresh_mode="DIFFERENTIAL")
        matrix.change(conn, size, int(size * _SHARE), 1)


def measure(url: str, spark: SparkSession, size: int, shape: str) -> Iterator[Measured]:
    """The difference, then a FULL that changes nothing."""
    turns = _Turns(spark, Database(url))
    for what, full in (("difference", False), ("FULL", True)):
        for lowered in (False, True) if full else (False,):
            turns.found, turns.abandon = [], lowered
            if lowered:
                with psycopg.connect(url, autocommit=True) as conn:
                    prefer(conn, "st", "lowered")
            with (
                PgTrickle(
                    url,
                    executor=lambda: turns,
                    placement="spark",
                    differential_max_change_ratio=0.0,
                    collect_max_rows=1,
                    read_partition_rows=10 * size if lowered else None,
                ) as pt,
                suppress(_Abandoned),
            ):
                pt.refresh_stream_table("st", force_full=full)
            for way, seconds, processor, rows in turns.found:
                facts = {"rows": size, "what": what, "staged": rows, **processor}
                yield Measured("sliced", shape, seconds, {"how": way, **facts})


class _Abandoned(Exception):
    """The refresh was only measured."""


@dataclass
class _Turns:
    """An executor that computes everything in each way, some times in turns."""

    spark: SparkSession
    database: Database

    found: list[tuple[str, float, dict[str, float], int]] = field(default_factory=list)
    abandon: bool = False

    def compute(self, snapshot_id: str, computation: Computation, stage: StageTarget | None) -> Staged:
        executor = SparkExecutor(self.spark, self.database)
        if stage is None:
            return executor.compute(snapshot_id, computation, stage)
        one = replace(computation, spark=None, slices=())
        ways: dict[str, Callable[[], int]] = {}
        if self.abandon:
            if computation.spark is not None:
                ways["lowered"] = lambda: executor.compute(snapshot_id, computation, stage).rows
        else:
            if computation.meeting is None:
                ways["before"] = lambda: self._by_jdbc(snapshot_id, computation, stage)
            ways["carried"] = lambda: executor.compute(snapshot_id, one, stage).rows
            if computation.slices:
                ways["sliced"] = lambda: executor.compute(snapshot_id, computation, stage).rows
        for _ in range(_REPEATS):
            for name, way in ways.items():
                before = _processor(self.database)
                seconds, rows = timed(way)
                after = _processor(self.database)
                spent = {kind: round(after[kind] - before[kind], 2) for kind in after}
                self.found.append((name, seconds, spent, rows))
                self._empty(stage)
        if self.abandon:
            raise _Abandoned
        return executor.compute(snapshot_id, replace(computation, spark=None), stage)

    def _by_jdbc(self, snapshot_id: str, computation: Computation, stage: StageTarget) -> int:
        snapshot = Snapshot(self.database.jdbc, snapshot_id)
        names = tuple(f"c{n}" for n in range(len(computation.columns)))
        rows = read(self.spark, snapshot, Leaf(computation.sql, (), ("__pgt_w", "__pgt_key", *names)))
        identified = with_row_id(rows, names, identified=computation.identified)
        columns = ("__pgt_w", "__pgt_row_id", *stage.columns)
        return copy_from_executors(identified, portable_dsn(snapshot.jdbc), stage.schema, stage.table, columns)

    def _empty(self, stage: StageTarget) -> None:
        with self.database.connect(autocommit=True) as conn:
            conn.execute(sql.SQL("TRUNCATE {}").format(sql.Identifier(stage.schema, stage.table)))


def _processor(database: Database) -> dict[str, float]:
    """Seconds of the processor that the server and this process with all its children have spent."""
    # What a backend spent is the server's when it has ended, so they are given a moment.
    time.sleep(0.5)
    with database.connect(autocommit=True) as conn:
        row = conn.execute("SELECT pg_catalog.pg_read_file('postmaster.pid')").fetchone()
    assert row is not None
    postmaster = int(row[0].split()[0])
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        pid = int(path.parent.name)
        parents[pid] = int(fields[1])
        spent[pid] = sum(map(int, fields[11:15])) / _TICKS
    server = sum(seconds for pid, seconds in spent.items() if postmaster in (pid, parents[pid]))
    return {"postgresql": server, "spark": sum(seconds for pid, seconds in spent.items() if _descends(pid, parents))}


def _descends(pid: int, parents: dict[int, int]) -> bool:
    while pid > 1 and pid != os.getpid():
        pid = parents.get(pid, 0)
    return pid == os.getpid()


def goals(rows: list[Measured]) -> Iterator[Goal]:
    for key in dict.fromkeys((row.facts["rows"], row.facts["what"], row.name) for row in rows):
        same = [row for row in rows if (row.facts["rows"], row.facts["what"], row.name) == key]
        taken = {how: [r for r in same if r.facts["how"] == how] for how in ("before", "carried", "sliced", "lowered")}
        base = "before" if taken["before"] else "carried"
        before = taken.pop(base)
        for how, measured in taken.items():
            if not measured:
                continue
            size, what, shape = key
            words = f"{what} of {size:,} rows, {shape}, {how}: times as fast as {base}"
            yield Goal(f"{words}, elapsed", 1.6, _ratio(before, measured, lambda r: r.seconds), at_most=False)
            yield Goal(f"{words}, processor", 1.6, _ratio(before, measured, _spent), at_most=False)


def _ratio(before: list[Measured], after: list[Measured], value: Callable[[Measured], float]) -> float:
    return median([value(row) for row in before]) / max(median([value(row) for row in after]), 0.001)


def _spent(row: Measured) -> float:
    return float(row.facts["postgresql"] + row.facts["spark"])
