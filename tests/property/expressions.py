"""Random scalar expressions, predicates and aggregates over the columns at hand."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.property.kinds import (
    ARRAY,
    BIGINT,
    BOOL,
    DATE,
    FIXED,
    FLOAT,
    INT,
    MONEY,
    NUMERIC,
    TEXT,
    Column,
    key,
    order,
)

Columns = tuple[Column, ...]


def comparable(column: Column) -> bool:
    return column.kind is not ARRAY


@st.composite
def predicates(draw: st.DrawFn, columns: Columns, depth: int = 1) -> str:
    """Three-valued: what is NULL is not true, and NOT of it isn't either."""
    if depth and draw(st.integers(0, 3)) == 0:
        left, right = draw(predicates(columns, depth - 1)), draw(predicates(columns, depth - 1))
        form = draw(st.sampled_from(("({} AND {})", "({} OR {})", "(NOT {} OR {})")))
        return form.format(left, right)
    column = draw(st.sampled_from(columns))
    value = draw(column.kind.literal())
    forms = ["{c} = {v}", "{c} IS NOT NULL", "{c} > {v}", "{c} <> {v}", "{c} IS DISTINCT FROM {v}", "{c} IS NULL"]
    if column.kind is BOOL:
        forms.append("{c}")
    if column.kind is TEXT:
        forms.append("{c} LIKE '%a%'")
    other = draw(column.kind.literal())
    forms.extend(("{c} IN ({v}, {o})", "{c} NOT IN ({v}, NULL)", "{c} BETWEEN {v} AND {o}"))
    return f"({draw(st.sampled_from(forms)).format(c=column.name, v=value, o=other)})"


@st.composite
def expressions(draw: st.DrawFn, columns: Columns) -> Column:
    """A column computed from one row."""
    column = draw(st.sampled_from(columns))
    name, kind = column.name, column.kind
    value = draw(kind.literal())
    forms: list[tuple[str, object]] = [(name, kind), (f"coalesce({name}, {value})", kind)]
    if kind is INT:
        forms += [(f"{name} + 1", INT), (f"({name} % 2)", INT), (f"{name} / 2", INT), (f"-{name}::bigint", BIGINT)]
        forms += [(f"(7 / nullif({name}, 0))", INT), (f"{name}::numeric(10,2)", MONEY)]
    elif kind is BIGINT:
        forms += [(f"({name} % 3)", BIGINT), (f"abs({name} - 1)", BIGINT)]
    elif kind is MONEY:
        forms += [(f"({name} * (1 - 0.5))", NUMERIC), (f"round({name})::numeric(10,2)", MONEY)]
    elif kind is NUMERIC:
        forms += [(f"round({name}, 4)", FIXED), (f"({name} / 3)", NUMERIC)]
    elif kind is FLOAT:
        forms += [(f"({name} + 0.5)", FLOAT), (f"floor({name})::int", INT)]
    elif kind is TEXT:
        forms += [(f"({name} || 'x')", TEXT), (f"upper({name})", TEXT), (f"length({name})", INT)]
        forms += [(f"substr({name}, 1, 1)", TEXT)]
    elif kind is DATE:
        forms += [(f"({name} + 1)", DATE), (f"extract(day FROM {name})::int", INT)]
    elif kind is BOOL:
        forms += [(f"(NOT {name})", BOOL), (f"({name} AND NULL)", BOOL)]
    scalar = tuple(c for c in columns if comparable(c))
    if scalar and comparable(column):
        condition = draw(predicates(scalar, 0))
        forms += [(f"CASE WHEN {condition} THEN {name} ELSE {value} END", kind)]
        forms += [(f"CASE WHEN {condition} THEN {name} END", kind), (f"nullif({name}, {value})", kind)]
    text, result = draw(st.sampled_from(forms))
    if "numeric(10,2)" in kind.type and result is kind and text != name:
        text = f"({text})::numeric(10,2)"
    return Column(text, result)  # type: ignore[arg-type]


