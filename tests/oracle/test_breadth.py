"""The width of SQL: the queries of breadth.sql, one a line, each kept equal while its tables change in every way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.fixtures import NewCase
from tests.oracle.harness import maintain

QUERIES = [q.strip() for q in Path(__file__).with_name("breadth.sql").read_text().split(";\n") if q.strip()]
TABLES = (
    "CREATE TABLE a (id int PRIMARY KEY, g int, x text, n numeric, f double precision, arr int[], j jsonb,"
    " ts timestamptz, c char(5))",
    "CREATE TABLE b (id int PRIMARY KEY, g int, y text, p numeric(10,2))",
    "CREATE TABLE k (g int, v int, t text)",
    "CREATE VIEW va AS SELECT g, count(*) AS n FROM a GROUP BY g",
    "CREATE FUNCTION both_of(i int) RETURNS SETOF int LANGUAGE sql IMMUTABLE AS 'SELECT i UNION ALL SELECT i+1'",
    "INSERT INTO a VALUES (1, 1, 'x,y', 1.0, 0.5, '{1,2}', '[1,2]', '2024-01-01', 'ab'),"
    " (2, 1, 'z', 1.00, 'NaN', '{}', '[]', '2024-01-02', 'ab '), (3, 2, NULL, 'NaN', '-0', NULL, NULL, NULL, NULL),"
    " (4, NULL, 'q,r,s', 2.5, 'Infinity', '{3,3}', '[3]', '2024-02-01', 'c')",
    "INSERT INTO b VALUES (1, 1, 'u', 1.50), (2, 2, 'v', 2.25), (3, NULL, 'w', NULL), (4, 1, 'u', 3.00)",
    "INSERT INTO k VALUES (1, 10, 'a'), (1, 10, 'a'), (2, NULL, 'b'), (NULL, 5, NULL)",
)
CYCLES = (
    [
        "INSERT INTO a VALUES (5, 1, 'x,y,z', 1.000, '-Infinity', '{1,1,1}', '[1,1]', '2024-01-01', 'ab'),"
        " (6, 3, 'm', 7, 0, '{9}', '[9]', '2024-03-01', 'd')",
        "INSERT INTO b VALUES (5, 3, 'zz', 0.10)",
        "INSERT INTO k VALUES (3, 1, 'c'), (1, 10, 'a')",
    ],
    [
        "UPDATE a SET g = coalesce(g, 0) + 1 WHERE id IN (1, 4)",
        "UPDATE b SET g = 2 WHERE id IN (1, 3)",
        "UPDATE k SET v = v + 1 WHERE g = 1",
        "UPDATE a SET id = 10 WHERE id = 2",
    ],
    [
        "DELETE FROM a WHERE id = 3",
        "DELETE FROM b WHERE id = 2",
        "DELETE FROM k WHERE ctid IN (SELECT min(ctid) FROM k)",
        "UPDATE a SET x = NULL, n = n * 10, f = 0, arr = '{7,8}', j = '[4,5,6]' WHERE id = 5",
    ],
    ["DELETE FROM a", "DELETE FROM k", "UPDATE b SET p = NULL"],
    [
        "INSERT INTO a VALUES (1, 1, 'x,y', 1.0, 0.5, '{1,2}', '[1,2]', '2024-01-01', 'ab'),"
        " (2, NULL, '', -0.0, 'NaN', '{}', '[]', NULL, 'ab ')",
        "INSERT INTO k VALUES (1, 1, 'k')",
    ],
)


@pytest.mark.parametrize("query", QUERIES)
def test_the_query_stays_differential_and_equal(new_case: NewCase, query: str) -> None:
    with new_case(*TABLES) as case:
        maintain(case, query, *CYCLES)
