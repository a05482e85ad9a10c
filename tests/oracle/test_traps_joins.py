"""What maintained joins, sub-queries, sets and windows get wrong, each a named test against PostgreSQL."""

from __future__ import annotations

import pytest

from tests.oracle.fixtures import NewCase
from tests.oracle.harness import Maintained, Undefined, maintain
from tests.oracle.tables import GROUPS, KEYLESS, PAIRS

ALL_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


@pytest.mark.parametrize("join", ALL_JOINS)
def test_a_row_and_its_partner_are_deleted_together(new_case: NewCase, join: str) -> None:
    with new_case(*PAIRS) as case:
        maintain(
            case,
            f"SELECT l.x, r.y FROM l {join} r ON l.k = r.k",
            ["DELETE FROM l WHERE id = 1", "DELETE FROM r WHERE id = 1"],
            ["DELETE FROM l WHERE k = 1", "DELETE FROM r WHERE k = 1"],
            ["INSERT INTO l VALUES (1, 3, 'new')", "INSERT INTO r VALUES (1, 2, 'new')"],
        )


@pytest.mark.parametrize("join", ALL_JOINS)
def test_join_keys_are_updated_on_both_sides_at_once(new_case: NewCase, join: str) -> None:
    with new_case(*PAIRS) as case:
        maintain(
            case,
            f"SELECT l.id AS li, r.id AS ri, l.x, r.y FROM l {join} r ON l.k = r.k",
            ["UPDATE l SET k = k + 1", "UPDATE r SET k = k + 1"],
            ["UPDATE l SET k = NULL WHERE id = 1", "UPDATE r SET k = 7 WHERE id = 3"],
            ["UPDATE l SET id = id + 10", "UPDATE r SET k = 2 WHERE k IS NULL"],
        )


@pytest.mark.parametrize("join", ALL_JOINS)
def test_null_join_keys_match_nothing(new_case: NewCase, join: str) -> None:
    with new_case(*PAIRS) as case:
        maintain(
            case,
            f"SELECT k, l.x, r.y FROM l {join} r USING (k)",
            ["UPDATE l SET k = NULL", "UPDATE r SET k = NULL"],
            ["UPDATE l SET k = 1", "UPDATE r SET k = 1 WHERE id < 3"],
        )


@pytest.mark.parametrize("join", ALL_JOINS)
def test_exact_duplicates_in_keyless_joins_are_counted(new_case: NewCase, join: str) -> None:
    with new_case(*KEYLESS) as case:
        maintain(
            case,
            f"SELECT l.k, l.x, r.y FROM l {join} r ON l.k = r.k",
            ["DELETE FROM r WHERE ctid = (SELECT min(ctid) FROM r WHERE k = 1)"],
            ["INSERT INTO l VALUES (1, 'a')", "INSERT INTO r VALUES (2, 'w'), (2, 'w')"],
            ["DELETE FROM l WHERE ctid = (SELECT min(ctid) FROM l WHERE x = 'a')", "DELETE FROM r WHERE k = 1"],
        )


def test_a_row_new_in_this_cycle_was_never_null_padded(new_case: NewCase) -> None:
    with new_case(*PAIRS) as case:
        st = maintain(
            case,
            "SELECT l.id, l.x, r.y FROM l LEFT JOIN r ON l.k = r.k",
            ["INSERT INTO l VALUES (9, 9, 'l9')", "INSERT INTO r VALUES (9, 9, 'r9')"],
        )
        assert [row for row in st.rows() if row[0] == 9] == [(9, "l9", "r9")]


def test_a_table_joined_with_itself(new_case: NewCase) -> None:
    with new_case(*PAIRS) as case:
        maintain(
            case,
            "SELECT a.id AS a, b.id AS b, c.x FROM l a JOIN l b ON a.k = b.k LEFT JOIN l c ON c.id = b.id + 1",
            ["UPDATE l SET k = 2 WHERE id = 1"],
            ["DELETE FROM l WHERE id = 2", "INSERT INTO l VALUES (7, 2, 'l7'), (8, 2, 'l8')"],
            ["UPDATE l SET id = id + 100"],
        )


