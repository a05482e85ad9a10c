"""What maintained aggregates get wrong, each a named test against PostgreSQL."""

from __future__ import annotations

import pytest

from tests.oracle.fixtures import NewCase
from tests.oracle.harness import maintain
from tests.oracle.tables import GROUPS


def test_sum_becomes_null_when_the_last_value_leaves(new_case: NewCase) -> None:
    with new_case(*GROUPS) as case:
        st = maintain(
            case,
            "SELECT g, sum(v) AS s, sum(n) AS sn, avg(v) AS a, count(v) AS c FROM t GROUP BY g",
            ["DELETE FROM t WHERE id = 1"],
            ["UPDATE t SET n = NULL WHERE g = 'a'"],
            ["UPDATE t SET v = 0 WHERE id = 2"],
        )
        assert ("a", 0, None, 0, 1) in st.rows()


def test_avg_has_postgresqls_digits(new_case: NewCase) -> None:
    with new_case(*GROUPS) as case:
        maintain(
            case,
            "SELECT g, avg(v) AS av, avg(n) AS an, avg(v::bigint) AS ab, avg(v::float8) AS af FROM t GROUP BY g",
            ["INSERT INTO t VALUES (6, 'a', 1, 0.001), (7, 'a', 1, 1000000)"],
            ["DELETE FROM t WHERE id = 7", "UPDATE t SET v = 2, n = 1e-10 WHERE id = 2"],
            ["DELETE FROM t WHERE id = 6"],
        )


def test_stddev_and_its_kin_have_postgresqls_digits(new_case: NewCase) -> None:
    with new_case(*GROUPS) as case:
        maintain(
            case,
            "SELECT g, stddev_samp(v) AS ss, stddev_pop(v) AS sp, variance(n) AS va, var_pop(n) AS vp,"
            " corr(v, n::float8) AS co, regr_slope(v, id) AS rs FROM t GROUP BY g",
            ["INSERT INTO t VALUES (6, 'a', 7, 0.5), (7, 'b', 11, 3)"],
            ["DELETE FROM t WHERE id = 1"],
            ["DELETE FROM t WHERE g = 'a'"],
        )


def test_min_and_max_when_the_extremum_is_deleted(new_case: NewCase) -> None:
    with new_case(*GROUPS) as case:
        maintain(
            case,
            "SELECT g, min(v) AS lo, max(v) AS hi, max(n) AS hn FROM t GROUP BY g",
            ["INSERT INTO t VALUES (6, 'b', 40, 9), (7, 'b', 1, 9), (8, 'b', 40, 1)"],
            ["DELETE FROM t WHERE id = 6"],
            ["DELETE FROM t WHERE id = 8", "INSERT INTO t VALUES (9, 'b', 35, 8)"],
            ["DELETE FROM t WHERE id = 7", "DELETE FROM t WHERE id = 9"],
        )


def test_a_global_aggregate_over_nothing_is_one_row(new_case: NewCase) -> None:
    with new_case(*GROUPS) as case:
        st = maintain(
            case,
            "SELECT count(*) AS c, sum(v) AS s, max(g) AS m, string_agg(g, ',' ORDER BY id) AS x FROM t",
            ["DELETE FROM t"],
        )
        assert st.rows() == [(0, None, None, None)]
        case.change("INSERT INTO t VALUES (1, 'z', 1, 1)")
        assert st.refresh() == "DIFFERENTIAL"
        assert st.rows() == [(1, 1, "z", "z")]


def test_a_global_aggregate_that_starts_over_nothing(new_case: NewCase) -> None:
    with new_case(GROUPS[0]) as case:
        maintain(
            case,
            "SELECT count(*) AS c, sum(v) AS s, avg(n) AS a, min(v) AS m FROM t HAVING count(*) <> 1",
            ["INSERT INTO t VALUES (1, 'a', 1, 1)"],
            ["INSERT INTO t VALUES (2, 'a', 1, 1)"],
            ["DELETE FROM t"],
        )


