"""The 22 queries with their standard parameters, one file each."""

from __future__ import annotations

from pathlib import Path

NUMBERS = range(1, 23)
_FIRST_ROWS = {2: 100, 3: 10, 10: 20, 18: 100, 21: 100}
"""The specification asks for so many rows of these; the SQL itself names no limit."""


def query(number: int, scale: float = 1.0, *, limited: bool = False) -> str:
    """The text of a query.

    The fraction of query 11 is defined relative to the scale. Query 18 looks for one order in thirty thousand: where
    there are fewer, it asks for less, or there would be nothing to compare.
    """
    text = (Path(__file__).parent / f"q{number:02}.sql").read_text().strip()
    if number == 11:
        text = text.replace("* 0.0001", f"* {0.0001 / scale:.10f}".rstrip("0"))
    if number == 18 and scale < 0.1:
        text = text.replace("> 300", "> 250")
    if limited and number in _FIRST_ROWS:
        text += f"\nLIMIT {_FIRST_ROWS[number]}"
    return text
