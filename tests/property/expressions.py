"""Random scalar expressions, predicates and aggregates over the columns at hand."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.property import kinds
from tests.property.calls import calls
from tests.property.kinds import (
    ARRAY,
    BIGINT,
    BOOL,
    DATE,
    FIXED,
    FLOAT,
    INT,
    INTS,
    JSONB,
    MONEY,
    NUMERIC,
    RANGE,
    TEXT,
    TIMESTAMPTZ,
    Column,
    Kind,
    key,
    order,
)

Columns = tuple[Column, ...]

_FORMS: dict[Kind, tuple[tuple[str, Kind], ...]] = {
    INT: (
        ("{} + 1", INT), ("({} % 2)", INT), ("{} / 2", INT), ("-{}::bigint", BIGINT), ("(7 / nullif({}, 0))", INT),
        ("{}::numeric(10,2)", MONEY), ("{}::bit(3)", kinds.BIT),
    ),
    BIGINT: (("({} % 3)", BIGINT), ("abs({} - 1)", BIGINT)),
    MONEY: (("({} * (1 - 0.5))", NUMERIC), ("round({})::numeric(10,2)", MONEY)),
    NUMERIC: (("round({}, 4)", FIXED), ("({} / 3)", NUMERIC)),
    FLOAT: (("({} + 0.5)", FLOAT), ("floor({})::int", INT)),
    TEXT: (
        ("({} || 'x')", TEXT), ("upper({})", TEXT), ("length({})", INT), ("substr({}, 1, 1)", TEXT),
        ("trim(trailing 'b' FROM {})", TEXT), ("{}::varchar(4)", kinds.VARCHAR), ("({} COLLATE \"C\")", TEXT),
    ),
    DATE: (("({} + 1)", DATE), ("extract(day FROM {})::int", INT)),
    BOOL: (("(NOT {})", BOOL), ("({} AND NULL)", BOOL), ("({} IS NOT TRUE)", BOOL)),
    kinds.VARCHAR: (("({} || 'x')", TEXT), ("{}::varchar(2)", TEXT), ("char_length({})", INT), ("btrim({})", TEXT)),
    kinds.CHAR: (("({} || '|')", TEXT), ("{}::text", TEXT), ("length({})", INT), ("({} = 'a')", BOOL)),
    kinds.BIT: (("(~ {})", kinds.BIT), ("({} & B'101')", kinds.BIT), ("{}::int", INT)),
    kinds.VARBIT: (("length({})", INT), ("({} || B'1')::text", TEXT)),
    kinds.POSITIVE: (("({} + 1)", INT), ("({} ^ 2)::int", INT)),
    kinds.LABEL: (("({} || 'x')", TEXT), ("starts_with({}, 'a')", BOOL)),
    kinds.MOOD: (("{}::text", TEXT), ("({} > 'sad')", BOOL)),
    kinds.PAIR: (("({}).x", INT), ("({}).y", TEXT), ("({} IS NULL)", BOOL), ("({} IS NOT NULL)", BOOL)),
    RANGE: (
        ("lower({})", INT), ("isempty({})", BOOL), ("({} @> 2)", BOOL), ("({} * int4range(1, 4))", RANGE),
        ("int4multirange({})", kinds.MULTIRANGE),
    ),
    kinds.MULTIRANGE: (("range_merge({})", RANGE), ("({} && int4range(1, 4))", BOOL)),
    INTS: (("{}[1]", INT), ("cardinality({})", INT), ("({} && '{{1}}'::int[])", BOOL), ("{}[1:2]", INTS)),
    kinds.JSON: (("({} ->> 'a')", TEXT), ("{}::jsonb", JSONB)),
    JSONB: (("({} -> 'a')", JSONB), ("jsonb_typeof({})", TEXT), ("({} @> '{{\"a\": 1}}'::jsonb)", BOOL)),
    kinds.INET: (("host({})", TEXT), ("({} << inet '10.0.0.0/8')", BOOL)),
    kinds.CIDR: (("masklen({})", INT), ("{}::inet", kinds.INET)),
    kinds.UUID: (("{}::text", TEXT),),
    kinds.BYTES: (("length({})", INT), ("encode({}, 'hex')", TEXT)),
    kinds.TIMESTAMP: (("date_trunc('day', {})", kinds.TIMESTAMP), ("{}::date", DATE)),
    TIMESTAMPTZ: (("({} + interval '1 day')", TIMESTAMPTZ), ("({} AT TIME ZONE 'UTC')", kinds.TIMESTAMP)),
    kinds.TIME: (("({} + interval '1 hour')", kinds.TIME), ("extract(hour FROM {})::int", INT)),
    kinds.INTERVAL: (("({} * 2)", kinds.INTERVAL), ("justify_hours({})", kinds.INTERVAL)),
}  # fmt: skip


def comparable(column: Column) -> bool:
    return column.kind.comparable


@st.composite
def predicates(draw: st.DrawFn, columns: Columns, depth: int = 1) -> str:
    """Three-valued: what is NULL is not true, and NOT of it isn't either."""
    if depth and draw(st.integers(0, 3)) == 0:
        left, right = draw(predicates(columns, depth - 1)), draw(predicates(columns, depth - 1))
        form = draw(st.sampled_from(("({} AND {})", "({} OR {})", "(NOT {} OR {})", "(({} AND {}) IS NOT TRUE)")))
        return form.format(left, right)
    column = draw(st.sampled_from(columns))
    if not column.kind.literals:
        return f"({column.name} IS NULL)"
    value = draw(column.kind.literal())
    forms = ["{c} = {v}", "{c} IS NOT NULL", "{c} > {v}", "{c} <> {v}", "{c} IS DISTINCT FROM {v}", "{c} IS NULL"]
    if column.kind is BOOL:
        forms += ["{c}", "{c} IS UNKNOWN"]
    if column.kind in (TEXT, kinds.VARCHAR):
        forms += ["{c} LIKE '%a%'", "{c} ^@ 'a'"]
    other = draw(column.kind.literal())
    forms += ["{c} IN ({v}, {o})", "{c} NOT IN ({v}, NULL)", "{c} BETWEEN {v} AND {o}"]
    forms += ["{c} BETWEEN SYMMETRIC {v} AND {o} AND {c} > {v}"]
    return f"({draw(st.sampled_from(forms)).format(c=column.name, v=value, o=other)})"


