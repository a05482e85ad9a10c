"""What maintained recursion gets wrong, each a named test against PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.oracle.arena import Case
from tests.oracle.fixtures import NewCase
from tests.oracle.harness import Maintained

NODES = (
    "CREATE TABLE node (id int PRIMARY KEY, parent int, name text)",
    "INSERT INTO node VALUES (1, NULL, 'a'), (2, 1, 'b'), (3, 2, NULL), (4, 1, 'd'), (5, 4, 'e')",
)
EDGES = (
    "CREATE TABLE edge (src int, dst int)",
    "CREATE TABLE root (id int)",
    "INSERT INTO root VALUES (1)",
)
TREE = (
    "WITH RECURSIVE r AS (SELECT id, 0 AS depth FROM node WHERE parent IS NULL"
    " UNION ALL SELECT n.id, r.depth + 1 FROM node n JOIN r ON n.parent = r.id) SELECT id, depth FROM r"
)
REACHED = (
    "WITH RECURSIVE r(id) AS (SELECT id FROM root"
    " UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.id) SELECT id FROM r"
)
COUNTED = REACHED.replace("UNION", "UNION ALL")


def _kept(case: Case, query: str, *cycles: Sequence[str]) -> Maintained:
    """Refreshed after each cycle by the recursion's own change, and by nothing else."""
    st = Maintained.create(case, query)
    assert st.view.sink == "delete and rederive", st.view.because
    for statements in cycles:
        assert case.change(*statements) == len(statements)
        assert st.refresh() == "DIFFERENTIAL"
    return st


def test_rows_that_only_hold_each_other_up_go(new_case: NewCase) -> None:
    with new_case(*EDGES, "INSERT INTO edge VALUES (1, 2), (2, 3), (3, 2), (3, 4)") as case:
        st = _kept(case, REACHED, ["DELETE FROM edge WHERE src = 1"])
        assert st.rows() == [(1,)]


def test_a_gain_that_depends_on_the_row_itself_does_not_mask_its_loss(new_case: NewCase) -> None:
    """2 loses its edge from 1 and gains one from 3, which is reached from nothing but 2."""
    with new_case(*EDGES, "INSERT INTO edge VALUES (1, 2), (2, 3)") as case:
        st = _kept(case, REACHED, ["DELETE FROM edge WHERE src = 1", "INSERT INTO edge VALUES (3, 2)"])
        assert st.rows() == [(1,)]


def test_an_edge_that_is_turned_back_within_one_statement(new_case: NewCase) -> None:
    with new_case(*EDGES, "INSERT INTO edge VALUES (1, 2), (2, 3)") as case:
        st = _kept(case, REACHED, ["UPDATE edge SET src = 3 WHERE src = 1"], ["INSERT INTO edge VALUES (1, 3)"])
        assert st.rows() == [(1,), (2,), (3,)]


def test_what_is_reached_on_another_way_stays(new_case: NewCase) -> None:
    with new_case(*EDGES, "INSERT INTO edge VALUES (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (5, 4)") as case:
        st = _kept(case, REACHED, ["DELETE FROM edge WHERE src = 2"], ["DELETE FROM edge WHERE src = 3"])
        assert st.rows() == [(1,), (2,), (3,)]


def test_a_diamond_counts_both_of_its_ways(new_case: NewCase) -> None:
    with new_case(*EDGES, "INSERT INTO edge VALUES (1, 2), (1, 3), (2, 4), (3, 4), (4, 5)") as case:
        st = _kept(
            case,
            COUNTED,
            ["DELETE FROM edge WHERE src = 2"],
            ["INSERT INTO edge VALUES (2, 4), (1, 4)"],
            ["INSERT INTO edge VALUES (1, 2)"],
            ["DELETE FROM edge WHERE src = 1 AND dst = 2"],
        )
        assert st.rows() == [(1,), (3,), (4,), (4,), (5,), (5,)]


def test_twins_of_an_edge_are_counted(new_case: NewCase) -> None:
    with new_case(*EDGES, "INSERT INTO edge VALUES (1, 2), (1, 2), (2, 3)") as case:
        st = _kept(
            case,
            COUNTED,
            ["DELETE FROM edge WHERE ctid = (SELECT min(ctid) FROM edge WHERE src = 1)"],
            ["INSERT INTO edge VALUES (2, 3), (1, 2), (1, 2)"],
            ["INSERT INTO root VALUES (1), (3)"],
            ["DELETE FROM root WHERE ctid = (SELECT min(ctid) FROM root)"],
        )
        assert st.rows().count((3,)) == 7