@st.composite
def aggregates(draw: st.DrawFn, columns: Columns) -> Column:
    """Every class of aggregate: algebraic, extremal, ordered, distinct, filtered."""
    scalar = tuple(c for c in columns if comparable(c))
    column = key(draw(st.sampled_from(scalar)))
    name, kind = column.name, column.kind
    forms: list[tuple[str, object]] = [("count(*)", BIGINT), (f"count({name})", BIGINT)]
    if kind is INT:
        forms += [(f"sum({name})", BIGINT), (f"avg({name})", NUMERIC), (f"stddev_samp({name})", NUMERIC)]
        forms += [(f"bit_or({name})", INT), (f"var_pop({name})", NUMERIC)]
    elif kind.numeric:
        forms += [(f"sum({name})", FLOAT if kind is FLOAT else NUMERIC)]
        # A float that is no sum of powers of two must not be added up again: the result would depend on the order.
        forms += [(f"avg({name}::numeric)", NUMERIC), (f"variance({name}::numeric)", NUMERIC)]
    elif kind is BOOL:
        forms += [(f"bool_or({name})", BOOL), (f"every({name})", BOOL)]
    if kind is not BOOL:
        forms += [(f"min({name})", kind), (f"max({name})", kind)]
    forms += [(f"count(DISTINCT {name})", BIGINT)]
    forms += [(f"string_agg({name}::text, ',' ORDER BY {name})", TEXT)]
    forms += [(f"array_agg({name}::text ORDER BY {name} DESC)", ARRAY)]
    forms += [(f"mode() WITHIN GROUP (ORDER BY {name})", kind)]
    if kind in (INT, BIGINT, FLOAT):
        forms += [(f"percentile_cont(0.5) WITHIN GROUP (ORDER BY {name})", FLOAT)]
    if kind is INT:
        forms += [(f"sum(CASE WHEN {draw(predicates(scalar, 0))} THEN {name} ELSE 0 END)", BIGINT)]
        forms += [(f"sum(DISTINCT {name})", BIGINT)]
    text, result = draw(st.sampled_from(forms))
    if draw(st.integers(0, 3)) == 3:
        text = f"{text} FILTER (WHERE {draw(predicates(scalar, 0))})"
    return Column(text, result)  # type: ignore[arg-type]


@st.composite
def windows(draw: st.DrawFn, columns: Columns) -> list[Column]:
    """One window that depends on the order of rows, over a total order; others that don't."""
    scalar = tuple(c for c in columns if comparable(c))
    partition = draw(st.lists(st.sampled_from(scalar), max_size=2, unique=True))
    by = f"PARTITION BY {order(tuple(partition))} " if partition else ""
    total = f"{by}ORDER BY {order(scalar)}"
    column = draw(st.sampled_from(tuple(key(c) for c in scalar)))
    ordered = [
        Column(f"row_number() OVER ({total})", BIGINT),
        Column(f"lag({column.name}) OVER ({total})", column.kind),
        Column(f"last_value({column.name}) OVER ({total})", column.kind),
        Column(f"first_value({column.name}) OVER ({total})", column.kind),
        Column(f"count(*) OVER ({total} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", BIGINT),
        Column(f"ntile(2) OVER ({total})", INT),
    ]
    another = draw(st.sampled_from(scalar))
    steady = [
        Column(f"rank() OVER ({by}ORDER BY {key(another).name})", BIGINT),
        Column(f"dense_rank() OVER (PARTITION BY {key(another).name} ORDER BY {column.name} DESC)", BIGINT),
        Column(f"count({column.name}) OVER ({by.rstrip()})", BIGINT),
        Column(f"max({column.name}::text) OVER (PARTITION BY {key(another).name})", TEXT),
        Column(f"round((cume_dist() OVER ({by}ORDER BY {key(another).name}))::numeric, 4)", FIXED),
    ]
    return [draw(st.sampled_from(ordered)), *draw(st.lists(st.sampled_from(steady), max_size=1))]