@st.composite
def expressions(draw: st.DrawFn, columns: Columns) -> Column:
    """A column computed from one row."""
    column = draw(st.sampled_from(columns))
    name, kind = column.name, column.kind
    if draw(st.integers(0, 3)) == 3:
        call = draw(calls(columns))
        if call is not None:
            return call
    forms: list[tuple[str, Kind]] = [(name, kind), *((form.format(name), made) for form, made in _FORMS.get(kind, ()))]
    if kind.literals:
        value = draw(kind.literal())
        forms.append((f"coalesce({name}, {value})", kind.widened or kind))
        scalar = tuple(c for c in columns if comparable(c))
        if scalar and comparable(column):
            condition = draw(predicates(scalar, 0))
            forms += [(f"CASE WHEN {condition} THEN {name} ELSE {value} END", kind.widened or kind)]
            forms += [(f"CASE WHEN {condition} THEN {name} END", kind), (f"nullif({name}, {value})", kind)]
    text, result = draw(st.sampled_from(forms))
    if "numeric(10,2)" in kind.type and result is kind and text != name:
        text = f"({text})::numeric(10,2)"
    return Column(text, result)


@st.composite
def aggregates(draw: st.DrawFn, columns: Columns) -> Column:
    """Every class of aggregate: algebraic, extremal, ordered, distinct, filtered."""
    scalar = tuple(c for c in columns if comparable(c))
    column = key(draw(st.sampled_from(scalar)))
    name, kind = column.name, column.kind
    forms: list[tuple[str, Kind]] = [("count(*)", BIGINT), (f"count({name})", BIGINT)]
    if kind is INT:
        forms += [(f"sum({name})", BIGINT), (f"avg({name})", NUMERIC), (f"stddev_samp({name})", NUMERIC)]
        forms += [(f"{bits}({name})", INT) for bits in ("bit_and", "bit_or", "bit_xor")]
        forms += [(f"var_pop({name})", NUMERIC), (f"regr_count({name}, {name})", BIGINT)]
    elif kind.numeric:
        forms += [(f"sum({name})", {FLOAT: FLOAT, kinds.SMALL: BIGINT}.get(kind, NUMERIC))]
        # A float that is no sum of powers of two must not be added up again: the result would depend on the order.
        forms += [(f"avg({name}::numeric)", NUMERIC), (f"variance({name}::numeric)", NUMERIC)]
        if kind is not FLOAT:
            forms += [(f"avg({name})", NUMERIC), (f"stddev_pop({name})", NUMERIC), (f"sum({name} * {name})", NUMERIC)]
    elif kind is BOOL:
        forms += [(f"bool_or({name})", BOOL), (f"bool_and({name})", BOOL), (f"every({name})", BOOL)]
    elif kind is RANGE:
        forms += [(f"range_agg({name})", kinds.MULTIRANGE), (f"range_intersect_agg({name})", RANGE)]
    if kind.extremes:
        forms += [(f"min({name})", kind.widened or kind), (f"max({name})", kind.widened or kind)]
    forms += [(f"count(DISTINCT {name})", BIGINT)]
    forms += [(f"string_agg({name}::text, ',' ORDER BY {name})", TEXT)]
    forms += [(f"array_agg({name}::text ORDER BY {name} DESC)", ARRAY)]
    forms += [(f"mode() WITHIN GROUP (ORDER BY {name})", kind)]
    if kind in (INT, BIGINT, FLOAT):
        forms += [(f"percentile_cont(0.5) WITHIN GROUP (ORDER BY {name})", FLOAT)]
    if kind is INT:
        forms += [(f"sum(CASE WHEN {draw(predicates(scalar, 0))} THEN {name} ELSE 0 END)", BIGINT)]
        forms += [(f"sum(DISTINCT {name})", BIGINT)]
    if draw(st.integers(0, 5)) == 5:
        call = draw(calls(scalar, is_aggregate=True))
        forms = [(call.name, call.kind)] if call is not None else forms
    text, result = draw(st.sampled_from(forms))
    if draw(st.integers(0, 3)) == 3:
        text = f"{text} FILTER (WHERE {draw(predicates(scalar, 0))})"
    return Column(text, result)