def test_case_inside_sum(new_case: NewCase) -> None:
    with new_case(*GROUPS) as case:
        maintain(
            case,
            "SELECT g, sum(CASE WHEN v > 8 THEN n ELSE 0 END) AS a, sum(CASE WHEN g = 'a' THEN v END) AS b,"
            " count(CASE v WHEN 10 THEN 1 END) AS c FROM t GROUP BY g",
            ["UPDATE t SET v = 1 WHERE id = 1", "UPDATE t SET v = 9 WHERE id = 3"],
            ["UPDATE t SET g = 'a' WHERE id = 3"],
            ["DELETE FROM t WHERE g = 'a'"],
        )


def test_groups_that_fail_having_come_back(new_case: NewCase) -> None:
    with new_case(*GROUPS) as case:
        st = maintain(
            case,
            "SELECT g, count(*) AS c FROM t GROUP BY g HAVING sum(v) > 20",
            ["INSERT INTO t VALUES (6, 'a', 15, 0)"],
            ["UPDATE t SET v = 1 WHERE id = 3"],
            ["DELETE FROM t WHERE id = 1", "UPDATE t SET v = 19 WHERE id = 4"],
        )
        assert st.rows() == [(None, 2)]


def test_null_is_one_group(new_case: NewCase) -> None:
    with new_case(*GROUPS) as case:
        maintain(
            case,
            "SELECT g, count(*) AS c, sum(v) AS s FROM t GROUP BY g",
            ["UPDATE t SET g = NULL WHERE id = 1"],
            ["DELETE FROM t WHERE g IS NULL"],
            ["INSERT INTO t VALUES (9, NULL, NULL, NULL)"],
        )


def test_groups_are_emptied_and_refilled_in_one_cycle(new_case: NewCase) -> None:
    with new_case(*GROUPS) as case:
        maintain(
            case,
            "SELECT g, count(DISTINCT v) AS c, array_agg(v ORDER BY id) AS a FROM t GROUP BY g",
            ["DELETE FROM t WHERE g = 'a'", "INSERT INTO t VALUES (1, 'a', 11, 1)"],
            ["DELETE FROM t", "INSERT INTO t VALUES (1, 'a', 11, 1), (2, 'a', 11, 1)"],
        )


def test_a_sum_of_numerics_has_the_scale_of_what_is_left(new_case: NewCase) -> None:
    rows = "INSERT INTO t VALUES (1, 1.55), (2, 2.5)"
    with new_case("CREATE TABLE t (id int PRIMARY KEY, n numeric)", rows) as case:
        st = maintain(case, "SELECT sum(n) AS s FROM t", ["DELETE FROM t WHERE id = 1"])
        assert [str(s) for (s,) in st.rows()] == ["2.5"]


def test_not_a_number_and_infinity_leave_a_numeric_sum_again(new_case: NewCase) -> None:
    with new_case(*GROUPS) as case:
        maintain(
            case,
            "SELECT sum(n) AS s, avg(n) AS a FROM t",
            ["UPDATE t SET n = 'NaN' WHERE id = 1"],
            ["UPDATE t SET n = 'Infinity' WHERE id = 2"],
            ["UPDATE t SET n = 1 WHERE id < 3"],
        )


def test_not_a_number_and_infinity_leave_a_float_sum_again(new_case: NewCase) -> None:
    with new_case("CREATE TABLE f (id int PRIMARY KEY, x float8)", "INSERT INTO f VALUES (1, 1)") as case:
        maintain(
            case,
            "SELECT count(*) AS c, sum(x) AS s, max(x) AS m FROM f",
            ["INSERT INTO f VALUES (2, 'NaN')"],
            ["INSERT INTO f VALUES (3, '-Infinity')"],
            ["DELETE FROM f WHERE id > 1"],
        )


def test_float_sums_do_not_drift(new_case: NewCase) -> None:
    with new_case("CREATE TABLE f (id int PRIMARY KEY, x float8)", "INSERT INTO f VALUES (1, 0.1)") as case:
        st = maintain(
            case,
            "SELECT sum(x) AS s FROM f",
            ["INSERT INTO f VALUES (2, 1e20)"],
            ["DELETE FROM f WHERE id = 2"],
        )
        assert st.rows() == [(0.1,)]