@pytest.mark.parametrize("query", [REACHED, COUNTED])
def test_an_edge_that_is_deleted_and_comes_back(new_case: NewCase, query: str) -> None:
    with new_case(*EDGES, "INSERT INTO edge VALUES (1, 2), (2, 3)") as case:
        st = _kept(case, query, ["DELETE FROM edge WHERE src = 1", "INSERT INTO edge VALUES (1, 2)"])
        assert st.rows() == [(1,), (2,), (3,)]


@pytest.mark.parametrize("query", [REACHED, COUNTED])
def test_edges_that_came_and_went_were_never_there(new_case: NewCase, query: str) -> None:
    """Followed for good, 3 → 1 would close a cycle: UNION ALL would not end."""
    with new_case(*EDGES, "INSERT INTO edge VALUES (1, 2), (2, 3)") as case:
        st = _kept(
            case, query, ["INSERT INTO edge VALUES (3, 1), (3, 9), (9, 3)", "DELETE FROM edge WHERE src IN (3, 9)"]
        )
        assert st.rows() == [(1,), (2,), (3,)]


@pytest.mark.parametrize("query", [REACHED, COUNTED])
def test_an_edge_that_came_and_went_derives_nothing_from_a_row_that_stays(new_case: NewCase, query: str) -> None:
    with new_case(*EDGES, "INSERT INTO edge VALUES (1, 2), (2, 3)") as case:
        st = _kept(case, query, ["INSERT INTO edge VALUES (3, 9), (9, 10)", "DELETE FROM edge WHERE src = 3"])
        assert st.rows() == [(1,), (2,), (3,)]


def test_a_cycle_cut_off_from_its_root_ends_although_it_counts_its_depth(new_case: NewCase) -> None:
    """4 hangs below its own grandchild now. The query doesn't see them any more, and no more may the walk over D."""
    with new_case(*NODES) as case:
        st = _kept(case, TREE, ["INSERT INTO node VALUES (6, 5)", "UPDATE node SET parent = 6 WHERE id = 4"])
        assert st.rows() == [(1, 0), (2, 1), (3, 2)]
        case.change("UPDATE node SET parent = 3 WHERE id = 4")
        assert st.refresh() == "DIFFERENTIAL"
        assert st.rows() == [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5)]


def test_a_value_that_comes_again_under_union_all_is_walked_once_for_each_time(new_case: NewCase) -> None:
    """Cut off from 1, 2 → 3 → 2 is a cycle of values among the stored rows, which the query never meets."""
    with new_case(*EDGES, "INSERT INTO edge VALUES (1, 2), (2, 3)") as case:
        st = _kept(case, COUNTED, ["DELETE FROM edge WHERE src = 1", "INSERT INTO edge VALUES (3, 2)"])
        assert st.rows() == [(1,)]


def test_a_subtree_moves_with_all_that_hangs_on_it(new_case: NewCase) -> None:
    with new_case(*NODES) as case:
        _kept(
            case,
            TREE,
            ["UPDATE node SET parent = 3 WHERE id = 4"],
            ["UPDATE node SET parent = NULL WHERE id = 2"],
            ["UPDATE node SET parent = 5 WHERE id = 1", "UPDATE node SET parent = NULL WHERE id = 4"],
            ["DELETE FROM node"],
            ["INSERT INTO node VALUES (1, NULL, 'new'), (2, 1, 'new')"],
        )


def test_keys_are_exchanged(new_case: NewCase) -> None:
    with new_case(*NODES) as case:
        _kept(
            case,
            TREE,
            ["UPDATE node SET id = 30 WHERE id = 3"],
            ["UPDATE node SET id = 99 WHERE id = 2", "UPDATE node SET id = 2 WHERE id = 4"],
            ["UPDATE node SET id = id + 100, parent = parent + 100"],
        )


