"""A FULL of a content that hardly changed, without Spark and through it, against PostgreSQL's own refresh."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.client import PgTrickle
from tests.benchmarks import matrix
from tests.benchmarks.measure import Goal, Measured, facts, median, refreshed, timed
from tests.benchmarks.place import installed

_REPEATS = 4
_CHANGES = 100
#: How many times as long as REFRESH MATERIALIZED VIEW.
_WANTED = {"database": 2.0, "spark": 3.0}


def run(dsn: str, spark: object, sizes: Iterable[int]) -> Iterator[Measured]:
    for size in sizes:
        with installed(dsn, spark) as (pt, conn):
            matrix.fill(conn, size)
            for name in ("scan", "join", "aggregate"):
                for placement in _WANTED:
                    yield from _one(pt, conn, size, name, placement)


def _one(pt: PgTrickle, conn: psycopg.Connection, size: int, name: str, placement: str) -> Iterator[Measured]:
    query = matrix.QUERIES[name]
    pt.create_stream_table("st", query, schedule="1h", refresh_mode="FULL", placement=placement)
    conn.execute(sql.SQL("CREATE MATERIALIZED VIEW mv AS {}").format(sql.SQL(query)))
    for cycle in range(_REPEATS):
        matrix.change(conn, size, _CHANGES, cycle)
        seconds, result = refreshed(pt, "st")
        yield Measured("full", name, seconds, {"rows": size, "how": placement, **facts(result)})
        seconds, _ = timed(lambda: conn.execute("REFRESH MATERIALIZED VIEW mv"))
        yield Measured("full", name, seconds, {"rows": size, "how": f"matview, {placement}"})
    pt.drop_stream_table("st")
    conn.execute("DROP MATERIALIZED VIEW mv")


def goals(rows: list[Measured]) -> Iterator[Goal]:
    for size in sorted({row.facts["rows"] for row in rows}):
        for name in dict.fromkeys(row.name for row in rows):
            for placement, wanted in _WANTED.items():
                found, own = (
                    median([r.seconds for r in rows if (r.name, r.facts["rows"], r.facts["how"]) == (name, size, how)])
                    for how in (placement, f"matview, {placement}")
                )
                yield Goal(f"FULL of {size:,} rows, {name}, {placement}: times matview", wanted, found / own)