# -- windows -------------------------------------------------------------------------------------

_ROWS = (
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS 2 PRECEDING", "ROWS UNBOUNDED PRECEDING",
    "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING", "ROWS BETWEEN 1 PRECEDING AND 2 PRECEDING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
    "ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING", "ROWS BETWEEN 0 PRECEDING AND 0 FOLLOWING",
    "ROWS (1 + 1) PRECEDING",
)  # fmt: skip
#: Frames of peers: which of the rows that tie comes first makes no difference to them.
_PEERS = (
    "", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "GROUPS 1 PRECEDING",
    "GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING", "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES",
)  # fmt: skip
_DISTANCES = {INT: "1", BIGINT: "2", FIXED: "1.5", MONEY: "1.5", FLOAT: "0.5", DATE: "'1 day'", TIMESTAMPTZ: "'1 day'"}


@st.composite
def windows(draw: st.DrawFn, columns: Columns) -> tuple[list[Column], str]:
    """A window that depends on the order of rows, over a total order, and others that don't; the WINDOW clause."""
    scalar = tuple(c for c in columns if comparable(c))
    partition = draw(st.lists(st.sampled_from(scalar), max_size=2, unique=True))
    by = f"PARTITION BY {order(partition)} " if partition else ""
    total = f"ORDER BY {order(scalar)}"
    another, column = key(draw(st.sampled_from(scalar))), draw(st.sampled_from(tuple(key(c) for c in scalar)))
    clause = ""
    if draw(st.integers(0, 2)) == 2:
        # One builds upon the other.
        clause = f"WINDOW w AS ({by.rstrip()}), w_total AS (w {total})"
        by, named = "w ", "w_total"
    else:
        named = f"{by}{total}"
    over = f"OVER {named}" if clause else f"OVER ({named})"
    rows = draw(st.sampled_from(_ROWS))
    ordered = [
        Column(f"row_number() {over}", BIGINT),
        Column(f"lag({column.name}) {over}", column.kind),
        Column(f"last_value({column.name}) {over}", column.kind),
        Column(f"count(*) OVER ({named} {rows})", BIGINT),
        Column(f"first_value({column.name}) {over}", column.kind),
        Column(f"nth_value({column.name}, 2) OVER ({named} {rows})", column.kind),
        Column(f"ntile(2) {over}", INT),
        Column(f"string_agg({column.name}::text, ',') OVER ({named} {rows})", TEXT),
    ]
    # A FILTER takes no aggregates.
    plain = tuple(c for c in scalar if "(" not in c.name)
    condition = draw(predicates(plain, 0)) if plain else "true"
    peers = draw(st.sampled_from(_PEERS))
    distance = _DISTANCES.get(another.kind)
    if distance is not None and draw(st.booleans()):
        peers = f"RANGE BETWEEN {distance} PRECEDING AND {distance} FOLLOWING"
    steady = [
        Column(f"rank() OVER ({by}ORDER BY {another.name})", BIGINT),
        Column(f"dense_rank() OVER (PARTITION BY {another.name} ORDER BY {column.name} DESC)", BIGINT),
        Column(f"count({column.name}) OVER ({by.rstrip()})", BIGINT),
        Column(f"max({column.name}::text) OVER (PARTITION BY {another.name})", TEXT),
        Column(f"round((cume_dist() OVER ({by}ORDER BY {another.name}))::numeric, 4)", FIXED),
        Column(f"count({column.name}) FILTER (WHERE {condition}) OVER ({by.rstrip()})", BIGINT),
        Column(f"max({column.name}::text) OVER ({by}ORDER BY {another.name} {peers})", TEXT),
        Column(f"count(*) OVER ({by}ORDER BY {another.name} DESC {peers})", BIGINT),
    ]
    made = [draw(st.sampled_from(ordered)), *draw(st.lists(st.sampled_from(steady), max_size=2))]
    numbers = [c for c in scalar if key(c) is c and c.kind in (INT, BIGINT)]
    if bool(numbers) and draw(st.booleans()):
        made.append(
            Column(f"sum({draw(st.sampled_from(numbers)).name}) OVER ({by}ORDER BY {another.name} {peers})", NUMERIC)
        )
        made.append(Column(f"avg({numbers[0].name}) OVER ({by.rstrip()})", NUMERIC))
    return made, clause