def test_several_deltas_for_one_row_are_summed_and_not_picked(new_case: NewCase) -> None:
    with new_case(*PAIRS) as case:
        maintain(
            case,
            "SELECT l.id, l.x, r.y FROM l JOIN r ON l.k = r.k",
            [
                "UPDATE l SET x = 'once' WHERE id = 1",
                "UPDATE l SET x = 'twice' WHERE id = 1",
                "UPDATE r SET y = 'once' WHERE id = 1",
                "DELETE FROM l WHERE id = 1",
                "INSERT INTO l VALUES (1, 1, 'again')",
                "UPDATE r SET y = 'twice' WHERE id = 1",
                "UPDATE l SET x = 'l4' WHERE id = 4",
            ],
        )


def test_a_condition_that_is_no_equality(new_case: NewCase) -> None:
    with new_case(*PAIRS) as case:
        maintain(
            case,
            "SELECT l.x, r.y FROM l LEFT JOIN r ON l.k < r.k OR l.x = r.y",
            ["DELETE FROM r WHERE id = 2"],
            ["INSERT INTO r VALUES (9, 0, 'l3')", "UPDATE l SET k = -1 WHERE id = 2"],
        )


def test_a_filter_above_an_outer_join_sees_the_padding(new_case: NewCase) -> None:
    with new_case(*PAIRS) as case:
        maintain(
            case,
            "SELECT l.x, coalesce(r.y, 'none') AS y FROM l LEFT JOIN r ON l.k = r.k AND r.y <> 'r4' WHERE r.id IS NULL",
            ["DELETE FROM r WHERE id = 1"],
            ["INSERT INTO r VALUES (8, 2, 'r8')", "INSERT INTO l VALUES (8, 8, 'l8')"],
        )


def test_many_changes_that_come_to_nothing(new_case: NewCase) -> None:
    with new_case(*PAIRS) as case:
        st = maintain(case, "SELECT l.k, count(*) AS n, max(r.y) AS m FROM l JOIN r USING (k) GROUP BY l.k")
        case.change(*["UPDATE l SET k = k + 1", "UPDATE l SET k = k - 1", "UPDATE r SET y = y || ''"] * 5)
        assert st.refresh() == "DIFFERENTIAL"


def test_a_decorrelated_count_is_zero_and_not_null(new_case: NewCase) -> None:
    with new_case(*PAIRS) as case:
        st = maintain(
            case,
            "SELECT l.id, (SELECT count(*) FROM r WHERE r.k = l.k) AS c,"
            " (SELECT max(y) FROM r WHERE r.k = l.k) AS m FROM l",
            ["DELETE FROM r WHERE k = 1"],
            ["INSERT INTO r VALUES (7, 2, 'r7'), (8, 2, 'r8')", "INSERT INTO l VALUES (9, 2, 'l9')"],
        )
        assert st.rows() == [(1, 0, None), (2, 2, "r8"), (3, 0, None), (4, 0, None), (9, 2, "r8")]


def test_not_in_with_a_null_on_the_right_is_never_true(new_case: NewCase) -> None:
    with new_case(*PAIRS) as case:
        st = maintain(
            case,
            "SELECT l.id FROM l WHERE l.k NOT IN (SELECT r.k FROM r)",
            ["UPDATE l SET k = 50 WHERE id = 4"],
            ["DELETE FROM r WHERE k IS NULL"],
            ["INSERT INTO r VALUES (9, NULL, 'r9')"],
            ["DELETE FROM r"],
        )
        assert st.rows() == [(1,), (2,), (3,), (4,)]


