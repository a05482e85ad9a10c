"""What random search found, shrunk: each failed once."""

from __future__ import annotations

import re

import pytest

from airflow_provider_pgtrickle.engine.dvm.reasons import Reason
from tests.oracle.fixtures import NewCase
from tests.oracle.harness import Maintained, Refused, maintain

TABLE = ("CREATE TABLE t (a int PRIMARY KEY, b text)", "INSERT INTO t VALUES (1, 'x'), (2, 'y')")
CYCLES = (["INSERT INTO t VALUES (3, 'x')"], ["UPDATE t SET b = 'y'", "DELETE FROM t WHERE a = 1"])


def test_distinct_on_inside_distinct_on(new_case: NewCase) -> None:
    with new_case(
        "CREATE TABLE t (a text, f int, o numeric(10,2))", "INSERT INTO t VALUES ('b', 1, 0.00), ('c', 1, 2.25)"
    ) as case:
        maintain(
            case,
            "SELECT DISTINCT ON (n) n, o FROM"
            " (SELECT DISTINCT ON (a) a, f, o, a AS n FROM t ORDER BY a, f, o) x ORDER BY n, o",
            ["INSERT INTO t VALUES ('c', 2, 1.50)"],
            ["INSERT INTO t VALUES ('b', 0, 3.10)"],
        )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS n FROM (SELECT o.b FROM t o WHERE EXISTS (SELECT FROM t i WHERE o.a = i.a)) g",
        "SELECT count(*) AS n FROM (SELECT o.b FROM t o WHERE o.a NOT IN (SELECT i.a + 1 FROM t i)) g",
        "SELECT count(*) AS n FROM (SELECT DISTINCT ON (b) b, a FROM t ORDER BY b, a) x",
        "SELECT 1 AS c FROM (SELECT DISTINCT ON (a) a, b FROM t ORDER BY a) u UNION ALL SELECT 1 FROM t",
        "SELECT 'x' AS c FROM (SELECT o.b FROM t o WHERE o.a NOT IN (SELECT a + 1 FROM t)) o UNION SELECT b FROM t",
        "SELECT f.c FROM (SELECT 1 AS c FROM t UNION ALL SELECT 1 FROM t x WHERE x.b IN ('x', '')) f WHERE f.c > 0",
    ],
)
def test_columns_that_nobody_asks_for(new_case: NewCase, query: str) -> None:
    with new_case(*TABLE) as case:
        maintain(case, query, *CYCLES)


@pytest.mark.parametrize(
    "aggregate",
    [
        "mode() WITHIN GROUP (ORDER BY b)",
        "sum(a) FILTER (WHERE b = 'x')",
        "string_agg(b, ',' ORDER BY b)",
        "max(b)",
        "count(DISTINCT b)",
    ],
)
def test_grouping_sets_leave_arguments_of_aggregates_alone(new_case: NewCase, aggregate: str) -> None:
    """Only outside of an aggregate is a grouped column NULL where it isn't grouped by."""
    with new_case(*TABLE) as case:
        maintain(case, f"SELECT b, {aggregate} AS x FROM t GROUP BY ROLLUP (b)", *CYCLES)


def test_a_limit_over_rows_that_differ_in_nothing_shown(new_case: NewCase) -> None:
    """What LIMIT leaves out looks like what it keeps: the order shows all there is to see."""
    with new_case("CREATE TABLE l (k int)", "CREATE TABLE r (k int, v int)") as case:
        maintain(
            case,
            "SELECT l.k, x.v FROM l CROSS JOIN LATERAL (SELECT r.v FROM r WHERE r.k = l.k ORDER BY r.v LIMIT 1) x",
            ["INSERT INTO l VALUES (1)", "INSERT INTO r VALUES (1, 2), (1, 2), (1, 3)"],
            ["DELETE FROM r WHERE v = 2"],
        )


