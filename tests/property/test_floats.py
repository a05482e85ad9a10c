"""Approximate sums of floats, on random floats and histories: each is within its bound of PostgreSQL's answer, and the
same as if it were computed anew."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

from tests.oracle.arena import case
from tests.oracle.harness import Maintained, Undefined
from tests.property.test_properties import FEWER, SOAK

_TABLE = "CREATE TABLE t (id int PRIMARY KEY, g int, x float8, y float8, r float4, i int)"
_ARGUMENTS = ("x", "y", "r", "x * i", "x - y", "i / 7.0::float8", "coalesce(x, y)", "CASE WHEN i > 0 THEN x ELSE r END")
_ONE = ("sum", "avg", "variance", "var_pop", "stddev", "stddev_pop")
_TWO = (
    "corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2", "regr_slope",
    "regr_sxx", "regr_sxy", "regr_syy",
)  # fmt: skip
_GROUPS = (
    "SELECT {} FROM t",
    "SELECT g, {} FROM t GROUP BY g",
    "SELECT g, i % 3 AS m, {} FROM t WHERE i > -3 GROUP BY 1, 2",
)

#: Floats that are near to one another, that cancel, of all magnitudes, and none at all.
_FLOATS = st.one_of(
    st.integers(-9, 9).map(lambda n: n / 10),
    st.integers(10**6, 10**6 + 9).map(lambda n: n + 0.1),
    st.floats(-1e4, 1e4),
    st.floats(-1e140, 1e140),
    st.sampled_from([float("nan"), float("inf"), float("-inf")]),
    st.sampled_from([1e150, -1e150, 1e16, 1.0, 5e-324, -0.0, 2.2250738585072014e-308]),
)
_REALS = st.one_of(st.floats(-(2.0**100), 2.0**100, width=32), st.floats(-100, 100, width=32))


def _literal(value: float | None, kind: str = "float8") -> str:
    return "NULL" if value is None else f"'{value!r}'::{kind}"


@st.composite
def _calls(draw: st.DrawFn) -> str:
    if draw(st.booleans()):
        call = f"{draw(st.sampled_from(_ONE))}({draw(st.sampled_from(_ARGUMENTS))})"
    else:
        call = (
            f"{draw(st.sampled_from(_TWO))}({draw(st.sampled_from(_ARGUMENTS))}, {draw(st.sampled_from(_ARGUMENTS))})"
        )
    return call + draw(st.sampled_from(["", "", " FILTER (WHERE i <> 2)"]))


@st.composite
def _histories(draw: st.DrawFn) -> tuple[str, list[list[str]]]:
    calls = draw(st.lists(_calls(), min_size=1, max_size=4, unique=True))
    items = ", ".join(f"{call} AS c{number}" for number, call in enumerate([*calls, "count(*)"]))
    # Most columns of most histories hold floats that are alike, as a table's do.
    floats = draw(st.sampled_from([_FLOATS, st.floats(0, 1), st.integers(-99, 99).map(lambda n: n / 8)]))

    def row(number: int) -> str:
        x, y = (draw(st.one_of(floats, st.none())) for _ in range(2))
        g, i = draw(st.sampled_from(["1", "2", "NULL"])), draw(st.integers(-5, 5))
        return f"({number}, {g}, {_literal(x)}, {_literal(y)}, {_literal(draw(_REALS), 'float4')}, {i})"

    number, transactions = 0, []
    for _ in range(draw(st.integers(2, 5))):
        statements = []
        for _ in range(draw(st.integers(1, 3))):
            kind = draw(st.sampled_from(["INSERT", "INSERT", "UPDATE", "DELETE"]))
            if kind == "INSERT":
                rows = [row(number := number + 1) for _ in range(draw(st.integers(1, 6)))]
                statements.append(f"INSERT INTO t VALUES {', '.join(rows)}")
            elif kind == "UPDATE":
                change = draw(st.sampled_from(["x = x / 3", "x = y, y = x", "g = 3 - g", "r = NULL", "x = 0.1"]))
                statements.append(f"UPDATE t SET {change} WHERE id % 3 = {draw(st.integers(0, 2))}")
            else:
                statements.append(f"DELETE FROM t WHERE id % 4 = {draw(st.integers(0, 3))}")
        transactions.append(statements)
    return draw(st.sampled_from(_GROUPS)).format(items), [*transactions, ["DELETE FROM t WHERE id > 2"]]


def _judged(conn: psycopg.Connection, query: str, history: list[list[str]]) -> None:
    note(f"{_TABLE};\n-- {query};\n-- {history}")
    with case(conn, [_TABLE]) as opened:
        try:
            kept = Maintained.create(opened, query, approximate=True)
            assert kept.view.sink == "merge by adding"
            for transaction in history:
                opened.change(*transaction)
                assert kept.refresh() == "DIFFERENTIAL"
                before = kept.images()
                kept.refresh(full=True)
                assert kept.images() == before
        except Undefined:
            # PostgreSQL's own sum is beyond all floats.
            assume(False)


@pytest.mark.timeout(900)
@FEWER
@given(history=_histories())
def test_sums_of_floats_are_within_their_bounds(
    oracle_connection: psycopg.Connection, history: tuple[str, list[list[str]]]
) -> None:
    _judged(oracle_connection, *history)


@pytest.mark.slow
@pytest.mark.timeout(0)
@SOAK
@given(history=_histories())
def test_ten_thousand_histories_of_floats(
    oracle_connection: psycopg.Connection, history: tuple[str, list[list[str]]]
) -> None:
    _judged(oracle_connection, *history)