def test_where_it_begins_moves(new_case: NewCase) -> None:
    with new_case(*EDGES, "INSERT INTO edge VALUES (1, 2), (2, 3), (3, 1), (7, 8)") as case:
        st = _kept(
            case,
            REACHED,
            ["UPDATE root SET id = 3"],
            ["INSERT INTO root VALUES (7), (NULL)"],
            ["DELETE FROM root WHERE id = 3", "DELETE FROM edge WHERE src = 1"],
        )
        assert st.rows() == [(7,), (8,), (None,)]


def test_a_row_that_begins_no_more_may_still_be_reached(new_case: NewCase) -> None:
    with new_case(*EDGES, "INSERT INTO edge VALUES (1, 2)", "INSERT INTO root VALUES (2)") as case:
        st = _kept(
            case, REACHED, ["DELETE FROM root WHERE id = 2"], ["DELETE FROM edge", "INSERT INTO root VALUES (1)"]
        )
        assert st.rows() == [(1,)]


def test_nulls_are_reached_and_lead_nowhere(new_case: NewCase) -> None:
    query = (
        "WITH RECURSIVE r AS (SELECT src, dst FROM edge"
        " {} SELECT r.src, e.dst FROM r JOIN edge e ON e.src = r.dst) SELECT src, dst FROM r"
    )
    for word in ("UNION", "UNION ALL"):
        with new_case(*EDGES, "INSERT INTO edge VALUES (1, 2), (2, NULL), (NULL, 2), (NULL, NULL)") as case:
            _kept(
                case,
                query.format(word),
                ["INSERT INTO edge VALUES (2, NULL), (NULL, 1)"],
                ["DELETE FROM edge WHERE src = 2"],
                ["DELETE FROM edge WHERE src IS NULL", "INSERT INTO edge VALUES (2, 3)"],
            )


def test_a_path_tells_rows_apart_and_may_stay_hidden(new_case: NewCase) -> None:
    query = (
        "WITH RECURSIVE r AS (SELECT id, ARRAY[id] AS path, name AS names FROM node WHERE parent IS NULL"
        " UNION ALL SELECT n.id, r.path || n.id, r.names || '/' || coalesce(n.name, '') FROM node n"
        " JOIN r ON n.parent = r.id) SELECT {} FROM r"
    )
    for shown in ("path, names", "id", "upper(names) AS names"):
        with new_case(*NODES) as case:
            _kept(
                case,
                query.format(shown),
                ["UPDATE node SET name = 'root' WHERE id = 1"],
                ["UPDATE node SET name = NULL WHERE id = 4", "UPDATE node SET parent = 4 WHERE id = 2"],
                ["DELETE FROM node WHERE id = 3", "UPDATE node SET name = 'x', parent = NULL WHERE id = 5"],
            )


def test_equal_numbers_that_look_different_are_different_rows(new_case: NewCase) -> None:
    query = (
        "WITH RECURSIVE r AS (SELECT part, n FROM needs WHERE whole IS NULL UNION ALL"
        " SELECT b.part, r.n * b.n FROM r JOIN needs b ON b.whole = r.part) SELECT part, n FROM r"
    )
    with new_case(
        "CREATE TABLE needs (whole text, part text, n numeric)",
        "INSERT INTO needs VALUES (NULL, 'car', 1), ('car', 'wheel', 4), ('car', 'wheel', 4.0), ('wheel', 'nut', 5)",
    ) as case:
        _kept(
            case,
            query,
            ["DELETE FROM needs WHERE n::text = '4'"],
            ["UPDATE needs SET n = 4.00 WHERE n::text = '4.0'"],
            ["INSERT INTO needs VALUES ('nut', 'steel', 0.010), ('car', 'nut', 20)"],
        )


def test_values_without_equality_are_told_apart_by_their_looks(new_case: NewCase) -> None:
    with new_case(*NODES) as case:
        _kept(
            case,
            "WITH RECURSIVE r AS (SELECT id, json_build_object('at', name) AS j FROM node WHERE parent IS NULL"
            " UNION ALL SELECT n.id, json_build_object('at', n.name, 'of', r.j) FROM node n JOIN r ON n.parent = r.id)"
            " SELECT id, j FROM r",
            ["UPDATE node SET name = 'z' WHERE id = 1"],
            ["UPDATE node SET parent = 3 WHERE id = 4"],
            ["DELETE FROM node WHERE id = 2"],
        )


