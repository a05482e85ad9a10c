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
        "SELECT a.id, row_to_json(d)::text AS r, d IS NULL AS no FROM a LEFT JOIN (SELECT g, v FROM k) d USING (g)",
        "SELECT a.g, count(x) AS n FROM a LEFT JOIN (SELECT g FROM k OFFSET 0) x ON x.g = a.g GROUP BY a.g",
        "SELECT count(x) AS n, count(y) AS m FROM (SELECT g FROM k) x(one) FULL JOIN (SELECT g FROM a) y ON y.g = one",
        "SELECT array_dims(array_agg(x)) AS d FROM (SELECT * FROM b) x",
        "WITH c AS (SELECT g, count(*) AS n FROM b GROUP BY g) SELECT a.id, to_jsonb(c) AS j, (d).n AS n"
        " FROM a LEFT JOIN c ON c.g = a.g LEFT JOIN c AS d(o) ON d.o = a.id",
        "SELECT a.id, to_jsonb(z) AS j FROM a, LATERAL (SELECT count(*) AS n FROM k WHERE k.g = a.g) z",
    ],
)
def test_a_whole_row_is_as_good_as_its_columns(new_case: NewCase, query: str) -> None:
    with new_case(*TABLES) as case:
        maintain(case, query, *CYCLES)


def test_a_column_that_was_dropped_is_no_part_of_the_row(new_case: NewCase) -> None:
    with new_case("CREATE TABLE t (a int, gone int, b text)", "ALTER TABLE t DROP gone") as case:
        query = "SELECT t, row_to_json(t) AS j FROM t"
        maintain(case, query, ["INSERT INTO t VALUES (1, 'x')"], ["UPDATE t SET a = 2"])
