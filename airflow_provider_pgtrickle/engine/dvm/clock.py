"""The clock is one more source of a query: between two refreshes it moves from one data timestamp to the next.

A `Reading` is an expression over the clock and constants. It has one value at each data timestamp.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.dialect import Reading, Syntax, raw_type
from airflow_provider_pgtrickle.engine.dvm.expressions import render, rewrite

CLOCK = "clock"
"""The clock's key among the sources."""
FUNCTIONS = ("now", "transaction_timestamp", "statement_timestamp")
"""The functions by which a query reads the clock: all mean the instant as of which it is answered."""
INSTANT = "timestamp with time zone"
_WORDS: dict[type[exp.Expr], str] = {
    exp.CurrentDate: "date",
    exp.CurrentTime: "time with time zone",
    exp.CurrentTimestamp: INSTANT,
    exp.Localtime: "time without time zone",
    exp.Localtimestamp: "timestamp without time zone",
}
_WITH_DIGITS = {
    "CURRENT_TIME": "time({}) with time zone",
    "CURRENT_TIMESTAMP": "timestamp({}) with time zone",
    "LOCALTIME": "time({}) without time zone",
    "LOCALTIMESTAMP": "timestamp({}) without time zone",
}


@dataclass(frozen=True)
class Values:
    """SQL of a reading's values at the data timestamp of the stored content, and at that of this refresh."""

    old: str
    new: str

    @property
    def differ(self) -> bool:
        return self.old != self.new


def clock_type(node: exp.Expr) -> str | None:
    """Return the type of a call that reads the clock; None for anything else."""
    if isinstance(node, exp.Anonymous):
        plain = node.name.lower() in FUNCTIONS and not node.expressions and not isinstance(node.parent, exp.Dot)
        return INSTANT if plain else None
    if isinstance(node, Syntax):
        return _WITH_DIGITS[node.this].format(render(node.expressions[0])) if node.this in _WITH_DIGITS else None
    return _WORDS.get(type(node))


def readings_of(expressions: Iterable[exp.Expr]) -> dict[str, Reading]:
    """Return the readings in expressions by their texts."""
    return {render(found): found for x in expressions for found in x.find_all(Reading)}


def as_of(reading: exp.Expr, instant: str) -> str:
    """Return a reading's SQL with the clock at an instant, which is SQL of a timestamp with time zone."""

    def change(node: exp.Expr) -> exp.Expr | None:
        kind = clock_type(node)
        if kind is None:
            return None
        fixed = exp.Paren(this=exp.var(instant))
        return exp.Paren(this=exp.Cast(this=fixed, to=raw_type(kind))) if kind != INSTANT else fixed

    return f"({render(rewrite(reading.this, change))})"
