"""Aggregates that are kept by adding have PostgreSQL's own digits, over thousands of groups of every magnitude."""

from __future__ import annotations

import pytest

from tests.oracle.fixtures import NewCase
from tests.oracle.harness import maintain

_SPREAD = ("variance", "var_pop", "stddev", "stddev_pop", "avg", "sum")

#: Values whose digits before and after the point differ by group and by row. Three numbers decide about each row, so
#: that two histories of one length are different.
_ROWS = """
    SELECT id, (id % 1500)::int, mod(id * 791919 + {0}, 2000000011)::int - 1000000005,
           (10::numeric ^ (id % 18) * (1 + (id * 31 + {0}) % 97 / 97.0))::bigint,
           ((id * 104729 + {0}) % 1000003)::numeric / 1000 - 400,
           round(((id * 15485863 + {0}) % 999983)::numeric * 10::numeric ^ (id % 29 - 14), ((id * 13 + {0}) % 19)::int),
           (id * 31 + {0}) % 3 = 0
      FROM generate_series({1}::bigint, {2}) AS id
"""
_TABLE = (
    "CREATE TABLE t (id bigint PRIMARY KEY, g int, i int, b bigint, d numeric(12,3), n numeric, f boolean)",
    "INSERT INTO t" + _ROWS.format(0, 1, 4000),
)
_CHANGES = (
    ["DELETE FROM t WHERE id % 5 = 0", "INSERT INTO t" + _ROWS.format(17, 4001, 5000)],
    ["UPDATE t SET i = -i / 3, b = b / 7, d = d * 2, n = n / 3, f = NOT f WHERE id % 3 = 0"],
    ["UPDATE t SET i = NULL, n = NULL, d = NULL, f = NULL WHERE id % 7 = 0", "DELETE FROM t WHERE g < 300"],
    ["UPDATE t SET g = g + 1 WHERE id % 2 = 0", "INSERT INTO t" + _ROWS.format(5, 5001, 5500)],
)


@pytest.mark.parametrize("argument", ["i", "b", "d", "n", "n * d", "n / 7", "i * 0.5", "CASE WHEN f THEN d ELSE 1 END"])
def test_sums_and_spreads_have_postgresqls_digits(new_case: NewCase, argument: str) -> None:
    calls = ", ".join(f"{name}({argument}) AS {name}" for name in _SPREAD)
    with new_case(*_TABLE) as case:
        st = maintain(case, f"SELECT g, {calls} FROM t GROUP BY g", *_CHANGES)
        assert st.view.sink == "merge by adding"


def test_bits_and_truth_are_added_up(new_case: NewCase) -> None:
    with new_case(*_TABLE) as case:
        st = maintain(
            case,
            "SELECT g, bit_xor(i) AS x, bit_and(i) AS a, bit_or(b) AS o, bool_and(f) AS e, every(i > 0) AS p,"
            " bool_or(f) FILTER (WHERE i < 0) AS s, bit_xor(b) FILTER (WHERE f) AS xf, regr_count(i, n) AS r,"
            " bit_and(i::smallint) FILTER (WHERE i BETWEEN 0 AND 30000) AS small FROM t GROUP BY g",
            *_CHANGES,
        )
        assert st.view.sink == "merge by adding"


def test_what_is_not_finite_leaves_a_spread_again(new_case: NewCase) -> None:
    with new_case(*_TABLE) as case:
        maintain(
            case,
            "SELECT g, stddev(n) AS s, var_pop(n) AS v, variance(d) AS d FROM t WHERE id < 3020 GROUP BY g",
            [
                "UPDATE t SET n = 'NaN', d = 'NaN' WHERE id < 10",
                "UPDATE t SET n = 'Infinity' WHERE id IN (10, 11)",
            ],
            ["UPDATE t SET n = '-Infinity' WHERE id BETWEEN 1505 AND 1512"],
            ["UPDATE t SET n = 1, d = 2 WHERE id BETWEEN 5 AND 1511"],
        )


def test_a_half_is_not_rounded_twice(new_case: NewCase) -> None:
    """The root is 0.49999999… more than a whole number, which sqrt() shows as 0.5: rounding that again would go up."""
    with new_case("CREATE TABLE t (id int PRIMARY KEY, v numeric)", "INSERT INTO t VALUES (1, 0), (2, 1)") as case:
        maintain(
            case,
            "SELECT stddev_pop(v) AS s FROM t",
            *(
                [f"UPDATE t SET v = {value} WHERE id = 2"]
                for value in (2 * 10**15 + 1, 2 * 10**12 + 1, 2 * 10**9 + 1, 20000000001)
            ),
        )
