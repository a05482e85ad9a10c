"""What random search found, shrunk: each failed once."""

from __future__ import annotations

import pytest

from tests.oracle.fixtures import NewCase
from tests.oracle.harness import maintain

TABLE = ("CREATE TABLE t (a int PRIMARY KEY, b text)", "INSERT INTO t VALUES (1, 'x'), (2, 'y')")
CYCLES = (["INSERT INTO t VALUES (3, 'x')"], ["UPDATE t SET b = 'y'", "DELETE FROM t WHERE a = 1"])


def test_distinct_on_inside_distinct_on(new_case: NewCase) -> None:
    with new_case(
        "CREATE TABLE t (a text, f int, o numeric(10,2))", "INSERT INTO t VALUES ('b', 1, 0.00), ('c', 1, 2.25)"
    ) as case:
        maintain(
            case,
            "SELECT DISTINCT ON (n) n, o FROM"
            " (SELECT DISTINCT ON (a) a, f, o, a AS n FROM t ORDER BY a, f, o) x ORDER BY n, o",
            ["INSERT INTO t VALUES ('c', 2, 1.50)"],
            ["INSERT INTO t VALUES ('b', 0, 3.10)"],
        )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS n FROM (SELECT o.b FROM t o WHERE EXISTS (SELECT FROM t i WHERE o.a = i.a)) g",
        "SELECT count(*) AS n FROM (SELECT o.b FROM t o WHERE o.a NOT IN (SELECT i.a + 1 FROM t i)) g",
        "SELECT count(*) AS n FROM (SELECT DISTINCT ON (b) b, a FROM t ORDER BY b, a) x",
        "SELECT 1 AS c FROM (SELECT DISTINCT ON (a) a, b FROM t ORDER BY a) u UNION ALL SELECT 1 FROM t",
        "SELECT 'x' AS c FROM (SELECT o.b FROM t o WHERE o.a NOT IN (SELECT a + 1 FROM t)) o UNION SELECT b FROM t",
        "SELECT f.c FROM (SELECT 1 AS c FROM t UNION ALL SELECT 1 FROM t x WHERE x.b IN ('x', '')) f WHERE f.c > 0",
    ],
)
def test_columns_that_nobody_asks_for(new_case: NewCase, query: str) -> None:
    with new_case(*TABLE) as case:
        maintain(case, query, *CYCLES)


@pytest.mark.parametrize(
    "aggregate",
    [
        "mode() WITHIN GROUP (ORDER BY b)",
        "sum(a) FILTER (WHERE b = 'x')",
        "string_agg(b, ',' ORDER BY b)",
        "max(b)",
        "count(DISTINCT b)",
    ],
)
def test_grouping_sets_leave_arguments_of_aggregates_alone(new_case: NewCase, aggregate: str) -> None:
    """Only outside of an aggregate is a grouped column NULL where it isn't grouped by."""
    with new_case(*TABLE) as case:
        maintain(case, f"SELECT b, {aggregate} AS x FROM t GROUP BY ROLLUP (b)", *CYCLES)


def test_a_limit_over_rows_that_differ_in_nothing_shown(new_case: NewCase) -> None:
    """What LIMIT leaves out looks like what it keeps: the order shows all there is to see."""
    with new_case("CREATE TABLE l (k int)", "CREATE TABLE r (k int, v int)") as case:
        maintain(
            case,
            "SELECT l.k, x.v FROM l CROSS JOIN LATERAL (SELECT r.v FROM r WHERE r.k = l.k ORDER BY r.v LIMIT 1) x",
            ["INSERT INTO l VALUES (1)", "INSERT INTO r VALUES (1, 2), (1, 2), (1, 3)"],
            ["DELETE FROM r WHERE v = 2"],
        )
