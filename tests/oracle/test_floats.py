"""Sums over floats that are kept by adding are within their bound of PostgreSQL's, and the same as computed anew."""

from __future__ import annotations

import pytest

from tests.oracle.fixtures import NewCase
from tests.oracle.harness import Maintained, maintain

_ONE = ("sum", "avg", "variance", "var_pop", "stddev", "stddev_pop")
_TWO = (
    "corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2", "regr_slope",
    "regr_sxx", "regr_sxy", "regr_syy",
)  # fmt: skip

#: Floats of magnitudes that differ by group, and in the last group by row: there sums cancel.
_ROWS = """
    SELECT id, (id % 150)::int, (id * 104729 + {0}) % 1000003 * 10::float8 ^ ((id % 150) % 25 - 12) / 7,
           ((id * 791919 + {0}) % 2000003 - 1000001)::float4 / 3,
           CASE WHEN id % 2 = 0 THEN 1 ELSE -1 END * (1 + id % 3) * 10::float8 ^ (id % 150 / 5), id % 997
      FROM generate_series({1}::bigint, {2}) AS id
"""
_TABLE = (
    "CREATE TABLE t (id bigint PRIMARY KEY, g int, x float8, r float4, w float8, i int)",
    "INSERT INTO t" + _ROWS.format(0, 1, 1500),
)
_CHANGES = (
    ["DELETE FROM t WHERE id % 5 = 0", "INSERT INTO t" + _ROWS.format(17, 1501, 2000)],
    ["UPDATE t SET x = -x / 3, r = r / 7, w = w * 1e-9 WHERE id % 3 = 0"],
    ["UPDATE t SET x = NULL, r = NULL WHERE id % 7 = 0", "DELETE FROM t WHERE g < 30"],
    ["UPDATE t SET g = g + 1 WHERE id % 2 = 0", "INSERT INTO t" + _ROWS.format(5, 2001, 2300)],
    ["DELETE FROM t WHERE id % 11 <> 0"],
)


@pytest.mark.parametrize("argument", ["x", "r", "w", "x * r", "sqrt(abs(x))", "x + i"])
def test_sums_and_spreads_of_floats_stay_within_their_bounds(new_case: NewCase, argument: str) -> None:
    calls = ", ".join(f"{name}({argument}) AS {name}" for name in _ONE)
    with new_case(*_TABLE) as case:
        st = maintain(case, f"SELECT g, {calls}, count(*) AS n FROM t GROUP BY g", *_CHANGES, approximate=True)
        assert st.view.sink == "merge by adding"
        assert st.view.approximate == _ONE


@pytest.mark.parametrize(("y", "x"), [("x", "r"), ("w", "x"), ("i", "i * 2"), ("x", "i"), ("x", "g")])
def test_what_pairs_tell_stays_within_its_bounds(new_case: NewCase, y: str, x: str) -> None:
    calls = ", ".join(f"{name}({y}, {x}) AS {name}" for name in _TWO)
    with new_case(*_TABLE) as case:
        st = maintain(case, f"SELECT g, {calls} FROM t GROUP BY g", *_CHANGES, approximate=True)
        assert st.view.sink == "merge by adding"
        assert st.view.approximate == _TWO


def test_what_is_not_finite_leaves_a_sum_again(new_case: NewCase) -> None:
    calls = [f"{name}(x) AS {name}" for name in _ONE] + [f"{name}(x, r) AS {name}" for name in _TWO]
    with new_case(*_TABLE) as case:
        st = maintain(
            case,
            f"SELECT g, {', '.join(calls)}, sum(r) AS rs FROM t GROUP BY g",
            ["UPDATE t SET x = 'NaN' WHERE id < 10", "UPDATE t SET r = 'NaN' WHERE id BETWEEN 8 AND 12"],
            ["UPDATE t SET x = 'Infinity' WHERE id IN (10, 11, 20)", "UPDATE t SET r = '-Infinity' WHERE id = 20"],
            ["UPDATE t SET x = '-Infinity' WHERE id BETWEEN 155 AND 162", "DELETE FROM t WHERE id IN (11, 161)"],
            ["UPDATE t SET x = 1, r = 2 WHERE id BETWEEN 5 AND 200"],
            ["DELETE FROM t WHERE g = 5", "UPDATE t SET x = -0.0 WHERE g = 6"],
            ["INSERT INTO t VALUES (9001, 5, 'Infinity', 1, 0, 0), (9002, 5, '-Infinity', 1, 0, 0)"],
            approximate=True,
        )
        assert st.view.approximate == (*_ONE, *_TWO, "rs")


def test_what_cancels_leaves_the_rest(new_case: NewCase) -> None:
    """PostgreSQL's own sum has lost the 1; the bound covers that, and the decimals have it."""
    with new_case("CREATE TABLE t (id int PRIMARY KEY, x float8)", "INSERT INTO t VALUES (1, 1e300), (2, 1)") as case:
        st = maintain(case, "SELECT sum(x) AS s FROM t", ["INSERT INTO t VALUES (3, -1e300)"], approximate=True)
        assert st.rows() == [(1.0,)]
        case.change("DELETE FROM t WHERE id <> 2", "INSERT INTO t VALUES (4, 1e-300), (5, 0.1), (6, 0.2)")
        assert st.refresh() == "DIFFERENTIAL"
        case.change("DELETE FROM t WHERE id IN (2, 4)")
        assert st.refresh() == "DIFFERENTIAL"
        assert st.rows() == [(0.3,)]
        case.change("DELETE FROM t")
        assert st.refresh() == "DIFFERENTIAL"
        assert st.rows() == [(None,)]


