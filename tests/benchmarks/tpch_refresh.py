"""TPC-H: each of the 22 queries as a stream table, refreshed by its delta and by FULL, and run plainly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from tests.benchmarks import tpch
from tests.benchmarks.measure import Goal, Measured, facts, median, refreshed, timed
from tests.benchmarks.place import installed
from tests.benchmarks.tpch.queries import NUMBERS


def run(
    dsn: str,
    spark: object,
    scale: float,
    fraction: float,
    cycles: int,
    numbers: Iterable[int] = NUMBERS,
    placement: str = "spark",
) -> Iterator[Measured]:
    with installed(dsn, spark, placement) as (pt, conn):
        seconds, _ = timed(lambda: tpch.load(conn, scale))
        yield Measured("tpch", "load", seconds, {"scale": scale})
        wanting = []
        for number in numbers:
            name = f"q{number:02}"
            try:
                pt.create_stream_table(name, tpch.query(number, scale), schedule="1h", refresh_mode="AUTO")
            except PgTrickleError as error:
                yield Measured("tpch", name, 0.0, {"action": "REFUSED", "fallback": str(error)})
                continue
            wanting.append((name, number))
        for cycle in range(cycles):
            seconds, _ = timed(partial(tpch.change, conn, cycle, fraction))
            yield Measured("tpch", "changes", seconds, {"cycle": cycle})
            for name, number in wanting:
                # The first of two reads what has just changed, as the refresh would otherwise.
                plain = min(timed(partial(conn.execute, tpch.query(number, scale)))[0] for _ in range(2))
                seconds, result = refreshed(pt, name)
                told = {"cycle": cycle, "how": "refresh", "plain": round(plain, 4)}
                yield Measured("tpch", name, seconds, {**told, **facts(result)})
        for name, _ in wanting:
            seconds, result = refreshed(pt, name, full=True)
            yield Measured("tpch", name, seconds, {"how": "full", **facts(result)})


def goals(rows: list[Measured]) -> Iterator[Goal]:
    ratios = []
    for name in sorted({row.name for row in rows if row.name.startswith("q")}):
        deltas = [row for row in rows if row.name == name and row.facts.get("how") == "refresh"]
        full = [row.seconds for row in rows if row.name == name and row.facts.get("how") == "full"]
        differential = bool(deltas) and all(row.facts["action"] == "DIFFERENTIAL" for row in deltas)
        yield Goal(f"{name}: stays DIFFERENTIAL", 1, float(differential), at_most=False)
        if deltas and full:
            took, plain = median([row.seconds for row in deltas]), median([row.facts["plain"] for row in deltas])
            yield Goal(f"{name}: faster than FULL", 1, full[0] / took, at_most=False)
            yield Goal(f"{name}: faster than the plain query", 1, plain / took, at_most=False)
        ratios += [row.facts["read_per_change"] for row in deltas if row.facts.get("read_per_change")]
    if ratios:
        yield Goal("rows read per row changed, median", 20, median(ratios))
