"""Subqueries in ON: kept by differences where they are about one side of the join, or about both of a left join's."""

from __future__ import annotations

import pytest

from tests.oracle.fixtures import NewCase
from tests.oracle.harness import Refused, maintain
from tests.oracle.test_breadth import CYCLES, TABLES


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id, b.id AS i FROM a LEFT JOIN b ON b.g = a.g AND b.id IN (SELECT k.g FROM k)",
        "SELECT a.id, b.id AS i FROM a LEFT JOIN b ON b.g = a.g AND b.id NOT IN (SELECT k.g FROM k)",
        "SELECT a.id, b.id AS i FROM a LEFT JOIN b ON b.g = a.g AND EXISTS (SELECT 1 FROM k WHERE k.g = b.g)",
        "SELECT a.id, b.id AS i FROM a LEFT JOIN b ON b.g = a.g AND EXISTS (SELECT 1 FROM k WHERE k.v = 10)",
        "SELECT a.id, b.id AS i FROM a LEFT JOIN b ON b.g = a.g AND a.id IN (SELECT k.g FROM k)",
        "SELECT a.id, b.id AS i FROM a LEFT JOIN b ON b.g = a.g AND NOT EXISTS (SELECT 1 FROM k WHERE k.g = a.g)",
        "SELECT a.id, b.id AS i FROM a LEFT JOIN b ON b.g = (SELECT max(g) FROM k)",
        "SELECT a.id, b.id AS i FROM a LEFT JOIN b ON b.g = (SELECT max(k.v) FROM k WHERE k.g = a.g) OR a.id = b.id",
        "SELECT a.id, b.id AS i FROM a FULL JOIN b ON b.g = a.g AND b.id IN (SELECT k.g FROM k)",
        "SELECT a.id, b.id AS i FROM a FULL JOIN b ON b.g = a.g AND EXISTS (SELECT 1 FROM k WHERE k.g = a.g)",
        "SELECT a.id, b.id AS i FROM a RIGHT JOIN b ON b.g = a.g AND a.id IN (SELECT k.g FROM k)",
        "SELECT a.id, b.id AS i FROM a RIGHT JOIN b ON b.g = a.g AND b.id IN (SELECT k.g FROM k)",
        "SELECT a.id, b.id AS i FROM a LEFT JOIN b ON b.g = a.g AND (a.id IN (SELECT k.g FROM k) OR"
        " b.id IN (SELECT k.g FROM k))",
        "SELECT a.id, b.id AS i, k.v FROM a JOIN b ON b.g = a.g AND a.id IN (SELECT k.g FROM k) LEFT"
        " JOIN k ON k.g = b.id",
        "SELECT a.id, b.id AS i, l.n FROM a JOIN b ON b.g = a.g AND a.id IN (SELECT k.g FROM k) LEFT"
        " JOIN LATERAL (SELECT count(*) AS n FROM k WHERE k.g = b.id) l ON true",
        "SELECT a.g, count(b.id) AS n FROM a LEFT JOIN b ON b.g = a.g AND b.p > (SELECT avg(x.p) FROM b"
        " x WHERE x.g = b.g) GROUP BY a.g",
        "SELECT a.id, b.id AS i FROM a LEFT JOIN b ON b.g = a.g AND b.p >= ALL (SELECT x.p FROM b x"
        " WHERE x.g = b.g) LEFT JOIN k ON k.g = b.g AND k.v IN (SELECT id FROM a)",
    ],
)
def test_a_subquery_about_one_side_goes_to_that_side(new_case: NewCase, query: str) -> None:
    with new_case(*TABLES) as case:
        maintain(case, query, *CYCLES)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id, b.id AS i FROM a LEFT JOIN b ON EXISTS (SELECT 1 FROM k WHERE k.g = b.id AND k.v > a.id)",
        "SELECT a.id, b.id AS i FROM a LEFT JOIN b ON b.g = a.g AND a.id IN (SELECT k.g FROM k WHERE k.v > b.id)",
        "SELECT a.id, d.* FROM a LEFT JOIN (SELECT g, p + 1, y FROM b) AS d(g, q) ON a.g NOT IN (SELECT k.g FROM k"
        " WHERE k.t < d.y)",
        "SELECT x.one, count(y.p) AS n FROM a AS x(one, two) LEFT JOIN b AS y(one) ON y.g = x.two"
        " AND (SELECT count(*) FROM k WHERE k.g IN (x.one, y.one)) > 1 GROUP BY x.one",
        "SELECT a.id, b.id AS i, k.t FROM a LEFT JOIN k ON k.g = a.g LEFT JOIN b ON b.id > 1"
        " AND b.g = ANY (SELECT o.id FROM b AS o WHERE o.y < k.t OR o.g = a.g)",
        "SELECT a.id, to_jsonb(b) AS j FROM a LEFT JOIN b ON b.p >= ALL (SELECT o.p FROM b o WHERE o.g = a.g"
        " AND o.id <> b.id)",
    ],
)
def test_a_subquery_about_both_sides_of_a_left_join(new_case: NewCase, query: str) -> None:
    with new_case(*TABLES) as case:
        maintain(case, query, *CYCLES)


@pytest.mark.parametrize("kind", ["RIGHT", "FULL"])
def test_a_subquery_about_both_sides_of_another_outer_join_is_refused(new_case: NewCase, kind: str) -> None:
    query = "SELECT a.id FROM a {} JOIN b ON EXISTS (SELECT 1 FROM k WHERE k.g = b.id AND k.v > a.id)"
    tie = "b.g = a.g AND " if kind == "FULL" else ""
    with new_case(*TABLES) as case, pytest.raises(Refused, match="about both of its sides"):
        maintain(case, query.format(kind).replace("ON ", f"ON {tie}"))


def test_inside_an_inner_join_it_may_be_about_both(new_case: NewCase) -> None:
    query = "SELECT a.id, b.id AS i FROM a JOIN b ON EXISTS (SELECT 1 FROM k WHERE k.g = b.id AND k.v > a.id)"
    with new_case(*TABLES) as case:
        maintain(case, query, *CYCLES)
