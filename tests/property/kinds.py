"""The column types that random schemas are made of, with few values each, so that keys meet and duplicates happen."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True)
class Kind:
    type: str
    literals: tuple[str, ...]
    numeric: bool = False
    exact_key: bool = True
    """Whether equal values always look alike. Of 1.0 and 1.00 a GROUP BY may show either: that is not a key."""

    def literal(self) -> st.SearchStrategy[str]:
        return st.sampled_from(self.literals)


INT = Kind("integer", ("0", "1", "2", "3", "-1", "5"), numeric=True)
BIGINT = Kind("bigint", ("0", "1", "2", "3", "4000000000", "7"), numeric=True)
MONEY = Kind("numeric(10,2)", ("0.00", "1.50", "2.25", "-3.10"), numeric=True)
NUMERIC = Kind("numeric", ("0", "1", "2.5", "3.125", "-0.001"), numeric=True, exact_key=False)
FIXED = Kind("numeric", ("0.0000", "1.0000", "2.5000"), numeric=True)
FLOAT = Kind("double precision", ("0", "0.5", "1.5", "-2.25"), numeric=True)
TEXT = Kind("text", ("''", "'a'", "'b'", "'B'", "'ab'"))
BOOL = Kind("boolean", ("true", "false"))
DATE = Kind("date", ("'2024-01-01'", "'2024-01-02'", "'2024-02-29'"))
ARRAY = Kind("text[]", ("'{}'", "'{a,NULL}'"))

STORED = (INT, TEXT, BIGINT, MONEY, NUMERIC, BOOL, DATE, FLOAT)
"""What a table's column may be; the others only come out of expressions."""


@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind

    def of(self, alias: str) -> Column:
        return Column(f"{alias}.{self.name}", self.kind)


def key(column: Column) -> Column:
    """The column as something to group, deduplicate, order or compare extremes by."""
    if column.kind.exact_key:
        return column
    return Column(f"round({column.name}, 4)", FIXED)


def keys(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(key(column) for column in columns)


def order(columns: tuple[Column, ...]) -> str:
    """A total order: rows that tie in it are alike."""
    return ", ".join(column.name for column in keys(columns))
