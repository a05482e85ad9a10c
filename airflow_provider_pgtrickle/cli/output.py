"""An answer as a table for people or as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from airflow_provider_pgtrickle.cli.command import Answer


def render(answer: Answer, as_json: bool) -> str:
    """The text to print."""
    if as_json:
        value = answer.data
        if value is None:
            value = answer.rows if answer.rows is not None else answer.text
        return json.dumps(value, default=_json, indent=2, ensure_ascii=False)
    if answer.rows is None:
        return answer.text or ""
    head = f"{answer.text}\n" if answer.text else ""
    return head + table(answer.rows, answer.columns)


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Rows under their headings; numbers to the right.

    >>> print(table([{"name": "a", "rows": 12}, {"name": "bcd", "rows": 3}]))
    name  rows
    ----  ----
    a       12
    bcd      3
    """
    if not rows:
        return "(none)"
    heads = list(columns or rows[0])
    cells = [[_cell(row.get(head)) for head in heads] for row in rows]
    numeric = [
        all(isinstance(row.get(head), int | float | None) and not isinstance(row.get(head), bool) for row in rows)
        for head in heads
    ]
    widths = [max(len(head), *(len(line[i]) for line in cells)) for i, head in enumerate(heads)]

    def line(values: Sequence[str]) -> str:
        padded = (v.rjust(w) if right else v.ljust(w) for v, w, right in zip(values, widths, numeric, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([line(heads), line(["-" * width for width in widths]), *map(line, cells)])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    if isinstance(value, timedelta):
        return str(timedelta(seconds=round(value.total_seconds())))
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return " ".join(str(value).split()) if isinstance(value, str) and "\n" in value else str(value)


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value)