SHOP = (
    "CREATE TABLE a (id int PRIMARY KEY, g int, x text, arr int[])",
    "CREATE TABLE b (id int PRIMARY KEY, g int, y text)",
    "CREATE TABLE k (g int, v int, t text)",
    "INSERT INTO a VALUES (1, 1, 'x,y', '{1,2}'), (2, 1, 'z', '{}'), (3, 2, NULL, NULL), (4, NULL, 'q,r', '{3,3}')",
    "INSERT INTO b VALUES (1, 1, 'u'), (2, 2, 'v'), (3, NULL, 'w'), (4, 1, 'u')",
    "INSERT INTO k VALUES (1, 10, 'a'), (1, 10, 'a'), (2, NULL, 'b'), (NULL, 5, NULL)",
)
SHOP_CYCLES = (
    [
        "INSERT INTO a VALUES (5, 1, 'x,y,z', '{1,1,1}'), (6, 3, 'm', '{9}')",
        "INSERT INTO b VALUES (5, 3, 'zz')",
        "INSERT INTO k VALUES (3, 1, 'c'), (1, 10, 'a')",
    ],
    [
        "UPDATE a SET g = coalesce(g, 0) + 1 WHERE id IN (1, 4)",
        "UPDATE b SET g = 2 WHERE id IN (1, 3)",
        "UPDATE k SET v = v + 1 WHERE g = 1",
        "UPDATE a SET id = 10 WHERE id = 2",
    ],
    ["DELETE FROM a WHERE id = 3", "DELETE FROM b WHERE id = 2", "DELETE FROM k WHERE g = 2"],
    ["DELETE FROM a", "DELETE FROM k", "UPDATE b SET y = 'q'"],
    ["INSERT INTO a VALUES (1, 1, 'x,y', '{1,2}'), (2, NULL, '', '{}')", "INSERT INTO k VALUES (1, 1, 'k')"],
)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS c, (SELECT count(*) FROM b) AS d FROM a",
        "SELECT g, count(*) AS m FROM a GROUP BY g HAVING count(*) > (SELECT count(*) FROM k WHERE k.g = a.g)",
        "SELECT g FROM a GROUP BY g HAVING EXISTS (SELECT 1 FROM k WHERE k.v > sum(a.id))",
        "SELECT g, (SELECT count(*) FROM k WHERE k.g = a.g AND k.v >= max(a.id)) AS n FROM a GROUP BY g",
    ],
)
def test_an_aggregate_in_a_subquery_belongs_to_the_block_whose_columns_it_reads(new_case: NewCase, query: str) -> None:
    with new_case(*SHOP) as case:
        maintain(case, query, *SHOP_CYCLES)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT g, sum(CASE WHEN g = ANY (SELECT g FROM b) THEN 1 END) AS s FROM a GROUP BY g",
        "SELECT g, sum(CASE WHEN g > ALL (SELECT v FROM k WHERE v > 0) THEN 1 ELSE 0 END) AS s FROM a GROUP BY g",
        "SELECT v.x FROM (VALUES ((SELECT max(id) FROM a)), (1)) v(x)",
        "SELECT a.id, v.x FROM a JOIN (VALUES ((SELECT max(id) FROM b)), (1)) v(x) ON v.x = a.id",
        "SELECT s.n FROM generate_series(1, (SELECT max(g) FROM a)) s(n)",
        "SELECT a.id, s.n FROM a, generate_series(1, (SELECT count(*) FROM b WHERE b.g = a.g)) s(n)",
    ],
)
def test_a_subquery_is_seen_wherever_it_stands(new_case: NewCase, query: str) -> None:
    with new_case(*SHOP) as case:
        maintain(case, query, *SHOP_CYCLES)


def test_rows_of_both_sides_of_a_full_join_may_have_nothing_but_nulls(new_case: NewCase) -> None:
    with new_case(*SHOP) as case:
        maintain(
            case,
            "SELECT a.g, b.h FROM (SELECT DISTINCT g FROM a) a FULL JOIN (SELECT DISTINCT g AS h FROM b) b ON g = h",
            *SHOP_CYCLES,
        )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, ARRAY(SELECT y FROM b WHERE b.g = a.g ORDER BY y DESC, id) AS m FROM a",
        "SELECT id, ARRAY(SELECT DISTINCT y FROM b WHERE b.g = a.g ORDER BY y DESC) AS m FROM a",
        "SELECT id, ARRAY(SELECT y FROM b UNION SELECT t FROM k ORDER BY 1 DESC) AS m FROM a",
        "SELECT g, ARRAY(SELECT y FROM b WHERE b.g = a.g ORDER BY id) AS m, count(*) AS n FROM a GROUP BY g",
    ],
)
def test_an_array_keeps_the_order_of_its_subquery(new_case: NewCase, query: str) -> None:
    with new_case(*SHOP) as case:
        maintain(case, query, *SHOP_CYCLES)


@pytest.mark.parametrize(
    "value",
    [
        "(SELECT string_agg(y, ',') FROM b WHERE b.g >= a.g)",
        "ARRAY(SELECT y FROM b WHERE b.g >= a.g)",
        "(SELECT jsonb_agg(y) FROM b WHERE b.g > a.g)",
        "(SELECT sum(f.r * f.v) FROM (SELECT v, row_number() OVER (ORDER BY g) AS r FROM k) f WHERE f.v = a.id * 5)",
    ],
)
def test_an_order_that_a_subquery_leaves_open_is_the_same_each_time(new_case: NewCase, value: str) -> None:
    """PostgreSQL may answer in any order; what is taken back must look like what was stored."""
    with new_case(*SHOP) as case:
        case.change("DELETE FROM b")
        st = Maintained.create(case, f"SELECT id, {value} AS m FROM a")
        case.change("INSERT INTO b VALUES (1, 1, 'u'), (2, 2, 'v'), (3, NULL, 'w'), (4, 1, 'u')")
        for cycle in SHOP_CYCLES:
            case.change(*cycle)
            case.execute(f"SET LOCAL enable_hashagg = {'on' if case.xid % 2 else 'off'}")
            st._apply(st.view.delta(st.binding()) or "SELECT 0 AS __pgt_w, st_0.* FROM st_0 WHERE false")
            st.frontier = case.xid