def test_a_sum_of_integers_outgrows_them(new_case: NewCase) -> None:
    with new_case("CREATE TABLE t (id int PRIMARY KEY, v bigint)", "INSERT INTO t VALUES (1, 9e18)") as case:
        maintain(
            case,
            "SELECT sum(v) AS s, avg(v) AS a, sum(v::int % 7) AS m FROM (SELECT id, v FROM t WHERE v < 9) x"
            " UNION ALL SELECT sum(v), avg(v), 0 FROM t",
            ["INSERT INTO t VALUES (2, 9e18), (3, 9e18), (4, 5)"],
            ["DELETE FROM t WHERE id = 1"],
        )


@pytest.mark.parametrize(
    "aggregate",
    [
        "any_value(g)",
        "array_agg(DISTINCT v ORDER BY v DESC)",
        "bit_xor(v)",
        "bool_and(v > 8)",
        "count(DISTINCT (v, n))",
        "covar_pop(id, v)",
        "json_agg(v ORDER BY id)::text",
        "jsonb_object_agg(id, v)",
        "max(row(v, n)::text)",
        "mode() WITHIN GROUP (ORDER BY v)",
        "percentile_cont(ARRAY[0.25, 0.5]) WITHIN GROUP (ORDER BY v)",
        "percentile_disc(0.5) WITHIN GROUP (ORDER BY v)",
        "range_agg(int4range(id, id + 1))",
        "rank(15) WITHIN GROUP (ORDER BY v)",
        "regr_count(id, v)",
        "string_agg(DISTINCT v::text, '-' ORDER BY v::text)",
        "sum(DISTINCT v)",
        "sum(v) FILTER (WHERE id > 1)",
    ],
)
def test_every_class_of_aggregate(new_case: NewCase, aggregate: str) -> None:
    with new_case(*GROUPS) as case:
        maintain(
            case,
            f"SELECT g, {aggregate} AS a FROM t GROUP BY g",
            ["UPDATE t SET v = 10 WHERE id = 2"],
            ["DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (8, 'b', 30, 3), (9, 'b', NULL, 3)"],
            ["DELETE FROM t WHERE g = 'b'", "UPDATE t SET g = 'a' WHERE g IS NULL"],
        )


@pytest.mark.parametrize("grouping", ["ROLLUP (g, v)", "CUBE (g, v)", "GROUPING SETS ((g), (v), ())", "g, ROLLUP (v)"])
def test_grouping_sets_tell_a_total_from_a_null(new_case: NewCase, grouping: str) -> None:
    with new_case(*GROUPS) as case:
        maintain(
            case,
            f"SELECT g, v, GROUPING(g, v) AS which, count(*) AS c, sum(n) AS s FROM t GROUP BY {grouping}",
            ["UPDATE t SET v = NULL WHERE id IN (1, 4)"],
            ["DELETE FROM t WHERE g IS NULL"],
            ["DELETE FROM t"],
            ["INSERT INTO t VALUES (1, NULL, NULL, 1)"],
        )


def test_nulls_of_another_branch_leave_a_sum_its_digits_and_its_type(new_case: NewCase) -> None:
    """As a part's rows are beside those of its table. A wider NULL makes the column wider, and sum() another type."""
    branches = "SELECT g, v, n, 1.50::numeric(4,2) AS f FROM t UNION ALL SELECT g, NULL{}, NULL, NULL FROM t"
    for wider, sink in (("", "merge by adding"), ("::bigint", "replace by key"), ("::integer", "merge by adding")):
        with new_case(*GROUPS) as case:
            st = maintain(
                case,
                f"SELECT g, sum(v) AS v, sum(n) AS n, sum(f) AS f, count(*) AS c FROM ({branches.format(wider)}) x"
                " GROUP BY g",
                ["DELETE FROM t WHERE id = 1"],
                ["UPDATE t SET n = 1.125, v = NULL WHERE g = 'a'"],
                ["UPDATE t SET v = 7, n = n / 3"],
            )
            assert st.view.sink == sink
