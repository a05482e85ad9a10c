"""Windows are carried forward from the first changed row: ties, NULLs, both directions, and sums to the last digit."""

from __future__ import annotations

import pytest

from tests.oracle.fixtures import NewCase
from tests.oracle.harness import maintain

TITLE = "carry forward"
#: Places tie, both columns hold NULLs, and values have digits of many numbers.
TABLE = (
    "CREATE TABLE t (id int PRIMARY KEY, p int, q text, o int, x int, n numeric, m numeric(10,2), d date)",
    "INSERT INTO t SELECT i, nullif(i % 4, 0), nullif(chr(97 + i % 3), 'c'), nullif(i % 11, 5), nullif(i % 7, 3),"
    " round(i / 7.0, i % 5), i / 4.0, date '2024-01-01' + i % 9 FROM generate_series(1, 120) AS i",
)
CHANGES = (
    ["INSERT INTO t VALUES (200, 1, 'a', 11, 5, 1.125, 2, '2025-01-01')", "INSERT INTO t (id) VALUES (201)"],
    ["UPDATE t SET o = 0 WHERE id IN (17, 18)", "DELETE FROM t WHERE id % 13 = 0"],
    ["UPDATE t SET p = 3 - p, q = 'b' WHERE id % 9 = 0", "UPDATE t SET p = NULL WHERE id = 50"],
    ["UPDATE t SET o = NULL WHERE o = 4", "UPDATE t SET o = 4 WHERE o IS NULL AND id % 2 = 0"],
    ["DELETE FROM t WHERE p = 1", "UPDATE t SET n = n * 1.10, x = NULL WHERE id % 5 = 0"],
    ["DELETE FROM t"],
    ["INSERT INTO t VALUES (1, 1, 'a', 1, NULL, NULL, NULL, NULL), (2, 1, 'a', 1, NULL, NULL, NULL, NULL)"],
    ["INSERT INTO t VALUES (3, 1, 'a', 2, 4, 0.50, 4, '2024-05-05'), (4, 1, 'a', 1, 7, 0.5, 4, '2024-05-05')"],
)  # fmt: skip
EVERY = (
    "row_number() OVER ({0}, id) AS rn, rank() OVER ({0}) AS r, dense_rank() OVER ({0}, x) AS dr,"
    " count(*) OVER ({0}) AS c, count(x) OVER ({0}, id ROWS UNBOUNDED PRECEDING) AS cx, sum(x) OVER ({0}) AS s,"
    " sum(n) OVER ({0}, id) AS sn, sum(m) FILTER (WHERE x > 2) OVER ({0}, q DESC) AS sm,"
    " min(m) OVER ({0}, id ROWS UNBOUNDED PRECEDING) AS mn, max(d) OVER ({0}) AS md"
)