@pytest.mark.parametrize("second", ["r.w", "r.w + 0", "r.k"])
def test_a_full_join_of_columns_whose_types_differ(new_case: NewCase, second: str) -> None:
    with new_case(
        "CREATE TABLE l (k int, v numeric)",
        "CREATE TABLE r (k bigint, w numeric(10,2))",
        "INSERT INTO l VALUES (1, 1), (NULL, 2), (2, NULL)",
    ) as case:
        maintain(
            case,
            f"SELECT l.k, l.v, r.k AS rk, r.w FROM l FULL JOIN r ON l.k = r.k AND l.v = {second}",
            ["INSERT INTO r VALUES (1, 1), (NULL, 2), (2, NULL)"],
            ["UPDATE l SET v = v + 1", "UPDATE r SET k = 1"],
            ["DELETE FROM l WHERE k = 1"],
        )


def test_a_total_over_all_groupings_keeps_its_modifier(new_case: NewCase) -> None:
    with new_case("CREATE TABLE t (a numeric(10,2), b text)", "INSERT INTO t VALUES (1.50, 'x')") as case:
        maintain(
            case,
            "SELECT a, string_agg(b, ',' ORDER BY b) AS s FROM t GROUP BY ROLLUP (a)",
            ["INSERT INTO t VALUES (2, 'y')"],
        )


@pytest.mark.parametrize(
    "value",
    [
        "sum(CASE WHEN t = 'a' THEN v END)",
        "sum(CASE WHEN t = 'a' THEN 1 ELSE 0::bigint END)",
        "sum(CASE WHEN t = 'a' THEN 1 ELSE 0::double precision END)",
        "sum(CASE WHEN t = 'a' THEN 1 ELSE NULL::numeric END)",
        "avg(CASE WHEN t IS NULL THEN v::numeric(10,2) END)",
    ],
)
def test_a_null_branch_has_a_type_of_its_own(new_case: NewCase, value: str) -> None:
    with new_case(*SHOP) as case:
        maintain(case, f"SELECT g, {value} AS s FROM k GROUP BY g", *SHOP_CYCLES)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, regexp_split_to_table(x, ',') AS w FROM a",
        "SELECT id, generate_series(1, g) + generate_series(1, 2) AS n FROM a",
        "SELECT s.id, b.y FROM (SELECT id, twice(g) AS w FROM a) s JOIN b ON b.id = s.id",
        "SELECT g, generate_series(1, count(*)) AS n FROM k GROUP BY g",
        "SELECT generate_series(1, count(*)) AS n FROM k",
        "SELECT g, count(*) AS n FROM (SELECT g, generate_series(1, v) AS x FROM k) s GROUP BY g",
        "SELECT g, n + 1 AS m FROM (SELECT g, generate_series(1, count(*)) AS n FROM k GROUP BY g) s",
    ],
)
def test_a_function_that_returns_a_set_multiplies_rows(new_case: NewCase, query: str) -> None:
    twice = "CREATE FUNCTION twice(i int) RETURNS SETOF int LANGUAGE sql IMMUTABLE AS 'SELECT i UNION ALL SELECT i'"
    with new_case(*SHOP, twice) as case:
        maintain(case, query, *SHOP_CYCLES)


def test_distinct_on_beside_a_function_that_returns_a_set_is_refused(new_case: NewCase) -> None:
    with new_case(*SHOP) as case, pytest.raises(Refused, match="returns a set"):
        maintain(case, "SELECT DISTINCT ON (id) id, unnest(arr) AS u FROM a ORDER BY id, u")


def test_an_aggregate_of_the_users_own(new_case: NewCase) -> None:
    own = "CREATE AGGREGATE total(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0')"
    with new_case(*SHOP, own) as case:
        maintain(
            case,
            "SELECT g, total(v) AS s FROM k WHERE v > 0 GROUP BY ROLLUP (g)",
            *SHOP_CYCLES,
        )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT g, own.total(v) FILTER (WHERE v > 1) AS s FROM k GROUP BY g",
        "SELECT g, own.total(DISTINCT v) FILTER (WHERE v > 1) + count(*) AS s FROM k GROUP BY g",
        "SELECT g, v, own.total(v) FILTER (WHERE v > 1) OVER (PARTITION BY g) AS s FROM k",
        "SELECT a.id, (SELECT own.total(v) FILTER (WHERE v > 1) FROM k WHERE k.g = a.g) AS s FROM a",
        "SELECT x.s, a.id FROM a JOIN (SELECT g, own.total(v) FILTER (WHERE v > 1) AS s FROM k GROUP BY g) x USING (g)",
        "SELECT g FROM k GROUP BY g HAVING own.total(v) FILTER (WHERE v IN (SELECT id FROM a)) > 0",
    ],
)
def test_a_filtered_call_that_names_its_schema(new_case: NewCase, query: str) -> None:
    own = "CREATE AGGREGATE own.total(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0')"
    with new_case(*SHOP, "CREATE SCHEMA own", own) as case:
        maintain(case, query, *SHOP_CYCLES)