@pytest.mark.parametrize(
    "condition",
    [
        "l.k >= ALL (SELECT r.k FROM r)",
        "l.k <> ALL (SELECT r.k FROM r WHERE r.id <> l.id)",
        "l.k < ANY (SELECT r.k FROM r)",
        "l.k = ANY (SELECT r.k FROM r WHERE r.y > 'r1')",
        "NOT (l.k < ANY (SELECT r.k FROM r))",
        "EXISTS (SELECT FROM r WHERE r.k = l.k) OR l.x = 'l3'",
        "(l.k, l.x) IN (SELECT r.k, replace(r.y, 'r', 'l') FROM r)",
        "(l.k IN (SELECT k FROM r)) IS NOT TRUE",
        "NOT EXISTS (SELECT FROM r WHERE r.k = l.k AND r.id > l.id)",
        "l.k NOT IN (SELECT r.k FROM r WHERE r.id = l.id)",
    ],
)
def test_three_valued_sublinks(new_case: NewCase, condition: str) -> None:
    with new_case(*PAIRS) as case:
        maintain(
            case,
            f"SELECT l.id, l.x FROM l WHERE {condition}",
            ["DELETE FROM r WHERE k IS NULL"],
            ["INSERT INTO r VALUES (9, 2, 'r9')", "UPDATE l SET k = 3 WHERE id = 1"],
            ["INSERT INTO r VALUES (10, NULL, 'r10')", "DELETE FROM r WHERE id = 1"],
            ["DELETE FROM r"],
            ["INSERT INTO r VALUES (1, 1, 'r1')"],
        )


def test_a_scalar_subquery_without_a_row_is_null(new_case: NewCase) -> None:
    with new_case(*PAIRS) as case:
        query = "SELECT l.id, (SELECT r.y FROM r WHERE r.id = l.id) AS y FROM l"
        st = maintain(case, query, ["DELETE FROM r WHERE id = 1"])
        assert st.rows()[0] == (1, None)


def test_a_scalar_subquery_with_two_rows_is_an_error(new_case: NewCase) -> None:
    with new_case(*PAIRS, "DELETE FROM r WHERE id = 4") as case:
        st = Maintained.create(case, "SELECT l.id, (SELECT r.y FROM r WHERE r.k = l.k) AS y FROM l")
        case.change("INSERT INTO r VALUES (4, 1, 'r4')")
        with pytest.raises(Undefined, match="more than one row"):
            st.refresh()


