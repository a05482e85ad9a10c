"""A carrier says how a PostgreSQL value travels through Spark: natively if both agree on it, otherwise as its text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from airflow_provider_pgtrickle.engine.dvm.types import base_type

_MAX_PRECISION = 38
_KEPT_SCALE = 6
"""Spark keeps up to six digits after the point when a result is wider than 38 digits."""


class Kind(Enum):
    INT = "integers"
    DEC = "numeric(p,s)"
    BOOL = "boolean"
    TEXT = "text compared for equality"
    KEY = "another type whose text is equal exactly where its value is"
    OPAQUE = "carried, never looked at"
    NULL = "a NULL of any type"


@dataclass(frozen=True)
class Carrier:
    kind: Kind
    spark: str
    precision: int = 0
    scale: int = 0
    base: str = ""

    @property
    def is_number(self) -> bool:
        return self.kind in (Kind.INT, Kind.DEC)

    @property
    def is_key(self) -> bool:
        """Whether Spark may group, join and compare it for equality."""
        return self.kind in (Kind.INT, Kind.DEC, Kind.BOOL, Kind.TEXT, Kind.KEY)


BOOL = Carrier(Kind.BOOL, "boolean")
NULL = Carrier(Kind.NULL, "void")
OPAQUE = Carrier(Kind.OPAQUE, "string")
TEXT = Carrier(Kind.TEXT, "string", base="text")
SMALLINT = Carrier(Kind.INT, "smallint", 5)
INTEGER = Carrier(Kind.INT, "int", 10)
BIGINT = Carrier(Kind.INT, "bigint", 19)
_INTEGERS = {"smallint": SMALLINT, "integer": INTEGER, "bigint": BIGINT}
_KEYS = {
    "date",
    "time without time zone",
    "timestamp with time zone",
    "timestamp without time zone",
    "uuid",
}
_NUMERIC = re.compile(r"^numeric\((\d+),(\d+)\)$")


def decimal(precision: int, scale: int) -> Carrier | None:
    """Return the decimal that Spark gives to arithmetic's result; None where it would drop digits after the point."""
    if precision > _MAX_PRECISION:
        if scale > _KEPT_SCALE:
            return None
        precision = _MAX_PRECISION
    return Carrier(Kind.DEC, f"decimal({precision},{scale})", precision, scale)


def carrier_of(type_name: str) -> Carrier:
    """
    >>> carrier_of("numeric(10,2)").spark, carrier_of("numeric").kind.name, carrier_of("date").kind.name
    ('decimal(10,2)', 'OPAQUE', 'KEY')
    """
    if type_name in _INTEGERS:
        return _INTEGERS[type_name]
    if type_name == "boolean":
        return BOOL
    match = _NUMERIC.match(type_name)
    if match and int(match.group(1)) <= _MAX_PRECISION:
        return decimal(int(match.group(1)), int(match.group(2))) or OPAQUE
    base = base_type(type_name)
    if base in ("text", "character varying"):
        return TEXT
    if base in _KEYS:
        return Carrier(Kind.KEY, "string", base=base)
    if base == "character":
        # Values are padded with blanks, so the texts of two types are comparable if their length is the same.
        return Carrier(Kind.KEY, "string", base=type_name)
    return OPAQUE


def as_decimal(carrier: Carrier) -> Carrier:
    """Return the decimal to which Spark widens an integer beside a decimal."""
    if carrier.kind is Kind.DEC:
        return carrier
    return Carrier(
        Kind.DEC,
        f"decimal({carrier.precision + (1 if carrier.precision > 10 else 0)},0)",
        20 if carrier.precision > 10 else carrier.precision,
        0,
    )


def unify(carriers: list[Carrier]) -> Carrier | None:
    """Return the carrier of a column that comes from several branches or cases; None where they don't agree."""
    known = [c for c in carriers if c.kind is not Kind.NULL]
    if not known:
        return NULL
    if len(set(known)) == 1:
        return known[0]
    if all(c.kind is Kind.INT for c in known):
        return max(known, key=lambda c: c.precision)
    if all(c.is_number for c in known) and len({c.scale for c in known}) == 1:
        return decimal(max(as_decimal(c).precision for c in known), known[0].scale)
    if all(c.spark == "string" for c in known):
        same = len({(c.kind, c.base) for c in known}) == 1
        return known[0] if same else OPAQUE
    return None