def test_elements_are_numbered_from_their_arrays(new_case: NewCase) -> None:
    with new_case(*SHOP) as case:
        maintain(case, "SELECT a.id, w.v, w.o FROM a, unnest(arr) WITH ORDINALITY AS w(v, o)", *SHOP_CYCLES)


@pytest.mark.parametrize("call", ["array_agg(id)", "string_agg(id::text, ',')", "json_agg(id)"])
def test_an_ordered_frame_keeps_the_rows_that_tie_together(new_case: NewCase, call: str) -> None:
    """Rows that tie share one frame; a finer order would give each of them another."""
    window = f"SELECT id, g, {call} OVER (ORDER BY g) AS s FROM b"
    with new_case(*SHOP) as case:
        maintain(case, window, *SHOP_CYCLES[:2])
        with pytest.raises(Refused, match="order of rows that tie"):
            Maintained.create(case, f"SELECT w.s, k.v FROM ({window}) w LEFT JOIN k USING (g)", name="st_1")
        whole = window.replace("ORDER BY g", "PARTITION BY g")
        Maintained.create(case, f"SELECT w.id, k.v FROM ({whole}) w LEFT JOIN k USING (g)", name="st_2")


def test_what_a_grouping_groups_is_the_same_each_time(new_case: NewCase) -> None:
    """Its old and new rows say which groups to compute anew, so rows that tie are numbered alike in both."""
    with new_case(*SHOP) as case:
        numbered = "SELECT t, row_number() OVER (ORDER BY g) AS r FROM k"
        st = maintain(case, f"SELECT r, array_agg(t) AS ts FROM ({numbered}) s GROUP BY r", *SHOP_CYCLES[:0])
        assert re.search(r'OVER \(ORDER BY \S+"g", \S+"t"', st.view.storage_query())


@pytest.mark.parametrize("over", ["OVER ()", "OVER (ORDER BY v)", "FILTER (WHERE v > 1) OVER ()"])
def test_a_window_over_the_groups_that_reads_like_their_aggregate(new_case: NewCase, over: str) -> None:
    with new_case(*SHOP) as case:
        maintain(case, f"SELECT v, sum(v) AS s, sum(v) {over} AS w FROM k GROUP BY v", *SHOP_CYCLES)


@pytest.mark.parametrize("call", ["last_value(i.a)", "array_agg(i.b)", "nth_value(i.b, 2)"])
def test_no_rows_tie_in_a_window_of_a_subquery_that_is_ordered_by_a_key(new_case: NewCase, call: str) -> None:
    with new_case(*TABLE) as case:
        windowed = f"SELECT i.b, {call} OVER (ORDER BY i.a, i.b) AS v FROM t i"
        elements = f"SELECT w.v::text FROM ({windowed}) w WHERE w.b = o.b ORDER BY w.v::text"
        maintain(case, f"SELECT o.a, ARRAY({elements}) AS c FROM t o", *CYCLES)


def test_the_null_of_a_rollup_takes_no_order_from_a_subquery(new_case: NewCase) -> None:
    with new_case(*TABLE) as case:
        first = "SELECT i.b FROM t i WHERE i.a >= o.a ORDER BY i.a, i.b LIMIT 1"
        rows = f"SELECT o.a, n.b FROM t o CROSS JOIN LATERAL ({first}) n"
        maintain(case, f"SELECT b, count(*) AS c, grouping(b) AS g FROM ({rows}) r GROUP BY ROLLUP (b)", *CYCLES)


def test_a_constant_that_is_grouped_by_is_no_bound_of_a_frame(new_case: NewCase) -> None:
    with new_case(*SHOP) as case:
        maintain(
            case,
            "SELECT 1 AS one, g, sum(count(*)) OVER (ORDER BY g RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS near"
            " FROM a GROUP BY ROLLUP (1, 2)",
            *SHOP_CYCLES,
        )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT q.x, q.n FROM (SELECT id, x, count(*) AS n FROM a GROUP BY id ORDER BY x, id LIMIT 2) q",
        "SELECT b.id, (SELECT a.x FROM a WHERE a.g = b.g GROUP BY a.id ORDER BY a.x, a.id LIMIT 1) AS x FROM b",
        "SELECT b.id, q.n FROM b, LATERAL (SELECT upper(a.x) AS n FROM a GROUP BY a.id HAVING a.g = b.g) q",
        "SELECT q.id, q.g FROM (SELECT id, g, (SELECT count(*) FROM k WHERE k.g = a.g) AS n FROM a"
        " GROUP BY ROLLUP (x), id ORDER BY n, id, x LIMIT 3) q",
    ],
)
def test_what_follows_from_a_primary_key_where_postgresql_evaluates_the_block(new_case: NewCase, query: str) -> None:
    """A table's old rows are a derived table, which has no primary key to follow from."""
    with new_case(*SHOP) as case:
        maintain(case, query, *SHOP_CYCLES)


