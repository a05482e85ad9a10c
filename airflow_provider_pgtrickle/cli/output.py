"""An answer as a table for people or as JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_pgtrickle.cli.command import Answer

if TYPE_CHECKING:
    from rich.table import Table


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


def show(answer: Answer, as_json: bool) -> None:
    """Print it: on a terminal a table that fits, with colours; else as plain text, which programs can cut."""
    if as_json or answer.rows is None or not answer.rows or not sys.stdout.isatty():
        print(render(answer, as_json), flush=True)
    else:
        from rich.console import Console

        Console().print(grid(answer))
    for note in answer.notes:
        print(f"pgtrickle: {note}", file=sys.stderr)


#: Values that mean all is well, that something should be looked at, and that something is wrong.
_STYLES = {
    **dict.fromkeys(("ACTIVE", "COMPLETED", "EQUAL", "DIFFERENTIAL", "TOPK", "IMMEDIATE"), "green"),
    **dict.fromkeys(("INITIALIZING", "SKIP", "SKIPPED", "RUNNING", "FULL", "REINITIALIZE"), "yellow"),
    **dict.fromkeys(("SUSPENDED", "ERROR", "FAILED", "DIFFERENT"), "bold red"),
    "NO_DATA": "dim",
}
#: Words up to this length are never broken.
_LONGEST_WORD = 20
#: Columns in which any value is worth a look.
_LOUD = {"gate": "yellow", "error": "red", "error_message": "red"}


def grid(answer: Answer) -> Table:
    """The rows for a terminal: columns that hold nothing are left out, long values are folded."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows = list(answer.rows or ())
    heads = [
        head
        for head in answer.columns or (rows[0] if rows else ())
        if any(row.get(head) not in (None, "", False) for row in rows)
    ]
    made = Table(box=box.SIMPLE_HEAD, title=answer.text, pad_edge=False, header_style="bold")
    for number, head in enumerate(heads):
        right = all(isinstance(row.get(head), int | float | timedelta | None) for row in rows)
        whole = not number or any(isinstance(row.get(head), datetime | timedelta) for row in rows)
        title = head.replace("_", " ")
        made.add_column(
            title,
            justify="right" if right else "left",
            no_wrap=whole,
            overflow="fold",
            min_width=min(
                _LONGEST_WORD, max(map(len, " ".join([title, *(_short(row.get(head)) for row in rows)]).split()))
            ),
        )
    for row in rows:
        made.add_row(*(Text(_short(row.get(head)), style=_style(head, row.get(head))) for head in heads))
    return made


def _short(value: Any) -> str:
    """A time as the terminal's own clock shows it, so that it stays on one line."""
    return f"{value.astimezone():%m-%d %H:%M:%S}" if isinstance(value, datetime) else _cell(value)


def _style(head: str, value: Any) -> str:
    if head == "stale" and value is True:
        return "yellow"
    # A reason may follow in parentheses.
    return _LOUD.get(head) or (_STYLES.get(value.partition(" (")[0], "") if isinstance(value, str) else "")


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
