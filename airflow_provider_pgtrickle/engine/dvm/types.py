"""The algebra must know these facts about PostgreSQL's types."""

from __future__ import annotations

import re

_INTEGERS = {"smallint": 2, "integer": 4, "bigint": 8}
_IMAGES = {
    *_INTEGERS,
    "boolean",
    "text",
    "character varying",
    "date",
    "timestamp without time zone",
    "timestamp with time zone",
    "time without time zone",
    "uuid",
    "bytea",
    "oid",
    '"char"',
    "name",
    "inet",
    "cidr",
    "macaddr",
    "xid8",
    "pg_lsn",
}
_LOOSE = {
    "numeric",
    "real",
    "double precision",
    "money",
    "interval",
    "character",
    "bpchar",
    "time with time zone",
    "jsonb",
    "bit",
    "bit varying",
    "macaddr8",
    "tsvector",
    "tsquery",
}
"""Types whose equal values may look different (1.0 and 1.00, -0 and 0, '1 day' and '24 hours'), or of which nobody
has checked whether they do."""
_TYPMOD = re.compile(r"\((\d+)(?:,(-?\d+))?\)")


def base_type(name: str) -> str:
    """Return the type's name without its modifier.

    >>> base_type("numeric(10,2)"), base_type("timestamp(3) with time zone")
    ('numeric', 'timestamp with time zone')
    """
    return _TYPMOD.sub("", name).strip()


def is_its_image(name: str) -> bool:
    """Whether equal values of the type are the same value to every function (1.0 and 1.00 are not)."""
    return base_type(name) in _IMAGES or numeric_scale(name) is not None


def has_collation(name: str) -> bool:
    """Whether the type's values are compared under a collation, which may call different texts equal."""
    return base_type(name) in ("text", "character varying", "character", "bpchar", "name", "citext")


def is_compared(name: str) -> bool:
    """Whether the type is known to have an equality by which its values can be grouped; other types may have one, too.

    >>> is_compared("numeric(5,2)"), is_compared("json")
    (True, False)
    """
    return base_type(name) in _IMAGES | _LOOSE


def as_text(value: str, type_name: str) -> str:
    """Return the SQL of a value's text as PostgreSQL prints it, which reads back as the same value.

    A cast of `character` to text drops its blanks, and a `character` without a length doesn't get them back.

    >>> as_text("a", "integer"), as_text("a", "character(3)")
    ('a::text', 'pg_catalog.textin(pg_catalog.bpcharout(a))')
    """
    if base_type(type_name) in ("character", "bpchar"):
        return f"pg_catalog.textin(pg_catalog.bpcharout({value}))"
    return f"{value}::text"


def numeric_scale(name: str) -> int | None:
    """Return the fixed number of digits after the point of integers and `numeric(p,s)`; None for any other type.

    >>> numeric_scale("bigint"), numeric_scale("numeric(10,2)"), numeric_scale("numeric")
    (0, 2, None)
    """
    if name in _INTEGERS:
        return 0
    match = _TYPMOD.search(name)
    if base_type(name) == "numeric" and match:
        scale = int(match.group(2) or 0)
        return scale if scale >= 0 else None
    return None


def is_integer(name: str) -> bool:
    return name in _INTEGERS


def is_of_fixed_size(name: str) -> bool:
    """Whether all values of the type are short, so that they suit an index.

    >>> is_of_fixed_size("bigint"), is_of_fixed_size("text")
    (True, False)
    """
    return is_its_image(name) and base_type(name) not in {"text", "character varying", "bytea"}