@pytest.mark.parametrize("groups", ["ROLLUP (t)", "CUBE (g, t)", "GROUPING SETS ((t), (g), ())", "ROLLUP (t), g"])
def test_a_limit_over_grouping_sets(new_case: NewCase, groups: str) -> None:
    """What tells their rows apart is every key, and which of them a row is grouped by."""
    with new_case(*SHOP) as case:
        first = f"SELECT count(*) AS n, sum(v) AS s, max(t) AS m FROM k GROUP BY {groups} ORDER BY n, s, m LIMIT 2"
        st = maintain(case, f"SELECT q.n, q.s, q.m FROM ({first}) q", *SHOP_CYCLES)
        assert re.search(r"ORDER BY .*, GROUPING\(.*LIMIT 2", st.view.storage_query())


def test_a_window_gives_its_aggregate_an_order_whatever_a_subquery_says(new_case: NewCase) -> None:
    with new_case(*SHOP) as case:
        rows = "SELECT DISTINCT ON (g) g, v, t FROM k ORDER BY g, v, t"
        maintain(
            case,
            f"SELECT g, string_agg(t, ',') OVER w AS ts FROM ({rows}) q WINDOW w AS (ORDER BY g, t ROWS 1 PRECEDING)",
            *SHOP_CYCLES,
        )


def test_a_window_over_groups_is_ordered_by_the_expression_that_they_are_grouped_by(new_case: NewCase) -> None:
    """In a block that PostgreSQL evaluates as it is written."""
    with new_case(*SHOP) as case:
        numbered = "SELECT i.v + 1 AS v, lag(count(*)) OVER (ORDER BY i.v + 1) AS n FROM k i GROUP BY i.v + 1"
        elements = f"SELECT w.n FROM ({numbered}) w WHERE w.v > o.id ORDER BY w.n"
        maintain(case, f"SELECT o.id, ARRAY({elements}) AS ns FROM a o", *SHOP_CYCLES)


BESIDE = (
    "CREATE TABLE a (id int PRIMARY KEY, x int)",
    "CREATE TABLE b (id int, y int)",
    "CREATE TABLE c (id int)",
    "INSERT INTO a SELECT i, i % 3 FROM generate_series(1, 5) i",
    "INSERT INTO b SELECT i, i % 2 FROM generate_series(1, 5) i",
    "INSERT INTO c VALUES (0), (1), (2)",
)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id, b.y, v.z FROM a, b JOIN LATERAL (VALUES (a.x), (-1)) AS v(z) ON b.y = v.z",
        "SELECT a.id, b.y, v.z FROM a, b LEFT JOIN LATERAL (SELECT a.x FROM c WHERE c.id < a.x) AS v(z) ON b.y = v.z",
        "SELECT a.id, b.y, g FROM a JOIN (b LEFT JOIN generate_series(1, a.x) g ON g = b.y) ON a.x = b.y",
        "SELECT a.id, c.id AS c, v.z FROM a, (b LEFT JOIN c ON c.id = b.y)"
        " LEFT JOIN LATERAL (SELECT a.x + c.id AS z) v ON v.z > 1",
    ],
)
def test_joins_in_parentheses_that_are_lateral_to_what_stands_outside(new_case: NewCase, query: str) -> None:
    with new_case(*BESIDE) as case:
        maintain(
            case,
            query,
            ["UPDATE a SET x = x + 1 WHERE id < 3", "INSERT INTO b VALUES (7, 2)"],
            ["DELETE FROM c WHERE id = 1", "DELETE FROM a WHERE id = 4", "INSERT INTO c VALUES (2)"],
            ["DELETE FROM b", "UPDATE a SET x = 2"],
        )


KEYS = ("CREATE TABLE t (id int PRIMARY KEY, v int, w int)", "CREATE TABLE u (id int, x int)")
KEYS_FILLED = (
    "INSERT INTO t SELECT i, i % 3, i % 2 FROM generate_series(1, 9) i",
    "INSERT INTO u SELECT i, i % 4 FROM generate_series(1, 6) i",
)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT grouping((SELECT t.v FROM t i WHERE i.id = t.id)) AS g, (SELECT t.v FROM t i WHERE i.id = t.id) AS s"
        " FROM t GROUP BY GROUPING SETS (v, s)",
        "SELECT ARRAY(SELECT x FROM u WHERE u.id = t.v) AS e, count(*) AS n FROM t GROUP BY 1",
        "SELECT (SELECT x FROM u WHERE u.id > t.v ORDER BY x LIMIT 1) AS e, count(*) AS n FROM t GROUP BY 1",
        "SELECT max(v) OVER (PARTITION BY ARRAY(SELECT x FROM u WHERE u.id = t.w)) AS m, id FROM t",
    ],
)
def test_a_key_that_a_subquery_gives(new_case: NewCase, query: str) -> None:
    """The key was not recognized in the list, and its columns became keys besides."""
    with new_case(*KEYS, *KEYS_FILLED) as case:
        maintain(
            case,
            query,
            ["INSERT INTO u VALUES (1, 9), (0, 2)", "UPDATE t SET v = 2 WHERE id = 4"],
            ["DELETE FROM u WHERE x = 1", "INSERT INTO t VALUES (20, 0, 7)"],
        )