@pytest.mark.parametrize("way", ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
@pytest.mark.parametrize("partition", ["", "PARTITION BY p ", "PARTITION BY p, q "])
def test_every_function_goes_on(new_case: NewCase, partition: str, way: str) -> None:
    with new_case(*TABLE) as case:
        functions = EVERY.format(f"{partition}ORDER BY o{way}")
        st = maintain(case, f"SELECT id, {functions} FROM t", *CHANGES)
        assert st.view.sink == TITLE


@pytest.mark.parametrize(
    ("shown", "hidden"),
    [
        ("id, p, o, row_number() OVER (PARTITION BY p ORDER BY o, id) AS v", 0),
        ("id, p, o, sum(x) OVER (PARTITION BY p ORDER BY o) AS v", 0),
        ("id, p, o, rank() OVER w AS v, count(*) OVER w AS c", 0),
        ("id, p, o, rank() OVER w AS v", 1),
        ("id, p, o, sum(x) OVER (PARTITION BY p ORDER BY o, id) AS v", 1),
        ("id, p, sum(x) OVER w / 2 AS v", 2),
    ],
)
def test_what_tells_what_is_carried_is_stored_once(new_case: NewCase, shown: str, hidden: int) -> None:
    with new_case(*TABLE) as case:
        st = maintain(case, f"SELECT {shown} FROM t WINDOW w AS (PARTITION BY p ORDER BY o)", *CHANGES)
        assert (st.view.sink, len(st.view.hidden)) == (TITLE, hidden)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.id, u.w, sum(t.x * u.w) OVER (PARTITION BY t.p ORDER BY t.o, t.id) AS v FROM t JOIN u ON u.id = t.x",
        "SELECT t.id, row_number() OVER (PARTITION BY u.w ORDER BY t.d, t.id) AS v FROM t LEFT JOIN u ON u.id = t.x",
        "SELECT z.id, rank() OVER (ORDER BY z.o) AS v FROM (SELECT id, o FROM t UNION ALL SELECT id, w FROM u) AS z",
        "SELECT p, s, rank() OVER (ORDER BY p DESC) AS v FROM (SELECT p, sum(x) AS s FROM t GROUP BY p) AS g",
        "SELECT id, count(*) OVER (PARTITION BY p ORDER BY o) AS v FROM t WHERE x IN (SELECT id FROM u)",
    ],
)  # fmt: skip
def test_the_rows_may_come_from_anywhere(new_case: NewCase, query: str) -> None:
    tables = (
        "CREATE TABLE u (id int PRIMARY KEY, w int)",
        "INSERT INTO u SELECT i, i % 3 FROM generate_series(0, 6) i",
    )
    changes = (
        ["UPDATE u SET w = w + 1 WHERE id = 2"],
        ["DELETE FROM u WHERE id = 4", "UPDATE t SET x = 2 WHERE x = 4"],
    )
    with new_case(*TABLE, *tables) as case:
        assert maintain(case, query, *changes, *CHANGES).view.sink == TITLE


def test_what_is_not_finite_is_carried_and_goes(new_case: NewCase) -> None:
    with new_case(*TABLE) as case:
        st = maintain(
            case,
            "SELECT id, o, sum(n) OVER (ORDER BY o NULLS FIRST) AS s, max(m) OVER (ORDER BY o NULLS FIRST) AS m FROM t",
            ["UPDATE t SET n = 'Infinity', m = 'NaN' WHERE id = 4"],
            ["UPDATE t SET n = '-Infinity' WHERE id = 9"],
            ["UPDATE t SET n = 0.00001 WHERE id = 10"],
            ["UPDATE t SET n = 1, m = 2 WHERE id IN (4, 9)"],
        )
        assert st.view.sink == TITLE


def test_rows_without_a_key_repeat(new_case: NewCase) -> None:
    with new_case(
        "CREATE TABLE b (p int, o int)", "INSERT INTO b SELECT i % 2, i % 3 FROM generate_series(1, 9) i"
    ) as case:
        st = maintain(
            case,
            "SELECT p, o, rank() OVER (PARTITION BY p ORDER BY o) AS r FROM b",
            ["INSERT INTO b SELECT * FROM b WHERE o = 1"],
            ["DELETE FROM b WHERE ctid = (SELECT min(ctid) FROM b WHERE p = 0)"],
            ["UPDATE b SET p = 1 - p WHERE o = 2"],
        )
        assert st.view.sink == TITLE


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, lag(x) OVER (ORDER BY o, id) AS v FROM t",
        "SELECT id, sum(x) OVER (PARTITION BY p) AS v FROM t",
        "SELECT id, sum(x) OVER (ORDER BY id ROWS 2 PRECEDING) AS v FROM t",
        "SELECT id, count(*) OVER (ORDER BY o RANGE UNBOUNDED PRECEDING EXCLUDE TIES) AS v FROM t",
        "SELECT id, count(*) OVER (ORDER BY o DESC) AS v, count(*) OVER (ORDER BY o) AS w FROM t",
        "SELECT id, rank() OVER (ORDER BY o + 1) AS v FROM t",
        "SELECT id, rank() OVER (ORDER BY q) AS v FROM t",
        "SELECT id, sum(x::float8) OVER (ORDER BY id) AS v FROM t",
        "SELECT id, max(n) OVER (ORDER BY id) AS v FROM t",
        "SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) AS v FROM t) AS w WHERE v % 2 = 0",
    ],
)
def test_what_does_not_run_is_replaced(new_case: NewCase, query: str) -> None:
    with new_case(*TABLE) as case:
        assert maintain(case, query, *CHANGES[:3]).view.sink == "replace by key"
