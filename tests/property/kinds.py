"""The column types that random schemas are made of, with few values each, so that keys meet and duplicates happen."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True)
class Kind:
    type: str
    literals: tuple[str, ...]
    numeric: bool = False
    comparable: bool = True
    """Whether it is grouped, ordered and compared by; the rest is only handed on."""
    told_apart: tuple[str, Kind] | None = None
    """What to take as a key where equal values may look different: of 1.0 and 1.00 a GROUP BY may show either."""
    extremes: bool = True
    """Whether min() and max() know it."""
    widened: Kind | None = None
    """What min(), coalesce() and their like make of it: text of varchar(4)."""

    def literal(self) -> st.SearchStrategy[str]:
        return st.sampled_from(self.literals)


INT = Kind("integer", ("0", "1", "2", "3", "-1", "5"), numeric=True)
BIGINT = Kind("bigint", ("0", "1", "2", "3", "4000000000", "7"), numeric=True)
SMALL = Kind("smallint", ("0::smallint", "1::smallint", "2::smallint"), numeric=True)
MONEY = Kind("numeric(10,2)", ("0.00", "1.50", "2.25", "-3.10"), numeric=True)
FIXED = Kind("numeric", ("0.0000", "1.0000", "2.5000"), numeric=True)
NUMERIC = Kind("numeric", ("0", "1", "2.5", "3.125", "-0.001"), numeric=True, told_apart=("round({}, 4)", FIXED))
FLOAT = Kind("double precision", ("0", "0.5", "1.5", "-2.25"), numeric=True)
ROUGH = Kind("double precision", ("0.1", "1"), told_apart=("round(({})::numeric, 4)", FIXED))
"""No sum of powers of two: adding such up gives what the order makes of it."""
TEXT = Kind("text", ("''", "'a'", "'b'", "'B'", "'ab'"))
BOOL = Kind("boolean", ("true", "false"), extremes=False)
DATE = Kind("date", ("'2024-01-01'::date", "'2024-01-02'::date", "'2024-02-29'::date"))
ARRAY = Kind("text[]", ("'{}'", "'{a,NULL}'"), comparable=False)

VARCHAR = Kind("character varying(4)", ("''", "'a'", "'ab'", "'b '"), widened=TEXT)
CHAR = Kind("character(3)", ("''", "'a'", "'ab'", "'abc'"), widened=Kind("character", (), comparable=False))
BIT = Kind("bit(3)", ("B'000'", "B'101'", "B'111'"), extremes=False)
VARBIT = Kind("bit varying(4)", ("B''", "B'1'", "B'10'", "B'0101'"), extremes=False)
POSITIVE = Kind("positive", ("1", "2", "5"), numeric=False, widened=INT)
LABEL = Kind("label", ("'a'", "'ab'", "'b'"), widened=TEXT)
MOOD = Kind('"Mood"', ("'sad'", "'Calm'", "'glad'"))
PAIR = Kind(
    "pair", ("ROW(1, 'a')::pair", "ROW(1, NULL)::pair", "ROW(NULL, NULL)::pair", "ROW(2, 'a')::pair"), extremes=False
)
RANGE = Kind("int4range", ("'[1,4)'::int4range", "'[2,3]'::int4range", "'empty'::int4range", "'(,2)'::int4range"),
             extremes=False)  # fmt: skip
MULTIRANGE = Kind("int4multirange", ("'{}'::int4multirange", "'{[1,3),[5,7)}'::int4multirange"), extremes=False)
INTS = Kind("integer[]", ("'{}'::int[]", "'{1,2}'::int[]", "'{2,NULL}'::int[]", "'{{1,2},{3,1}}'::int[]"))
JSON = Kind("json", ("""'{"a": 1}'::json""", """'{"a":  1}'::json""", "'[1, 2]'::json", "'null'::json"),
            comparable=False)  # fmt: skip
JSONB = Kind(
    "jsonb",
    ("""'{"a": 1}'::jsonb""", """'{"a": 1.0, "b": null}'::jsonb""", "'[1, \"x\"]'::jsonb", "'null'::jsonb"),
    told_apart=("({})::text", TEXT),
    extremes=False,
)
INET = Kind("inet", ("'10.0.0.1'::inet", "'10.0.0.1/8'::inet", "'::1'::inet"))
CIDR = Kind("cidr", ("'10.0.0.0/8'::cidr", "'192.168.0.0/16'::cidr"), widened=INET)
UUID = Kind("uuid", ("'00000000-0000-0000-0000-000000000002'::uuid", "'aaaaaaaa-0000-0000-0000-000000000000'::uuid"),
            extremes=False)  # fmt: skip
BYTES = Kind("bytea", (r"'\x'::bytea", r"'\x0102'::bytea", r"'\xff'::bytea"), extremes=False)
TIMESTAMP = Kind("timestamp without time zone", ("'2024-01-01 10:00'::timestamp", "'2024-02-29 23:59:59.5'::timestamp"))
TIMESTAMPTZ = Kind(
    "timestamp with time zone", ("'2024-01-01 10:00+02'::timestamptz", "'2024-07-01 23:30-05'::timestamptz")
)
TIME = Kind("time without time zone", ("'10:00'::time", "'23:59:59'::time"))
INTERVAL = Kind(
    "interval",
    ("'1 day'::interval", "'24 hours'::interval", "'1 month 2 days'::interval", "'-1 hour'::interval"),
    told_apart=("extract(epoch FROM {})::numeric(20,6)", Kind("numeric(20,6)", ("0", "86400"), numeric=True)),
)

PLAIN = (INT, TEXT, BIGINT, MONEY, NUMERIC, BOOL, DATE, FLOAT)
RICH = (
    VARCHAR, CHAR, BIT, VARBIT, POSITIVE, LABEL, MOOD, PAIR, RANGE, MULTIRANGE, INTS, JSON, JSONB, INET, CIDR, UUID,
    BYTES, TIMESTAMP, TIMESTAMPTZ, TIME, INTERVAL, SMALL,
)  # fmt: skip
STORED = (*PLAIN, *RICH)
"""What a table's column may be; the others only come out of expressions."""

TYPES = (
    "CREATE TYPE \"Mood\" AS ENUM ('sad', 'Calm', 'glad')",
    "CREATE TYPE pair AS (x int, y text)",
    "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
    "CREATE DOMAIN label AS varchar(3)",
)


@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind

    def of(self, alias: str) -> Column:
        return Column(f"{alias}.{self.name}", self.kind)


def key(column: Column) -> Column:
    """The column as something to group, deduplicate, order or compare extremes by."""
    if column.kind.told_apart is None:
        return column
    form, kind = column.kind.told_apart
    return Column(form.format(column.name), kind)


def keys(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(key(column) for column in columns)


def order(columns: list[Column] | tuple[Column, ...]) -> str:
    """A total order: rows that tie in it are alike."""
    return ", ".join(key(column).name for column in columns)