@pytest.mark.parametrize(
    "call",
    [
        "max((SELECT u.x FROM u WHERE u.id = t.v)) FILTER (WHERE t.v < 2)",
        "sum(CASE WHEN t.v < 2 THEN (SELECT u.x FROM u WHERE u.id = t.v) END)",
        "max((SELECT u.x FROM u WHERE u.id = t.v)) FILTER (WHERE t.v < 2) OVER (PARTITION BY t.w)",
    ],
)
def test_a_subquery_is_asked_only_for_rows_that_filter_and_case_let_through(new_case: NewCase, call: str) -> None:
    """For v = 2 the subquery has two rows, and so no value."""
    with new_case(*KEYS, *KEYS_FILLED, "INSERT INTO u VALUES (2, 0)") as case:
        group = "" if "OVER" in call else " GROUP BY w"
        maintain(
            case,
            f"SELECT w, {call} AS m FROM t{group}",
            ["UPDATE u SET x = 8 WHERE id = 1"],
            ["INSERT INTO t VALUES (20, 2, 1), (21, 1, 1)", "DELETE FROM t WHERE id = 1"],
        )


def test_collected_values_whose_order_ties_are_always_in_the_same_order(new_case: NewCase) -> None:
    """PostgreSQL takes rows that tie as they lie, and an UPDATE moves them: old values came out otherwise."""
    ordered = "array_agg(t.v ORDER BY t.w, t.v::text)"
    query = (
        f"SELECT u.id, g.vs FROM u LEFT JOIN (SELECT w % 2 AS k, {ordered} AS vs FROM t GROUP BY 1) g ON g.k = u.x % 2"
    )
    with new_case(*KEYS, *KEYS_FILLED) as case:
        st = Maintained.create(case, query.replace(", t.v::text", ""), spelled=query)
        for cycle in range(4):
            case.change(
                f"UPDATE t SET v = 9 - v WHERE id = {cycle + 1}", f"UPDATE t SET w = w + 2 WHERE id = {cycle + 5}"
            )
            assert st.refresh() == "DIFFERENTIAL"


def test_a_function_of_the_users_that_is_read_as_a_table(new_case: NewCase) -> None:
    with new_case(
        *KEYS,
        *KEYS_FILLED,
        "CREATE FUNCTION one(i int) RETURNS int LANGUAGE sql IMMUTABLE RETURN i",
        "CREATE FUNCTION few(i int, OUT a int, OUT b text) RETURNS SETOF record LANGUAGE sql IMMUTABLE"
        " BEGIN ATOMIC SELECT j, 'b' || j FROM generate_series(1, i) j; END",
    ) as case:
        for number, query in enumerate(
            (
                "SELECT t.id, f FROM t LEFT JOIN one(1) f ON t.v = f",
                "SELECT t.id, f.* FROM t JOIN few(3) WITH ORDINALITY AS f(a, b, n) ON t.v = f.n",
                "SELECT t.id, f.b FROM t, few(t.v) f",
                "SELECT t.id, f.* FROM t LEFT JOIN ROWS FROM (few(2), one(5)) AS f(a, b, c) ON f.a = t.v",
            )
        ):
            st = Maintained.create(case, query, name=f"st_{number}")
            case.change("UPDATE t SET v = v + 1 WHERE id > 6", f"INSERT INTO t VALUES ({30 + number}, 1, 1)")
            assert st.refresh() == "DIFFERENTIAL"


@pytest.mark.parametrize(
    "looked_up",
    [
        "(SELECT u.x FROM u WHERE u.x >= t.v ORDER BY u.x LIMIT 1)",
        "array_length(ARRAY(SELECT u.x FROM u WHERE u.x <> t.v), 1)",
    ],
)
@pytest.mark.parametrize(
    "rest",
    [
        "row_number() OVER (ORDER BY {}, (1)::int) AS n FROM t GROUP BY ROLLUP ({}, 2)",
        "count(*) AS n FROM t GROUP BY ROLLUP ({}, 2) ORDER BY {}, 2, 3 LIMIT 3",
    ],
)
def test_a_key_with_an_order_of_its_own_beside_a_constant_key(new_case: NewCase, looked_up: str, rest: str) -> None:
    """The key's order was made total in one of its places only: PostgreSQL refused the key as GROUPING's argument."""
    block = f"SELECT {looked_up} AS k, 1 AS c, {rest.replace('{}', looked_up)}"
    with new_case(*KEYS, *KEYS_FILLED) as case:
        maintain(
            case,
            f"SELECT k, c FROM ({block}) AS q",
            ["INSERT INTO u VALUES (8, 9), (9, 2)", "UPDATE t SET v = 2 WHERE id = 4"],
            ["DELETE FROM u WHERE x = 1", "INSERT INTO t VALUES (20, 0, 7)"],
        )


