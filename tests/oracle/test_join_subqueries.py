"""Subqueries in ON: kept by differences wherever they are about one side of the join."""

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


def test_a_subquery_about_both_sides_of_an_outer_join_is_refused(new_case: NewCase) -> None:
    query = "SELECT a.id FROM a LEFT JOIN b ON EXISTS (SELECT 1 FROM k WHERE k.g = b.id AND k.v > a.id)"
    with new_case(*TABLES) as case, pytest.raises(Refused, match="about both of its sides"):
        maintain(case, query)


def test_inside_an_inner_join_it_may_be_about_both(new_case: NewCase) -> None:
    query = "SELECT a.id, b.id AS i FROM a JOIN b ON EXISTS (SELECT 1 FROM k WHERE k.g = b.id AND k.v > a.id)"
    with new_case(*TABLES) as case:
        maintain(case, query, *CYCLES)