def test_a_step_of_a_narrower_type_is_widened(new_case: NewCase) -> None:
    with new_case(*NODES) as case:
        _kept(
            case,
            "WITH RECURSIVE r(id, x) AS (SELECT id::bigint, 1.5::float8 FROM node WHERE parent IS NULL UNION ALL"
            " SELECT n.id, n.id FROM node n JOIN r ON n.parent = r.id) SELECT x, id FROM r",
            ["UPDATE node SET parent = 3 WHERE id = 4"],
            ["DELETE FROM node WHERE id = 3"],
        )


def test_beside_the_step_anything_may_be_joined(new_case: NewCase) -> None:
    with new_case(
        *EDGES, "INSERT INTO edge VALUES (1, 2), (1, 2), (2, 3), (3, 4)", "CREATE TABLE shut (id int)"
    ) as case:
        _kept(
            case,
            "WITH RECURSIVE r AS (SELECT id, 1::bigint AS n FROM root UNION ALL SELECT e.dst, e.n FROM r"
            " JOIN (SELECT src, dst, count(*) AS n FROM edge GROUP BY src, dst) e ON e.src = r.id"
            " WHERE NOT EXISTS (SELECT 1 FROM shut s WHERE s.id = e.dst)) SELECT id, n FROM r",
            ["INSERT INTO edge VALUES (2, 3)"],
            ["INSERT INTO shut VALUES (3)"],
            ["DELETE FROM edge WHERE ctid = (SELECT min(ctid) FROM edge)", "INSERT INTO edge VALUES (2, 4)"],
            ["DELETE FROM shut"],
        )


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (TREE + " WHERE depth < 2", "something other than a projection"),
        (
            "WITH RECURSIVE r AS (SELECT id, n FROM amount UNION"
            " SELECT a.id, a.n FROM amount a JOIN r ON a.id = r.id + 1) SELECT id, n FROM r",
            "values of n may be equal and look different",
        ),
        (
            "WITH RECURSIVE r AS (SELECT id FROM root UNION ALL SELECT e.dst FROM r"
            " JOIN edge e ON e.src = r.id WHERE e.dst NOT IN (SELECT max(id) FROM root GROUP BY id)) SELECT id FROM r",
            "a subquery that is no join",
        ),
        (
            "WITH RECURSIVE r AS (SELECT id FROM root UNION ALL SELECT e.dst FROM r JOIN (SELECT src, dst,"
            " row_number() OVER (PARTITION BY src ORDER BY dst) AS n FROM edge) e ON e.src = r.id AND e.n = 1)"
            " SELECT id FROM r",
            "Window",
        ),
    ],
)
def test_what_has_no_change_of_its_own_is_recomputed_and_says_why(new_case: NewCase, query: str, why: str) -> None:
    with new_case(
        *NODES, *EDGES, "CREATE TABLE amount (id int, n numeric)", "INSERT INTO edge VALUES (1, 2), (2, 3)"
    ) as case:
        st = Maintained.create(case, query)
        assert st.view.sink == "recompute"
        assert why in str(st.view.explain())
        case.change(
            "UPDATE node SET parent = 3 WHERE id = 4",
            "INSERT INTO edge VALUES (2, 4)",
            "INSERT INTO amount VALUES (1, 1)",
        )
        assert st.refresh() == "DIFFERENTIAL"


@pytest.mark.parametrize(
    "query",
    [
        TREE,
        REACHED,
        "SELECT upper(name) FROM (" + TREE.replace("id, depth FROM r", "'x' || id AS name FROM r") + ") AS q",
    ],
)
def test_it_stays_in_postgresql_when_spark_computes(new_case: NewCase, query: str) -> None:
    with new_case(*NODES, *EDGES, "INSERT INTO edge VALUES (1, 2), (2, 3), (3, 2)") as case:
        st = Maintained.create(case, query)

        def describe(statement: str) -> list[tuple[str, str]]:
            return [(c.name, str(c.type_display)) for c in case.execute(f"{statement} LIMIT 0").description or ()]

        plan = st.view.spark(st.binding(), key=[], describe=describe, slices=lambda _: [], prefix="p")
        assert plan is not None
        assert len(plan.leaves) == 1
        assert not plan.views
        leaf = plan.leaves[0].statements[0]
        assert "RECURSIVE" in leaf
        assert len(case.rows(leaf)) == len(case.rows(query))