LOOSE = (
    "CREATE TYPE pair AS (x numeric, y int)",
    "CREATE TABLE l (id int PRIMARY KEY, n numeric, i interval, p pair)",
    "INSERT INTO l VALUES (1, 1.0, '1 day', ROW(1.0, 1)), (2, 1.00, '24 hours', ROW(1.00, 1)), (3, 2, NULL, NULL)",
)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT n FROM (SELECT DISTINCT n FROM l) d WHERE n::text = '1.0'",
        "SELECT n, (n + 1)::text AS t FROM l GROUP BY n",
        "SELECT n, count(*) AS c FROM l GROUP BY n HAVING scale(n) > 1",
        "SELECT id FROM l JOIN (SELECT n AS m FROM l UNION SELECT n + 1 FROM l) d ON l.n::text = d.m::text",
        "SELECT concat(i, '') AS t FROM (SELECT i FROM l INTERSECT SELECT i FROM l) d",
        "SELECT to_jsonb(coalesce(n, 0)) AS t FROM (SELECT n FROM l EXCEPT ALL SELECT 2.00 FROM l) d",
        "SELECT p FROM (SELECT p FROM l INTERSECT SELECT p FROM l) d WHERE p *= ROW(1.0, 1)::pair",
        "SELECT p FROM (SELECT DISTINCT p FROM l) d WHERE p OPERATOR(pg_catalog.*<>) ROW(1.0, 1)::pair",
        "SELECT count(*) AS c FROM (SELECT DISTINCT n FROM l) d GROUP BY n || 'x'",
    ],
)
def test_what_tells_equal_values_apart_is_refused_above_their_group(new_case: NewCase, query: str) -> None:
    """Which of 1.0 and 1.00 stands for the group, PostgreSQL decides each time; the difference kept the first one."""
    with new_case(*LOOSE) as case, pytest.raises(Refused, match="tells equal values apart") as refused:
        Maintained.create(case, query)
    assert refused.value.reason is Reason.AMBIGUOUS_ORDER


@pytest.mark.parametrize(
    "query",
    [
        "SELECT n, n::text AS t, count(*) AS c FROM l GROUP BY n, n::text",
        "SELECT round(n, 2)::text AS t, n::int AS i FROM (SELECT DISTINCT n FROM l) d WHERE n > 0",
        "SELECT l.n::text AS t, d.c FROM l JOIN (SELECT n, count(*) AS c FROM l GROUP BY n) d USING (n)",
        "SELECT id, n::text AS t FROM l WHERE p *= ROW(1.0, 1)::pair",
        "SELECT id::text AS t, count(n) AS c FROM l GROUP BY id",
        "SELECT n::text AS t FROM (SELECT n FROM l UNION ALL SELECT n FROM l) d",
    ],
)
def test_what_no_group_stands_between_may_be_told_apart(new_case: NewCase, query: str) -> None:
    with new_case(*LOOSE) as case:
        maintain(
            case,
            query,
            ["INSERT INTO l VALUES (4, 2.0, '1 day', ROW(1.00, 1)), (5, 1, NULL, NULL)"],
            ["DELETE FROM l WHERE id = 1", "UPDATE l SET n = 2.00 WHERE id = 2"],
        )


@pytest.mark.parametrize(
    "query",
    [
        "WITH RECURSIVE r(n) AS (SELECT min(v) FROM t UNION ALL SELECT n + 1 FROM r)"
        " SELECT id FROM t WHERE EXISTS (SELECT FROM r WHERE n > t.w)",
        "WITH RECURSIVE r(n) AS (SELECT min(v) FROM t UNION SELECT n + 1 FROM r, u)"
        " SELECT id FROM t WHERE t.w = ANY (SELECT n FROM r)",
        "SELECT id, (WITH RECURSIVE r(n) AS (SELECT t.v UNION ALL SELECT n + 1 FROM r)"
        " SELECT n FROM r ORDER BY n LIMIT 1) AS n FROM t WHERE false",
        "WITH RECURSIVE r(n) AS (SELECT min(v) FROM t UNION ALL SELECT n + 1 FROM r)"
        " SELECT id, CASE WHEN id > 100 THEN (SELECT max(n) FROM r) END AS n FROM t",
    ],
)
def test_a_recursion_that_nothing_ends_is_refused(new_case: NewCase, query: str) -> None:
    """PostgreSQL stops when nobody asks for more rows; kept as a part it never ended, nor did its declaration."""
    with new_case(*KEYS, *KEYS_FILLED) as case, pytest.raises(Refused, match="each row of r has a next one") as refused:
        Maintained.create(case, query)
    assert refused.value.reason is Reason.ENDLESS


