"""Regret: what AUTO took after five cycles, against each of its ways forced on the same changes.

Three tables have the same query: in mode AUTO, as a difference without any bound, and as FULL. After five cycles in
which only AUTO refreshes, and a FULL by which the others catch up, all three refresh five times, in turn; medians are
compared. A way that took five times as long as AUTO is not the best, and isn't measured again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from tests.benchmarks import matrix, place, tpcds, tpch
from tests.benchmarks.measure import Goal, Measured, median, timed

LEARNING, MEASURED = 5, 5
MATRIX_ROWS = 100_000
_HOPELESS = 5.0


def run(dsn: str, tpch_scale: float, tpcds_scale: float, numbers: Iterable[int] = tpcds.NUMBERS) -> Iterator[Measured]:
    for share in matrix.SHARES:
        changes = int(MATRIX_ROWS * (matrix.SHARES[share] or 100 / MATRIX_ROWS))
        queries = {f"{name}, {share}": query for name, query in matrix.QUERIES.items()}
        yield from _measured(
            dsn,
            queries,
            lambda conn: matrix.fill(conn, MATRIX_ROWS),
            lambda conn, cycle, changes=changes: matrix.change(conn, MATRIX_ROWS, changes, cycle),  # type: ignore[misc]
        )
    yield from _measured(
        dsn,
        {f"TPC-H q{number:02}": tpch.query(number, tpch_scale) for number in range(1, 23)},
        lambda conn: tpch.load(conn, tpch_scale),
        lambda conn, cycle: tpch.change(conn, cycle, 0.01),
    )
    yield from _measured(
        dsn,
        {f"TPC-DS q{number:02}": tpcds.texts()[number] for number in numbers},
        lambda conn: tpcds.load(conn, tpcds_scale),
        lambda conn, cycle: tpcds.change(conn, cycle, tpcds.FRACTION),
    )


def _measured(
    dsn: str,
    queries: Mapping[str, str],
    load: Callable[[psycopg.Connection], object],
    change: Callable[[psycopg.Connection, int], object],
) -> Iterator[Measured]:
    with (
        place.database(dsn) as url,
        PgTrickle(url, placement="database") as chooses,
        PgTrickle(url, placement="database", differential_max_change_ratio=0.0) as bound,
        psycopg.connect(url, autocommit=True) as conn,
    ):
        chooses.install()
        load(conn)
        wanting = {}
        for number, (title, query) in enumerate(queries.items()):
            named = tpcds.named(conn, query)
            try:
                for way, client in (("auto", chooses), ("difference", bound), ("full", bound)):
                    client.create_stream_table(f"{way}_{number}", named)
            except PgTrickleError as error:
                yield Measured("regret", title, 0.0, {"action": "REFUSED", "why": str(error)})
                continue
            wanting[number] = title
        first: dict[int, float] = {}
        for cycle in range(LEARNING):
            change(conn, cycle)
            for number in wanting:
                seconds, _ = timed(partial(chooses.refresh_stream_table, f"auto_{number}"))
                first.setdefault(number, seconds)
        for number in wanting:
            for way in ("difference", "full"):
                bound.refresh_stream_table(f"{way}_{number}", force_full=True)
        yield from _in_turn(conn, chooses, bound, wanting, first, change)


def _in_turn(
    conn: psycopg.Connection,
    chooses: PgTrickle,
    bound: PgTrickle,
    wanting: Mapping[int, str],
    first: Mapping[int, float],
    change: Callable[[psycopg.Connection, int], object],
) -> Iterator[Measured]:
    took: dict[tuple[int, str], list[float]] = {}
    chose: dict[int, list[str]] = {}
    changed: set[int] = set()
    for cycle in range(LEARNING, LEARNING + MEASURED):
        change(conn, cycle)
        # The first one to read what has just changed pays for it.
        ways = deque(("auto", "difference", "full"))
        ways.rotate(cycle)
        for number in wanting:
            for way in ways:
                known = took.setdefault((number, way), [])
                if way != "auto" and known and median(known) > _HOPELESS * median(took[number, "auto"]):
                    continue
                client = chooses if way == "auto" else bound
                seconds, result = timed(
                    partial(client.refresh_stream_table, f"{way}_{number}", force_full=way == "full")
                )
                known.append(seconds)
                if way == "auto":
                    chose.setdefault(number, []).append(result.action)
                    if result.action != "NO_DATA":
                        changed.add(number)
    for number, title in wanting.items():
        if number not in changed:
            continue
        ms = {way: round(median(took[number, way]) * 1000, 1) for way in ("auto", "difference", "full")}
        best = min(ms["difference"], ms["full"])
        yield Measured(
            "regret",
            title,
            ms["auto"] / 1000,
            {
                "chosen": max(chose[number], key=chose[number].count),
                "auto ms": ms["auto"],
                "difference ms": ms["difference"],
                "full ms": ms["full"],
                "times the best": round(ms["auto"] / best, 2),
                "first ms": round(first[number] * 1000),
            },
        )


def goals(rows: list[Measured]) -> Iterator[Goal]:
    judged = [row.facts for row in rows if "auto ms" in row.facts]
    best = [min(row["difference ms"], row["full ms"]) for row in judged]
    over = [row["auto ms"] - ms for row, ms in zip(judged, best, strict=True)]
    near = sum(more <= max(0.25 * ms, 30) for more, ms in zip(over, best, strict=True))
    twice = sum(more > ms and more > 30 for more, ms in zip(over, best, strict=True))
    yield Goal("chosen ways within 1.25 times the best, or 30 ms", len(judged), near, at_most=False)
    yield Goal("chosen ways that take more than twice the best and 30 ms", 0, twice)
