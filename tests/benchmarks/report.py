"""The report: JSON for machines, a table for people, plots where matplotlib is installed."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.measure import Goal, Measured


def table(rows: Iterable[dict[str, Any]]) -> str:
    """The rows under the union of their keys, in columns."""
    listed = list(rows)
    names = list(dict.fromkeys(name for row in listed for name in row))
    cells = [[_cell(row.get(name)) for name in names] for row in listed]
    widths = [max(len(name), *(len(line[i]) for line in cells)) if cells else len(name) for i, name in enumerate(names)]
    lines = [names, ["-" * width for width in widths], *cells]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def write(folder: Path, rows: Sequence[Measured], goals: Sequence[Goal], extra: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "processor": platform.processor(), "python": platform.python_version()},
        "goals": [goal.as_row() for goal in goals],
        "measured": [row.as_row() for row in rows],
        **extra,
    }
    (folder / "benchmarks.json").write_text(json.dumps(document, indent=1, default=str) + "\n")
    words = [f"# Benchmarks, {document['at']}, {os.cpu_count()} cores", "", "## Goals", "```"]
    words += [table(goal.as_row() for goal in goals), "```"]
    for suite in dict.fromkeys(row.suite for row in rows):
        words += ["", f"## {suite}", "```", table(row.as_row() for row in rows if row.suite == suite), "```"]
    for name, value in extra.items():
        words += ["", f"## {name}", "```", table(value), "```"]
    (folder / "benchmarks.md").write_text("\n".join(words) + "\n")
    if importlib.util.find_spec("matplotlib"):
        _plot(folder, rows)


def _plot(folder: Path, rows: Sequence[Measured]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matrix = [row for row in rows if row.suite == "matrix"]
    for name in dict.fromkeys(row.name for row in matrix):
        figure, axes = pyplot.subplots()
        lines: dict[str, list[tuple[int, float]]] = {}
        for row in matrix:
            if row.name == name:
                label = f"{row.facts['how']}, {row.facts['share']}"
                lines.setdefault(label, []).append((row.facts["rows"], row.seconds))
        for label, points in lines.items():
            axes.plot(*zip(*sorted(points), strict=True), marker="o", label=label)
        axes.set(title=name, xlabel="rows", ylabel="seconds", xscale="log", yscale="log")
        axes.legend(fontsize="x-small")
        figure.savefig(folder / f"matrix_{name}.svg")
        pyplot.close(figure)
    queries = [row for row in rows if row.suite == "tpch" and row.facts.get("how")]
    if queries:
        names = sorted({row.name for row in queries})
        figure, axes = pyplot.subplots(figsize=(12, 4))
        for offset, how in ((-0.2, "refresh"), (0.2, "spark full")):
            seconds = [
                min((row.seconds for row in queries if row.name == name and row.facts["how"] == how), default=0)
                for name in names
            ]
            axes.bar([place + offset for place in range(len(names))], seconds, width=0.4, label=how)
        axes.set(ylabel="seconds", yscale="log", xticks=range(len(names)), xticklabels=names)
        axes.legend()
        figure.savefig(folder / "tpch.svg")
        pyplot.close(figure)