@pytest.mark.parametrize(
    ("base", "step"),
    [
        ("SELECT v FROM t", "SELECT n + 1 FROM r WHERE n < 4"),
        ("SELECT v FROM t", "SELECT w FROM r, t"),
        ("SELECT v FROM t", "SELECT u.x FROM r JOIN u ON u.id = r.n"),
        ("SELECT v FROM t", "SELECT unnest(array_remove(ARRAY[r.n - 1], -1)) FROM r"),
        ("SELECT v FROM t", "SELECT g.i FROM r, generate_series(r.n + 1, 4) AS g(i)"),
    ],
)
def test_a_recursion_that_may_end_is_kept(new_case: NewCase, base: str, step: str) -> None:
    with new_case(*KEYS, *KEYS_FILLED) as case:
        maintain(
            case,
            f"WITH RECURSIVE r(n) AS ({base} UNION {step})"
            " SELECT id FROM t WHERE EXISTS (SELECT FROM r WHERE r.n > t.w)",
            ["INSERT INTO u VALUES (8, 9), (0, 2)", "UPDATE t SET v = 2 WHERE id = 4"],
        )


FEW = ("CREATE TABLE t (a int, b int)", "INSERT INTO t VALUES (1, 1), (2, 3), (2, 2), (3, NULL)")
FEW_CHANGED = (
    ["INSERT INTO t VALUES (1, 7), (4, 1), (0, 0)"],
    ["UPDATE t SET b = 2 WHERE a = 1", "DELETE FROM t WHERE a = 2 AND b = 3"],
    ["DELETE FROM t WHERE a = 0"],
)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM t WHERE a IN (VALUES (1), (2) OFFSET 1)",
        "SELECT a FROM t WHERE a IN (VALUES (1), (2) ORDER BY 1)",
        "SELECT a FROM t WHERE a IN (VALUES (1), (2) LIMIT 1)",
        "SELECT a FROM t WHERE (a, b) NOT IN (VALUES (1, 2), (2, 3) ORDER BY 1 DESC LIMIT 1)",
        "SELECT a FROM t WHERE a <> ALL (VALUES (1), (2) LIMIT 1) OR b = ANY (VALUES (1), (2) OFFSET 1)",
        "SELECT a, ARRAY(VALUES (2), (1) ORDER BY 1) AS x, ARRAY(VALUES (2), (1)) AS y FROM t",
        "SELECT a, (VALUES (b), (a) OFFSET 1) AS z FROM t",
        "SELECT x.v, t.b FROM (VALUES (1), (2), (3) LIMIT 2) x (v) JOIN t ON t.a = x.v",
        "SELECT a, l.v FROM t CROSS JOIN LATERAL (VALUES (a), (b) LIMIT 1) l (v)",
        "SELECT a FROM t UNION ALL (VALUES (1), (2) ORDER BY 1 LIMIT 1)",
    ],
)
def test_values_with_an_order_and_a_limit(new_case: NewCase, query: str) -> None:
    """VALUES stand in the order in which they are written, so a LIMIT needs no other."""
    with new_case(*FEW) as case:
        maintain(case, query, *FEW_CHANGED)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT (WITH c (x) AS (VALUES (a)) VALUES ((SELECT x FROM c))) AS v FROM t",
        "SELECT a, (WITH c AS (SELECT max(i.b) AS m FROM t i WHERE i.a = t.a) VALUES ((SELECT m FROM c))) AS v FROM t",
        "WITH c AS (SELECT max(b) AS m FROM t) VALUES ((SELECT m FROM c), 2), (3, 4)",
        "WITH c AS (SELECT max(b) AS m FROM t) SELECT * FROM (VALUES ((SELECT m FROM c), 2), (3, 4) ORDER BY 2) v",
    ],
)
def test_values_under_a_with_of_their_own(new_case: NewCase, query: str) -> None:
    with new_case(*FEW) as case:
        maintain(case, query, *FEW_CHANGED)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, sum(a) OVER (ORDER BY a ROWS (SELECT a FROM t ORDER BY a LIMIT 1) + 1 PRECEDING) AS s FROM t",
        "SELECT a, b, sum(a) OVER (PARTITION BY b ORDER BY a ROWS BETWEEN (SELECT min(a) FROM t) PRECEDING"
        " AND (SELECT count(*) FROM t) FOLLOWING) AS s FROM t",
        "SELECT b, s FROM (SELECT b, sum(a) OVER (ORDER BY a RANGE (SELECT max(b) FROM t) PRECEDING) AS s FROM t) x"
        " WHERE s > 1",
        "SELECT a, last_value(a) OVER (ORDER BY a) AS l, count(*) OVER (ORDER BY a, b ROWS (SELECT max(a) FROM t)"
        " PRECEDING) AS n FROM t",
    ],
)
def test_a_frame_that_ends_where_a_table_says(new_case: NewCase, query: str) -> None:
    """Each change of that table may touch every row, so the block is computed in both states."""
    with new_case(*FEW) as case:
        maintain(case, query, *FEW_CHANGED)
