"""ORDER BY … LIMIT: equal to the query after every change, and computed anew only where a change reaches the window.

A cycle is its statements and whether they reach it; that a recompute did not run is read off PostgreSQL's own plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from airflow_provider_pgtrickle.engine.dvm.binding import Binding
from tests.oracle.arena import Case
from tests.oracle.fixtures import NewCase
from tests.oracle.harness import Maintained

Cycle = tuple[bool, str]
T = "CREATE TABLE t (id int PRIMARY KEY, v numeric, f double precision, s text)"
TEN = "INSERT INTO t SELECT i, i * 10, i, 'n' || i FROM generate_series(1, 10) i"
BY_V = "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 3"


def keep(case: Case, query: str, *cycles: Cycle) -> Maintained:
    """Keep a TopK query through the cycles; each reaches its window, or leaves it alone, as it says."""
    st = Maintained.create(case, query)
    for reaches, statement in cycles:
        assert case.change(statement) == 1, statement
        assert recomputes(case, st) is reaches, statement
        assert st.refresh() == "TOPK"
    return st


def recomputes(case: Case, st: Maintained) -> bool:
    """Whether PostgreSQL executes the query itself when it runs the delta."""
    delta = st.view.delta(st.binding())
    if delta is None:
        return False
    (((top,),),) = case.rows(f"EXPLAIN (ANALYZE, FORMAT JSON) {delta}")
    limits = [node for node in _nodes(top["Plan"]) if node["Node Type"] == "Limit"]
    assert limits, "the plan holds the query"
    return any(node["Actual Loops"] > 0 for node in limits)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)


def test_what_stays_behind_the_window_is_not_looked_at(new_case: NewCase) -> None:
    with new_case(T, TEN) as case:
        keep(
            case,
            BY_V,
            (False, "INSERT INTO t VALUES (11, 79, 0, '')"),
            (False, "UPDATE t SET v = v + 1 WHERE v < 50"),
            (False, "DELETE FROM t WHERE id < 3"),
            (False, "UPDATE t SET s = 'other' WHERE id < 5"),
        )


def test_what_comes_leaves_or_changes_within_the_window_is(new_case: NewCase) -> None:
    with new_case(T, TEN) as case:
        keep(
            case,
            BY_V,
            (True, "INSERT INTO t VALUES (11, 85, 0, '')"),
            (True, "DELETE FROM t WHERE id = 10"),
            (True, "UPDATE t SET v = 1 WHERE id = 9"),
            (True, "UPDATE t SET v = 1000 WHERE id = 9"),
            (True, "UPDATE t SET v = v + 1"),
            (False, "DELETE FROM t WHERE v < 50"),
        )


def test_a_row_that_ties_with_the_last_one_reaches(new_case: NewCase) -> None:
    with new_case(T, TEN) as case:
        st = keep(
            case,
            "SELECT v FROM t ORDER BY v DESC LIMIT 3",
            (True, "INSERT INTO t VALUES (11, 80, 0, '')"),
            (True, "INSERT INTO t VALUES (12, 80.00, 0, '')"),
            (False, "INSERT INTO t VALUES (13, 79.99, 0, '')"),
            (True, "DELETE FROM t WHERE id IN (8, 11)"),
            (True, "DELETE FROM t WHERE id = 12"),
            (True, "DELETE FROM t WHERE id = 13"),
        )
        assert st.rows() == [(70,), (90,), (100,)]


def test_a_window_that_is_not_full_takes_what_comes(new_case: NewCase) -> None:
    with new_case(T) as case:
        keep(
            case,
            BY_V,
            (True, "INSERT INTO t VALUES (1, 1, 0, '')"),
            (True, "INSERT INTO t VALUES (2, 0, 0, ''), (3, NULL, 0, '')"),
            (False, "INSERT INTO t VALUES (4, -1, 0, '')"),
            (True, "DELETE FROM t"),
            (True, "INSERT INTO t SELECT i, i, 0, '' FROM generate_series(1, 20) i"),
            (False, "DELETE FROM t WHERE id < 18"),
            (True, "DELETE FROM t WHERE id = 18"),
        )


def test_rows_before_an_offset_reach(new_case: NewCase) -> None:
    with new_case(T, TEN) as case:
        keep(
            case,
            "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 2 OFFSET 3",
            (True, "DELETE FROM t WHERE id = 10"),
            (True, "INSERT INTO t VALUES (10, 1000, 0, '')"),
            (False, "DELETE FROM t WHERE v < 55"),
            (True, "DELETE FROM t WHERE id = 6"),
        )


def test_a_window_beyond_the_end_is_never_full(new_case: NewCase) -> None:
    with new_case(T, TEN) as case:
        keep(
            case,
            "SELECT id FROM t ORDER BY id LIMIT 2 OFFSET 10",
            (True, "DELETE FROM t WHERE id = 5"),
            (True, "INSERT INTO t SELECT i, 0, 0, '' FROM generate_series(11, 14) i"),
            (False, "DELETE FROM t WHERE id = 14"),
        )


@pytest.mark.parametrize(
    ("order", "behind", "before"),
    [
        ("v", "NULL", "-1"),
        ("v NULLS FIRST", "99", "NULL"),
        ("v DESC", "1", "NULL"),
        ("v DESC NULLS LAST", "NULL", "99"),
        ("v DESC", "99", "'NaN'"),
        ("v", "'NaN'", "-1"),
    ],
)
def test_nulls_and_nan_are_where_postgres_sorts_them(new_case: NewCase, order: str, behind: str, before: str) -> None:
    rows = "INSERT INTO t VALUES (1, 'NaN', 0, ''), (2, NULL, 0, ''), (3, 5, 0, ''), (4, 6, 0, ''), (5, NULL, 0, '')"
    with new_case(T, rows) as case:
        keep(
            case,
            f"SELECT id, v FROM t ORDER BY {order}, id LIMIT 3",
            (False, f"INSERT INTO t VALUES (6, {behind}, 0, '')"),
            (True, f"INSERT INTO t VALUES (0, {before}, 0, '')"),
        )


def test_floats_are_sorted_as_floats(new_case: NewCase) -> None:
    with new_case(T, TEN) as case:
        keep(
            case,
            "SELECT id, f FROM t ORDER BY f, id LIMIT 2",
            (False, "UPDATE t SET f = 'NaN' WHERE id = 3"),
            (True, "UPDATE t SET f = '-0' WHERE id = 3"),
            (True, "UPDATE t SET f = 0 WHERE id = 4"),
            (False, "UPDATE t SET f = 'Infinity' WHERE id = 2"),
            (True, "UPDATE t SET f = '-Infinity' WHERE id = 2"),
        )


@pytest.mark.parametrize(
    "order",
    ["abs(v - 50)", "(abs(v - 50)), id", "CASE WHEN v > 50 THEN v - 50 ELSE 50 - v END", "2", "nearest"],
)
def test_a_term_may_be_made_of_what_the_query_shows(new_case: NewCase, order: str) -> None:
    query = f"SELECT v, abs(v - 50) AS nearest, id FROM t ORDER BY {order}, id LIMIT 3"
    with new_case(T, TEN) as case:
        keep(
            case,
            query,
            (False, "DELETE FROM t WHERE v = 100"),
            (False, "INSERT INTO t VALUES (11, 20, 0, '')"),
            (True, "INSERT INTO t VALUES (12, 51, 0, '')"),
        )


def test_names_that_change_places_are_not_taken_for_each_other(new_case: NewCase) -> None:
    with new_case("CREATE TABLE p (a int, b int)", "INSERT INTO p SELECT i, -i FROM generate_series(1, 9) i") as case:
        keep(
            case,
            "SELECT a AS b, b AS a FROM p ORDER BY a LIMIT 2",
            (True, "INSERT INTO p VALUES (0, -100)"),
            (True, "INSERT INTO p VALUES (-100, 0)"),
        )


def test_upper_and_lower_case_names_are_two(new_case: NewCase) -> None:
    with new_case('CREATE TABLE p (a int, "A" int)', "INSERT INTO p SELECT i, -i FROM generate_series(1, 9) i") as case:
        keep(
            case,
            'SELECT a, "A" FROM p ORDER BY "A" LIMIT 2',
            (True, "INSERT INTO p VALUES (0, -100)"),
            (False, "INSERT INTO p VALUES (-100, 0)"),
        )


def test_an_order_by_what_is_not_shown_is_recomputed(new_case: NewCase) -> None:
    with new_case(T, TEN) as case:
        keep(case, "SELECT id FROM t ORDER BY v LIMIT 3", (True, "INSERT INTO t VALUES (11, 1000, 0, '')"))


@pytest.mark.parametrize(
    "bounds",
    [
        "FETCH FIRST 3 ROWS WITH TIES",
        "LIMIT (SELECT 3)",
        "LIMIT 1 + 2",
        "OFFSET 2",
        "LIMIT 3 OFFSET (SELECT count(*) FROM t) - 4",
    ],
)
def test_bounds_that_no_number_gives_are_recomputed(new_case: NewCase, bounds: str) -> None:
    with new_case(T, TEN) as case:
        keep(
            case,
            f"SELECT id, v FROM t ORDER BY v, id {bounds}",
            (True, "INSERT INTO t VALUES (11, 1000, 0, '')"),
            (True, "DELETE FROM t WHERE id = 1"),
        )


@pytest.mark.parametrize("bounds", ["FETCH FIRST 3 ROWS ONLY", "LIMIT 3 OFFSET 0", "LIMIT 3::smallint"])
def test_other_words_for_a_number_are_as_good(new_case: NewCase, bounds: str) -> None:
    with new_case(T, TEN) as case:
        keep(
            case,
            f"SELECT id, v FROM t ORDER BY v, id {bounds}",
            (False, "INSERT INTO t VALUES (11, 1000, 0, '')"),
            (True, "DELETE FROM t WHERE id = 1"),
        )


def test_a_limit_of_nothing_stays_empty(new_case: NewCase) -> None:
    with new_case(T, TEN) as case:
        st = Maintained.create(case, "SELECT id FROM t ORDER BY id LIMIT 0")
        case.change("DELETE FROM t WHERE id = 1")
        assert (st.refresh(), st.rows()) == ("TOPK", [])


def test_groups_reach_by_their_sums(new_case: NewCase) -> None:
    ddl = (
        "CREATE TABLE o (id int PRIMARY KEY, c int, v numeric(10,2))",
        "INSERT INTO o SELECT i, i % 10, i % 10 FROM generate_series(1, 100) i",
    )
    with new_case(*ddl) as case:
        keep(
            case,
            "SELECT c, sum(v) AS total, count(*) AS n FROM o GROUP BY c ORDER BY sum(v) DESC, c LIMIT 3",
            (False, "INSERT INTO o VALUES (101, 1, 5)"),
            (False, "DELETE FROM o WHERE c = 2"),
            (False, "UPDATE o SET c = 3 WHERE c = 1"),
            (True, "UPDATE o SET c = 3 WHERE c = 4"),
            (True, "UPDATE o SET v = 100 WHERE id = 1"),
            (True, "DELETE FROM o WHERE c = 9"),
            (False, "INSERT INTO o VALUES (102, 1, -1)"),
        )


def test_joins_reach_from_both_sides(new_case: NewCase) -> None:
    ddl = (
        "CREATE TABLE a (id int PRIMARY KEY, g int, v int)",
        "CREATE TABLE b (g int PRIMARY KEY, w int)",
        "INSERT INTO a SELECT i, i % 5, i FROM generate_series(1, 20) i",
        "INSERT INTO b SELECT i, i FROM generate_series(0, 3) i",
    )
    with new_case(*ddl) as case:
        keep(
            case,
            "SELECT a.id, a.v + coalesce(b.w, 0) AS x FROM a LEFT JOIN b USING (g) ORDER BY 2 DESC, 1 LIMIT 4",
            (False, "UPDATE a SET v = 2 WHERE id = 1"),
            (True, "INSERT INTO b VALUES (4, 1)"),
            (True, "DELETE FROM b WHERE g = 3"),
            (False, "INSERT INTO b VALUES (9, 100)"),
        )


def test_branches_of_a_union_reach_alike(new_case: NewCase) -> None:
    with new_case(T, TEN, "CREATE TABLE u (id int)", "INSERT INTO u SELECT generate_series(5, 12)") as case:
        keep(
            case,
            "SELECT id FROM t UNION ALL SELECT id FROM u ORDER BY 1 LIMIT 3",
            (False, "DELETE FROM u WHERE id > 6"),
            (True, "INSERT INTO u VALUES (2)"),
            (False, "DELETE FROM t WHERE id > 3"),
            (True, "DELETE FROM t"),
        )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s, sum(f) AS x FROM t GROUP BY s ORDER BY 2 DESC, 1 LIMIT 2",
        "SELECT v, count(*) AS n FROM t GROUP BY v ORDER BY n DESC, v LIMIT 2",
        "SELECT DISTINCT v FROM t ORDER BY v DESC LIMIT 2",
        "SELECT id, row_number() OVER (ORDER BY s) AS n FROM t ORDER BY id LIMIT 2",
        "SELECT x.id FROM (SELECT id FROM t ORDER BY v, id LIMIT 5) x ORDER BY id LIMIT 2",
        "SELECT id, (SELECT max(u.v) FROM t u WHERE u.id < t.id) AS m FROM t WHERE v > 0 OR id IN (SELECT 1)"
        " ORDER BY id LIMIT 2",
    ],
)
def test_what_the_text_leaves_open_is_not_reasoned_about(new_case: NewCase, query: str) -> None:
    """The stored rows come from the text, a change from the tree; where the two may differ, the window is computed."""
    with new_case(T, TEN) as case:
        st = Maintained.create(case, query)
        case.change("UPDATE t SET v = v + 1, f = f + 1 WHERE id = 5")
        delta = st.view.delta(st.binding())
        assert delta is not None
        assert "rank()" not in delta
        assert st.refresh() == "TOPK"


def test_a_collation_sorts_as_it_does_in_the_query(new_case15: NewCase) -> None:
    ddl = (
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE TABLE n (id int PRIMARY KEY, s text COLLATE loose)",
        "INSERT INTO n VALUES (1, 'a'), (2, 'B'), (3, 'c'), (4, 'D')",
    )
    with new_case15(*ddl) as case:
        keep(
            case,
            "SELECT id, s FROM n ORDER BY s, id LIMIT 2",
            (False, "INSERT INTO n VALUES (5, 'C')"),
            (False, "INSERT INTO n VALUES (6, 'b')"),
            (True, "INSERT INTO n VALUES (0, 'b')"),
            (True, "INSERT INTO n VALUES (7, 'A')"),
        )


def test_a_term_with_a_collation_of_its_own(new_case: NewCase) -> None:
    with new_case("CREATE TABLE n (s text)", "INSERT INTO n VALUES ('a'), ('b'), ('C')") as case:
        keep(
            case,
            'SELECT s FROM n ORDER BY s COLLATE "C" LIMIT 2',
            (False, "INSERT INTO n VALUES ('ab')"),
            (True, "INSERT INTO n VALUES ('Z')"),
        )


def test_a_change_of_nothing_asks_nothing(new_case: NewCase) -> None:
    with new_case(T, TEN) as case:
        st = Maintained.create(case, BY_V)
        assert st.view.delta(Binding(st.binding().sources, st.binding().stored)) is None


BODIES = (
    ("SELECT id, k, v, f FROM t", ("k", "v", "f", "coalesce(v, f)", "abs(k)", "v + k")),
    ("SELECT t.id, u.k, u.w AS v FROM t LEFT JOIN u ON u.k = t.k AND u.w > 2", ("u.k", "u.w", "u.w IS NULL")),
    ("SELECT k AS id, count(*) AS n, sum(v) AS s, max(k) AS m FROM t GROUP BY k", ("count(*)", "sum(v)", "n")),
    ("SELECT DISTINCT k AS id FROM t", ("k",)),
    ("SELECT id, k FROM t WHERE k IN (SELECT k FROM u) UNION ALL SELECT 1000 + w, k FROM u", ("k",)),
)


@pytest.mark.parametrize("seed", range(5))
def test_windows_stay_equal_under_random_changes(new_case: NewCase, seed: int) -> None:
    rnd = Random(seed)

    def value() -> str:
        return rnd.choice(["NULL", "'NaN'", "-1", "0", "0.00", "1.5", "1.50", str(rnd.randint(-9, 9))])

    def row(i: int) -> str:
        return f"({i}, {rnd.choice(['NULL', *'01234567'])}, {value()}, {value()})"

    tables = (
        "CREATE TABLE t (id int PRIMARY KEY, k int, v numeric, f double precision)",
        "CREATE TABLE u (k int, w int UNIQUE)",
        f"INSERT INTO t VALUES {', '.join(map(row, range(30)))}",
        "INSERT INTO u SELECT i % 5, i FROM generate_series(1, 9) i",
    )
    skipped = 0
    for number, (body, terms) in enumerate(BODIES):
        with new_case(*tables) as case:
            if "UNION" in body:
                terms = ("2",)
            order = rnd.choice(terms) + rnd.choice(["", " DESC"]) + rnd.choice(["", " NULLS FIRST", " NULLS LAST"])
            offset = rnd.choice(["", "", " OFFSET 1", " OFFSET 7"])
            st = Maintained.create(case, f"{body} ORDER BY {order}, 1 LIMIT {rnd.randint(1, 6)}{offset}")
            for _ in range(12):
                one, other = rnd.randint(0, 39), rnd.randint(0, 9)
                statement = rnd.choice(
                    [
                        f"INSERT INTO t VALUES {row(one)} ON CONFLICT (id) DO UPDATE SET (v, k) = (excluded.v, 3)",
                        f"UPDATE t SET v = {value()}, f = {value()} WHERE id = {one}",
                        f"DELETE FROM t WHERE id = {one}",
                        f"DELETE FROM u WHERE w = {other}",
                        f"INSERT INTO u VALUES ({other}, {other}) ON CONFLICT DO NOTHING",
                    ]
                )
                assert case.change(statement) == 1
                skipped += not recomputes(case, st)
                assert st.refresh() == "TOPK", number
    assert skipped > len(BODIES)