@pytest.mark.parametrize("operation", ["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
def test_values_hidden_until_the_other_branch_changes(new_case: NewCase, operation: str) -> None:
    with new_case(*KEYLESS) as case:
        maintain(
            case,
            f"SELECT k, x FROM l {operation} SELECT k, y FROM r",
            ["INSERT INTO r VALUES (1, 'a')"],
            ["INSERT INTO r VALUES (1, 'a'), (2, 'b')", "DELETE FROM l WHERE x = 'c'"],
            ["DELETE FROM r"],
            ["INSERT INTO l VALUES (NULL, 'c'), (NULL, 'c')", "INSERT INTO r VALUES (NULL, 'c')"],
        )


def test_distinct_counts_how_often(new_case: NewCase) -> None:
    with new_case(*KEYLESS) as case:
        maintain(
            case,
            "SELECT DISTINCT k, x FROM l",
            ["DELETE FROM l WHERE ctid = (SELECT min(ctid) FROM l WHERE x = 'a')"],
            ["DELETE FROM l WHERE x = 'a'", "INSERT INTO l VALUES (NULL, 'c')"],
            ["UPDATE l SET k = 5, x = 'same'"],
        )


def test_distinct_on_hands_over_to_the_next_row(new_case: NewCase) -> None:
    with new_case(*GROUPS) as case:
        maintain(
            case,
            "SELECT DISTINCT ON (g) g, id, v FROM t ORDER BY g, v DESC NULLS LAST, id",
            ["DELETE FROM t WHERE id = 1"],
            ["INSERT INTO t VALUES (6, 'b', 99, 0), (7, 'c', NULL, 0)"],
            ["UPDATE t SET g = 'c' WHERE id = 6"],
        )


def test_a_row_that_changes_partition_touches_both(new_case: NewCase) -> None:
    with new_case(*GROUPS) as case:
        maintain(
            case,
            "SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY id) AS n, sum(v) OVER (PARTITION BY g) AS s,"
            " rank() OVER (ORDER BY v, id) AS r, v - lag(v, 1, 0) OVER w AS d FROM t WINDOW w AS (ORDER BY id)",
            ["UPDATE t SET g = 'b' WHERE id = 1"],
            ["DELETE FROM t WHERE id = 3", "UPDATE t SET g = NULL WHERE id = 2"],
        )


def test_a_window_over_an_aggregate(new_case: NewCase) -> None:
    with new_case(*GROUPS) as case:
        maintain(
            case,
            "SELECT g, sum(v) AS s, rank() OVER (ORDER BY sum(v) DESC NULLS LAST) AS r,"
            " sum(v)::numeric / sum(sum(v)) OVER () AS share FROM t GROUP BY g",
            ["UPDATE t SET v = 100 WHERE id = 5"],
            ["DELETE FROM t WHERE g = 'b'"],
        )


def test_a_lateral_sees_each_outer_row(new_case: NewCase) -> None:
    with new_case(*PAIRS) as case:
        maintain(
            case,
            "SELECT l.id, f.y, s.n FROM l LEFT JOIN LATERAL"
            " (SELECT y FROM r WHERE r.k >= l.k ORDER BY r.k, r.id LIMIT 1) f ON true"
            " CROSS JOIN LATERAL generate_series(1, l.id) AS s(n)",
            ["DELETE FROM r WHERE id = 1"],
            ["UPDATE l SET id = 12 WHERE id = 2", "INSERT INTO r VALUES (1, 2, 'r1')"],
        )


def test_a_cte_that_shadows_a_table(new_case: NewCase) -> None:
    with new_case(*PAIRS) as case:
        maintain(
            case,
            "WITH r AS (SELECT k, x AS y FROM l WHERE id > 1) SELECT a.y, b.y AS z FROM r a LEFT JOIN r b ON a.k = b.k",
            ["UPDATE l SET k = 1", "DELETE FROM r"],
            ["DELETE FROM l WHERE id = 4"],
        )


def test_views_are_looked_through(new_case: NewCase) -> None:
    with new_case(
        *PAIRS,
        "CREATE VIEW v AS SELECT k, count(*) AS n FROM l GROUP BY k",
        "CREATE VIEW w AS SELECT v.n, r.y FROM v JOIN r USING (k)",
    ) as case:
        maintain(
            case,
            "SELECT y, n FROM w WHERE n > 1",
            ["INSERT INTO l VALUES (9, 3, 'l9'), (10, 3, 'l10')"],
            ["DELETE FROM l WHERE k = 1", "UPDATE r SET y = 'changed'"],
        )


def test_a_recursive_hierarchy_grows_and_is_cut(new_case: NewCase) -> None:
    with new_case(
        "CREATE TABLE node (id int PRIMARY KEY, parent int)",
        "INSERT INTO node VALUES (1, NULL), (2, 1), (3, 2), (4, 3), (5, 1)",
    ) as case:
        maintain(
            case,
            "WITH RECURSIVE tree AS (SELECT id, 0 AS depth FROM node WHERE parent IS NULL"
            " UNION ALL SELECT n.id, depth + 1 FROM node n JOIN tree t ON n.parent = t.id) SELECT id, depth FROM tree",
            ["INSERT INTO node VALUES (6, 4), (7, 6)"],
            ["UPDATE node SET parent = 5 WHERE id = 3"],
            ["DELETE FROM node WHERE id = 2"],
        )
