"""ONLY a table, beside the tables that inherit from it: each query is its answer after every random history."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.oracle.arena import case
from tests.oracle.harness import Maintained
from tests.property.test_properties import BY_CHANGE, FEWER

DDL = (
    "CREATE TABLE t (id int PRIMARY KEY, g int, v numeric(6,2), x text)",
    "CREATE TABLE c (extra int) INHERITS (t)",
    "CREATE TABLE e (more text, PRIMARY KEY (id)) INHERITS (t)",
    "CREATE TABLE d (deep int) INHERITS (c)",
    "CREATE TABLE u (id int PRIMARY KEY, g int)",
    "INSERT INTO t SELECT n, n % 3, n * 1.5, 'x' || n % 4 FROM generate_series(1, 6) AS n",
    "INSERT INTO c SELECT n, n % 3, n * 1.5, 'x' || n % 4, 1 FROM generate_series(4, 9) AS n",
    "INSERT INTO e SELECT n, n % 3, n * 1.5, 'x' || n % 4, 'm' FROM generate_series(5, 11) AS n",
    "INSERT INTO d SELECT n, n % 3, n * 1.5, 'x' || n % 4, 1, 2 FROM generate_series(1, 5) AS n",
    "INSERT INTO u SELECT n, n % 3 FROM generate_series(1, 8) AS n",
)
#: Both are drawn: a table of the tree, whole or by itself.
FORMS = (
    "SELECT id, g, v, x FROM {one}",
    "SELECT g, count(*) AS n, sum(v) AS s, max(x) AS m FROM {one} GROUP BY g",
    "SELECT a.id, b.v FROM {one} AS a JOIN {other} AS b ON a.id = b.id",
    "SELECT a.id AS i, b.id AS j, b.x FROM {one} AS a FULL JOIN {other} AS b ON a.id = b.id AND a.g = b.g",
    "SELECT u.id FROM u WHERE EXISTS (SELECT FROM {one} a WHERE a.id = u.id) OR u.g NOT IN (SELECT g FROM {other})",
    "SELECT u.id, (SELECT max(x) FROM {one} AS a WHERE a.g = u.g) AS m FROM u",
    "SELECT u.id, l.v FROM u LEFT JOIN LATERAL (SELECT v FROM {one} a WHERE a.g = u.g ORDER BY v LIMIT 2) l ON true",
    "SELECT id, g, rank() OVER (PARTITION BY g ORDER BY v) AS r FROM {one}",
    "SELECT id, x FROM {one} EXCEPT SELECT id, x FROM {other}",
    "SELECT DISTINCT g, x FROM {one} UNION ALL SELECT g, x FROM {other}",
    "SELECT y.i, y.k FROM {one} AS y (i, k) JOIN u ON u.g = y.k",
    "SELECT a.id, a.*::text AS whole FROM {one} AS a",
    "WITH RECURSIVE r AS (SELECT id, g FROM {one} WHERE id < 3"
    " UNION SELECT b.id, b.g FROM r JOIN {other} AS b ON b.g = r.id) SELECT * FROM r",
)
RELATIONS = st.sampled_from(("ONLY t", "ONLY t", "ONLY c", "t", "c", "d", "ONLY e"))
COLUMNS = {"t": "", "c": ", 1", "e": ", 'm'", "d": ", 1, 2"}


@st.composite
def queries(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(FORMS)).format(one=draw(RELATIONS), other=draw(RELATIONS))


@st.composite
def statements(draw: st.DrawFn) -> str:
    number, value = draw(st.integers(1, 12)), draw(st.integers(0, 3))
    named = draw(st.sampled_from(("t", "t", "ONLY t", "c", "ONLY c", "e", "d")))
    into = draw(st.sampled_from(tuple(COLUMNS)))
    changed = draw(st.sampled_from(("g = g + 1", "v = v + 1", "x = NULL", "id = id + 20", "v = v")))
    return draw(
        st.sampled_from(
            (
                f"INSERT INTO {into} VALUES ({number}, {value}, {value}, 'x{value}'{COLUMNS[into]})",
                f"UPDATE {named} SET {changed} WHERE id % 4 = {value}",
                f"DELETE FROM {named} WHERE id % 5 = {value}",
                f"INSERT INTO u VALUES ({number}, {value}) ON CONFLICT (id) DO UPDATE SET g = {value}",
                f"WITH gone AS (DELETE FROM {named} WHERE id = {number} RETURNING id, g, v, x) INSERT INTO d"
                " SELECT id, g, v, x, 1, 2 FROM gone",
            )
        )
    )


HISTORIES = st.lists(st.lists(statements(), min_size=1, max_size=4), min_size=1, max_size=4)


@pytest.mark.timeout(900)
@FEWER
@given(query=queries(), history=HISTORIES, slices=st.sampled_from((1, 1, 5)))
def test_a_table_without_its_children(
    installed: psycopg.Connection, query: str, history: list[list[str]], slices: int
) -> None:
    note(f"-- {query};\n-- {history}")
    with case(installed, DDL, by_product=True) as opened:
        made = Maintained.create(opened, query)
        for transaction in history:
            opened.change(*transaction)
            assert made.refresh(slices=slices) in (*BY_CHANGE, "SLICED")
