"""`python -m tests.benchmarks`: measure, print, and leave JSON, a table and plots in a folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path

from tests.benchmarks import (
    applied,
    floor,
    full,
    immediate,
    matrix,
    place,
    regress,
    regret,
    report,
    scale,
    sliced,
    tpcds,
    tpch_refresh,
)
from tests.benchmarks.measure import Goal, Measured

SUITES = ("applied", "floor", "full", "matrix", "sliced", "tpch", "tpcds", "regress", "regret", "immediate", "scale")
ON_SPARK = {"floor", "full", "matrix", "sliced", "tpch"}


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    rows: list[Measured] = []
    goals: list[Goal] = []
    chosen = options.suites or SUITES
    with place.server(options.dsn) as dsn, place.warm_spark() if ON_SPARK & {*chosen} else nullcontext() as spark:
        suites: dict[str, tuple[Callable[[], Iterable[Measured]], Callable[[list[Measured]], Iterator[Goal]]]] = {
            "applied": (lambda: applied.run(dsn, options.rows), applied.goals),
            "floor": (lambda: floor.run(dsn, spark), floor.goals),
            "full": (lambda: full.run(dsn, spark, options.rows), full.goals),
            "matrix": (lambda: matrix.run(dsn, spark, options.rows, options.shares), matrix.goals),
            "sliced": (lambda: sliced.run(dsn, spark, options.rows), sliced.goals),
            "tpch": (
                lambda: tpch_refresh.run(
                    dsn, spark, options.scale, options.fraction, options.cycles, options.queries, options.placement
                ),
                tpch_refresh.goals,
            ),
            "tpcds": (lambda: tpcds.run(dsn, scale=options.tpcds_scale), tpcds.goals),
            "regress": (lambda: regress.run(dsn, options.regress), regress.goals),
            "regret": (lambda: regret.run(dsn, options.scale, options.tpcds_scale), regret.goals),
            "immediate": (lambda: immediate.run(dsn), immediate.goals),
            "scale": (lambda: scale.run(dsn, options.tables), scale.goals),
        }
        for name in chosen:
            run, judge = suites[name]
            found = []
            for row in run():
                found.append(row)
                print(report.table([row.as_row()]).splitlines()[-1], flush=True)
            rows += found
            goals += judge(found)
    extra = {}
    if in_matrix := [row for row in rows if row.suite == "matrix"]:
        extra["break-even"] = matrix.break_even(in_matrix)
    if of_scale := [row for row in rows if row.suite == "scale"]:
        extra["growth"] = list(scale.predicted(of_scale))
    report.write(options.out, rows, goals, extra)
    print(report.table(goal.as_row() for goal in goals))
    print(f"Written to {options.out}/benchmarks.json and benchmarks.md.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", choices=SUITES, help="which to run; all when none is named")
    parser.add_argument("--dsn", help="a server to use; without one, a server is started and removed")
    parser.add_argument(
        "--rows", type=_numbers, default=[100_000, 1_000_000], help="table sizes of the matrix, of FULL and of sliced"
    )
    parser.add_argument(
        "--shares", type=lambda text: text.split(","), default=list(matrix.SHARES), help="changed shares of the matrix"
    )
    parser.add_argument("--scale", type=float, default=0.1, help="TPC-H scale factor")
    parser.add_argument("--fraction", type=float, default=0.01, help="share of TPC-H's rows changed in a cycle")
    parser.add_argument(
        "--queries", type=_numbers, default=list(range(1, 23)), help="TPC-H queries by number, comma-separated"
    )
    parser.add_argument("--placement", default="spark", choices=("spark", "auto", "database"), help="of TPC-H's tables")
    parser.add_argument("--tpcds-scale", type=float, default=tpcds.SCALE, help="TPC-DS scale factor")
    parser.add_argument(
        "--regress", type=Path, help="PostgreSQL's src/test/regress; without it, it comes from the source package"
    )
    parser.add_argument("--tables", type=_numbers, default=list(scale.SIZES), help="numbers of stream tables of scale")
    parser.add_argument("--cycles", type=int, default=2, help="TPC-H cycles")
    parser.add_argument("--out", type=Path, default=Path("build/benchmarks"), help="folder of the report")
    return parser


def _numbers(text: str) -> list[int]:
    return [int(part.replace("_", "")) for part in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