@pytest.mark.parametrize(
    "value", ["5e-324", "2.2250738585072014e-308", "1.7976931348623157e308", "1e22", "0.1", "-123456.789e-300"]
)
def test_a_sum_of_one_value_is_that_value(new_case: NewCase, value: str) -> None:
    ddl = "CREATE TABLE t (id int PRIMARY KEY, x float8, r float4)"
    with new_case(ddl, "INSERT INTO t VALUES (1, 1, 1), (2, 3, 1e-45)") as case:
        st = maintain(
            case,
            # The greatest float has no square, which PostgreSQL's avg() adds up as well.
            "SELECT sum(x) AS s, avg(x) FILTER (WHERE x < 1e100) AS a, sum(r) AS r FROM t",
            [f"INSERT INTO t VALUES (3, {value}, 3.4e38)", "DELETE FROM t WHERE id = 1"],
            ["DELETE FROM t WHERE id = 2"],
            approximate=True,
        )
        is_small = float(value) < 1e100
        assert case.rows(f"SELECT s, a, r = 3.4e38::float4 FROM {st.name}") == [
            (float(value), float(value) if is_small else None, True)
        ]


def test_a_rest_that_no_float_can_hold_is_zero(new_case: NewCase) -> None:
    """Decimals of the smallest floats don't cancel to the last digit."""
    values = "(1, 2.2250738585072014e-308, 1e-38), (2, -2.2250738585072009e-308, -1.1e-38), (3, -5e-324, 1e-39)"
    with new_case("CREATE TABLE t (id int PRIMARY KEY, x float8, r float4)", f"INSERT INTO t VALUES {values}") as case:
        maintain(
            case,
            "SELECT sum(x) AS s, avg(x) AS a, stddev(x) AS d, sum(r) AS r FROM t",
            ["UPDATE t SET x = -x * 3, r = r / 7"],
            ["UPDATE t SET x = x * 0.7"],
            ["DELETE FROM t WHERE id = 1"],
            approximate=True,
        )


@pytest.mark.parametrize(
    ("query", "approximate"),
    [
        ("SELECT g, sum(x) AS s FROM t GROUP BY g", ("s",)),
        ("SELECT g, sum(x) AS s, sum(i) AS n, min(x) AS m FROM t GROUP BY g", ("s",)),
        ("SELECT sum(x) FILTER (WHERE i > 3) AS s, avg(r) AS a FROM t", ("s", "a")),
        ("SELECT t.g, sum(t.x * u.x) AS s FROM t JOIN t AS u USING (id) GROUP BY t.g", ("s",)),
        (
            "SELECT a AS g, sum(d) AS s FROM (SELECT g AS a, i, max(x) AS d FROM t GROUP BY g, i) AS q GROUP BY a",
            ("s",),
        ),
        # Something is computed from the value, or decided by it.
        ("SELECT g, sum(x) * 2 AS s FROM t GROUP BY g", ()),
        ("SELECT g, sum(x) AS s, round(sum(x)) AS r FROM t GROUP BY g", ()),
        ("SELECT g, sum(x) AS s FROM t GROUP BY g HAVING sum(x) > 0", ()),
        ("SELECT DISTINCT sum(x) AS s FROM t GROUP BY g", ()),
        ("SELECT g, sum(x) AS s, rank() OVER (ORDER BY sum(x)) AS r FROM t GROUP BY g", ()),
        ("SELECT q.g, q.s FROM (SELECT g, sum(x) AS s FROM t GROUP BY g) AS q JOIN t ON t.x = q.s", ()),
        ("SELECT s, count(*) AS n FROM (SELECT g, sum(x) AS s FROM t GROUP BY g) AS q GROUP BY s", ()),
        # Its own values are rounded each time that they are read.
        ("SELECT g, sum(a) AS s FROM (SELECT g, i, avg(x) AS a FROM t GROUP BY g, i) AS q GROUP BY g", ()),
        # By what is it to be compared?
        ("SELECT sum(x) AS s FROM t GROUP BY g", ()),
        # Other aggregates read the group anyway.
        ("SELECT g, sum(x) AS s, array_agg(i ORDER BY i, id) AS a FROM t GROUP BY g", ()),
        ("SELECT g, sum(DISTINCT x) AS s FROM t GROUP BY g", ()),
    ],
)
def test_only_values_that_nothing_depends_on_are_approximate(
    new_case: NewCase, query: str, approximate: tuple[str, ...]
) -> None:
    with new_case(*_TABLE) as case:
        # Rows of integers: PostgreSQL rounds nothing, whatever it reads first.
        case.execute("UPDATE t SET x = id % 100, r = id % 13, w = 0")
        st = Maintained.create(case, query, exact_images=False, approximate=True)
        assert st.view.approximate == approximate
        for statements in (["DELETE FROM t WHERE id % 5 = 0"], ["UPDATE t SET x = x + 1, g = g + 1 WHERE id % 3 = 0"]):
            case.change(*statements)
            assert st.refresh() == "DIFFERENTIAL"


def test_nothing_is_approximate_unless_it_is_asked_for(new_case: NewCase) -> None:
    with new_case(*_TABLE) as case:
        st = maintain(case, "SELECT g, sum(x) AS s, corr(x, r) AS c FROM t GROUP BY g", exact_images=False)
        assert (st.view.sink, st.view.approximate, st.view.hidden) == ("replace by key", (), ())
