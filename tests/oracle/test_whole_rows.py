"""A row as one value, kept by differences."""

from __future__ import annotations

import pytest

from tests.oracle.fixtures import NewCase
from tests.oracle.harness import maintain
from tests.oracle.test_breadth import CYCLES, TABLES


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM k",
        "SELECT DISTINCT k FROM k",
        "SELECT b, count(*) AS n FROM b GROUP BY b",
        "SELECT row_to_json(b) AS j FROM b",
        "SELECT row_to_json(x) AS j FROM b x(one, two) WHERE x.one > 1",
        "SELECT row_to_json(va) AS j FROM va",
        "SELECT g, json_agg(k ORDER BY k.v) AS j FROM k GROUP BY g",
        "SELECT to_jsonb(b) AS j FROM b WHERE b IS NOT NULL",
        "SELECT b.id, to_jsonb(b) AS j, count(*) AS n FROM b JOIN k USING (g) GROUP BY b.id",
        "SELECT a.id, count(b) AS n FROM a LEFT JOIN b ON b.g = a.g GROUP BY a.id",
        "SELECT a.id, to_jsonb(b) AS j, b IS NULL AS missing FROM a LEFT JOIN b ON b.g = a.g",
        "SELECT a.id, to_jsonb(a) AS one, to_jsonb(b) AS other FROM a FULL JOIN b ON b.id = a.id",
        "SELECT a.id, (SELECT to_jsonb(b) FROM b WHERE b.id = a.id) AS j FROM a",
        "SELECT a.id, l.j FROM a CROSS JOIN LATERAL (SELECT to_jsonb(b) AS j FROM b WHERE b.g = a.g) l",
        "SELECT DISTINCT ON (g) g, to_jsonb(b) AS j FROM b ORDER BY g, id",
    ],
)
def test_a_whole_row_is_as_good_as_its_columns(new_case: NewCase, query: str) -> None:
    with new_case(*TABLES) as case:
        maintain(case, query, *CYCLES)


def test_a_column_that_was_dropped_is_no_part_of_the_row(new_case: NewCase) -> None:
    with new_case("CREATE TABLE t (a int, gone int, b text)", "ALTER TABLE t DROP gone") as case:
        query = "SELECT t, row_to_json(t) AS j FROM t"
        maintain(case, query, ["INSERT INTO t VALUES (1, 'x')"], ["UPDATE t SET a = 2"])
