"""TPC-H: each of the 22 queries as a stream table, refreshed by its delta and by FULL on the same changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from tests.benchmarks import tpch
from tests.benchmarks.measure import Goal, Measured, facts, median, refreshed, timed
from tests.benchmarks.place import installed
from tests.benchmarks.tpch.queries import NUMBERS


def run(
    dsn: str, spark: object, scale: float, fraction: float, cycles: int, numbers: Iterable[int] = NUMBERS
) -> Iterator[Measured]:
    with installed(dsn, spark) as (pt, conn):
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
            wanting.append(name)
        for cycle in range(cycles):
            seconds, _ = timed(partial(tpch.change, conn, cycle, fraction))
            yield Measured("tpch", "changes", seconds, {"cycle": cycle})
            for name in wanting:
                seconds, result = refreshed(pt, name)
                yield Measured("tpch", name, seconds, {"cycle": cycle, "how": "refresh", **facts(result)})
        for name in wanting:
            seconds, result = refreshed(pt, name, full=True)
            yield Measured("tpch", name, seconds, {"how": "spark full", **facts(result)})


def goals(rows: list[Measured]) -> Iterator[Goal]:
    ratios = []
    for name in sorted({row.name for row in rows if row.name.startswith("q")}):
        deltas = [row for row in rows if row.name == name and row.facts.get("how") == "refresh"]
        full = [row.seconds for row in rows if row.name == name and row.facts.get("how") == "spark full"]
        differential = bool(deltas) and all(row.facts["action"] == "DIFFERENTIAL" for row in deltas)
        yield Goal(f"{name}: stays DIFFERENTIAL", 1, float(differential), at_most=False)
        if deltas and full:
            yield Goal(f"{name}: faster than FULL", 1, full[0] / median([row.seconds for row in deltas]), at_most=False)
        ratios += [row.facts["read_per_change"] for row in deltas if row.facts.get("read_per_change")]
    if ratios:
        yield Goal("rows read per row changed, median", 20, median(ratios))
