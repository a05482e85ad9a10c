"""Periods: the spans of one partition each into which `partition_every` cuts a column's values.

A time is cut where UTC's calendar begins a month, or a multiple of days or hours after Monday, 2001-01-01; a number at
multiples of the length. What is compared is a plain timestamp or a `numeric`, of which PostgreSQL knows infinite ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from airflow_provider_pgtrickle.engine.declare.options import (
    BY_VALUE,
    MONTHS,
    TRUNCATED,
    as_length,
    partition_key,
)
from airflow_provider_pgtrickle.engine.errors import UsageError

#: Times outside these years have no partition of their own: the DEFAULT one takes them.
YEARS = ("0001-01-01", "10000-01-01")
_PLAIN = "timestamp without time zone"
_TIMES = re.compile(r"(?P<date>date)|timestamp(?:\(\d\))? (?P<zone>with|without) time zone")
_MOST = {"smallint": 2**15 - 1, "integer": 2**31 - 1, "bigint": 2**63 - 1, "numeric": None}
_LABELS = {"hour": "YYYY_MM_DD_HH24", "day": "YYYY_MM_DD", "month": "YYYY_MM", "year": "YYYY"}


@dataclass(frozen=True)
class Periods:
    column: str
    type: str
    """The column's type, as `format_type` prints it."""
    every: str

    @classmethod
    def of(cls, partition_by: str, every: str, types: Mapping[str, str]) -> Periods:
        """The periods of a table with columns of these types; a UsageError says why there are none."""
        written = partition_key(partition_by)[1][0].strip('"')
        column = written if written in types else written.lower()
        made = cls(column, types.get(column, ""), every)
        if every != BY_VALUE and not made.is_time and not made.is_number:
            kind = "a date or a timestamp" if as_length(every) else "a whole number or a numeric without digits"
            raise UsageError(
                f"partition_every={every!r} needs {kind}, and {column} is {made.type or 'no column of the query'}",
                remedy="Cast the column in the query, or partition by another one.",
            )
        if made.type == "date" and as_length(every) is not None and made._unit == "hour":
            raise UsageError(
                f"partition_every={every!r} is shorter than a day, and {column} is a date",
                remedy="Use 1 day or more.",
            )
        return made

    @property
    def is_time(self) -> bool:
        return as_length(self.every) is not None and _TIMES.fullmatch(self.type) is not None

    @property
    def is_number(self) -> bool:
        return self.every.isdecimal() and self.type in _MOST

    @property
    def compared(self) -> str:
        """The type in which values and bounds are compared."""
        return _PLAIN if self.is_time else "numeric"

    def value(self, x: str) -> str:
        """SQL of a value of the column as it is compared."""
        if self._is_zoned:
            return f"({x} AT TIME ZONE 'UTC')"
        return f"({x})::{self.compared}"

    def back(self, x: str) -> str:
        """SQL of a compared value as one of the column's type."""
        if self._is_zoned:
            return f"({x} AT TIME ZONE 'UTC')"
        return f"({x})::{self.type}"

    def has_one(self, x: str) -> str:
        """SQL of whether a compared value is in a period; neither NULL nor an infinite one is."""
        if self.is_time:
            return f"({x} >= '{YEARS[0]}'::{_PLAIN} AND {x} < '{YEARS[1]}'::{_PLAIN})"
        return f"({x} > '-infinity'::numeric AND {x} < 'infinity'::numeric)"

    def begin(self, x: str) -> str:
        """SQL of where the period of a compared value begins."""
        if not self.is_time:
            rest = f"mod({x}, {self.every})"
            return f"({x} - {rest} - CASE WHEN {rest} < 0 THEN {self.every} ELSE 0 END)"
        word = TRUNCATED.get(self._months)
        if word is not None:
            return f"date_trunc('{word}', {x})"
        return f"date_bin('{self.every}'::interval, {x}, '2001-01-01'::{_PLAIN})"

    def end(self, begin: str) -> str:
        """SQL of where a period ends that begins there."""
        return f"({begin} + '{self.every}'::interval)" if self.is_time else f"({begin} + {self.every})"

    def bound(self, x: str) -> str:
        """SQL of the text by which FOR VALUES says a compared value; a number beyond the type's has none."""
        most = _MOST.get(self.type)
        if most is None:
            return f"quote_literal({self.back(x)})"
        return (
            f"CASE WHEN {x} > {most} THEN 'MAXVALUE' WHEN {x} < {-most - 1} THEN 'MINVALUE'"
            f" ELSE quote_literal({self.back(f'LEAST(GREATEST({x}, {-most - 1}), {most})')}) END"
        )

    def label(self, begin: str) -> str:
        """SQL of the words for a period in a partition's name."""
        if not self.is_time:
            return f"replace(trunc({begin})::text, '-', 'minus_')"
        return f"to_char({begin}, '{_LABELS['day' if self._unit == 'week' else self._unit]}')"

    def kept_from(self, keep: str, clock: str = "now()") -> str:
        """SQL of the value below which nothing is kept, by the clock."""
        begin = self.begin(f"(({clock} AT TIME ZONE 'UTC') - '{keep}'::interval)")
        return f"({begin} AT TIME ZONE 'UTC')" if self._is_zoned else f"({begin})::{self.type}"

    def out_before(self, keep: str, clock: str) -> str:
        """SQL of the same as a compared value."""
        return self.begin(f"(({clock} AT TIME ZONE 'UTC') - '{keep}'::interval)")

    @property
    def _is_zoned(self) -> bool:
        found = _TIMES.fullmatch(self.type)
        return self.is_time and found is not None and found["zone"] == "with"

    @property
    def _unit(self) -> str:
        found = as_length(self.every)
        assert found is not None
        return found[1]

    @property
    def _months(self) -> int:
        found = as_length(self.every)
        assert found is not None
        return found[0] * MONTHS.get(found[1], 0)
