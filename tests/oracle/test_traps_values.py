"""Where values, types and names are lost on the way, each a named test against PostgreSQL."""

from __future__ import annotations

import pytest

from tests.oracle.fixtures import NewCase
from tests.oracle.harness import Maintained, Undefined, maintain
from tests.oracle.tables import GROUPS


def test_a_numeric_keeps_its_scale(new_case: NewCase) -> None:
    rows = "INSERT INTO t VALUES (1, 1.50), (2, 2.5)"
    with new_case("CREATE TABLE t (id int PRIMARY KEY, n numeric)", rows) as case:
        st = maintain(
            case,
            "SELECT id, n, n * 2 AS twice, n / 3 AS third FROM t",
            ["UPDATE t SET n = 1.5 WHERE id = 1", "INSERT INTO t VALUES (3, 1e30), (4, 0.000000000000000000000001)"],
        )
        assert str(st.rows()[0][1]) == "1.5"


def test_negative_zero_is_itself(new_case: NewCase) -> None:
    with new_case("CREATE TABLE f (id int PRIMARY KEY, x float8)", "INSERT INTO f VALUES (1, 0), (2, '-0')") as case:
        maintain(case, "SELECT id, x FROM f", ["UPDATE f SET x = '-0' WHERE id = 1"], ["UPDATE f SET x = 0"])


def test_negative_zero_is_zero_where_it_is_a_key(new_case: NewCase) -> None:
    with new_case("CREATE TABLE f (id int PRIMARY KEY, x float8)", "INSERT INTO f VALUES (1, 0), (2, '-0')") as case:
        maintain(
            case,
            "SELECT x, count(*) AS c FROM f GROUP BY x",
            ["DELETE FROM f WHERE id = 1"],
            ["INSERT INTO f VALUES (3, 0), (4, 'NaN'), (5, 'NaN')"],
            ["DELETE FROM f WHERE id IN (2, 4)"],
            exact_images=False,
        )


def test_overflow_is_an_error_and_never_a_wrong_number(new_case: NewCase) -> None:
    with new_case("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 2147483647)") as case:
        st = Maintained.create(case, "SELECT id, v + (id - 1) AS w FROM t")
        case.change("INSERT INTO t VALUES (3, 2147483647)")
        with pytest.raises(Undefined, match="out of range"):
            st.refresh()


def test_parentheses_and_casts_survive(new_case: NewCase) -> None:
    with new_case(*GROUPS) as case:
        maintain(
            case,
            "SELECT id, (v + 1) * 2 AS a, v - (id - 1) AS b, -(v % 7) AS c, (-v) % 7 AS d, (v::text || '1')::int AS e,"
            " NOT (v > 5 AND id < 3) AS f, (v / 4) * 4 AS g4, (n::int)::numeric(6,2) AS h, v # 3 AS i,"
            " (2 ^ id)::int AS j, 7 / 2 AS k, -7 / 2 AS m, 'a' || NULL AS o, (id = 1) IS NOT DISTINCT FROM NULL AS p"
            " FROM t WHERE (v > 1 OR id = 2) AND NOT (id = 3 OR id = 99)",
            ["UPDATE t SET v = v * 3, n = n + 0.5"],
            ["INSERT INTO t VALUES (8, 'x', -13, -0.5)"],
        )


def test_like_escapes_regular_expressions_and_quotes(new_case: NewCase) -> None:
    rows = r"INSERT INTO t VALUES (1, 'a_b%'), (2, 'axb''\')"
    with new_case("CREATE TABLE t (id int PRIMARY KEY, s text)", rows) as case:
        maintain(
            case,
            r"SELECT id, s LIKE 'a\_b%' AS a, s LIKE 'a#_b#%' ESCAPE '#' AS b, s ~ '^a.b' AS c, s !~* 'X' AS d,"
            r" s SIMILAR TO '(a|b)%' AS e, s || E'\n''' AS f, '100%' AS g, s ILIKE 'A%' AS h FROM t",
            [r"INSERT INTO t VALUES (3, E'a\\_b%\n'), (4, '%s %(x)s')"],
            ["DELETE FROM t WHERE id = 1"],
        )


CHARACTERS = ("CREATE TABLE t (c char(5), v varchar(5))", "INSERT INTO t VALUES ('a', 'a'), ('a  ', 'a  ')")


def test_padding_of_char_is_no_difference(new_case: NewCase) -> None:
    with new_case(*CHARACTERS) as case:
        maintain(
            case,
            "SELECT c, count(*) AS n, c = 'a' AS e, length(c) AS l, max(c || '|') AS m, count(DISTINCT v) AS d"
            " FROM t GROUP BY c",
            ["INSERT INTO t VALUES ('a    ', 'a'), ('b', 'b ')"],
            ["DELETE FROM t WHERE v = 'a  '"],
        )


def test_padding_of_varchar_is_one(new_case: NewCase) -> None:
    with new_case(*CHARACTERS) as case:
        maintain(case, "SELECT c, v FROM t", ["DELETE FROM t WHERE v = 'a'"], ["INSERT INTO t VALUES ('b ', 'b ')"])


def test_instants_across_a_change_to_summer_time(new_case: NewCase) -> None:
    with new_case(
        "CREATE TABLE t (id int PRIMARY KEY, at timestamptz, local timestamp)",
        "INSERT INTO t VALUES (1, '2024-03-31 00:59:59.123456+00', '2024-03-31 02:30'), (2, 'infinity', '-infinity')",
    ) as case:
        maintain(
            case,
            "SELECT id, at, at AT TIME ZONE 'Europe/Vienna' AS there, local AT TIME ZONE 'Europe/Vienna' AS at2,"
            " date_trunc('day', at, 'Europe/Vienna') AS d, at + interval '1 month' AS later FROM t",
            ["INSERT INTO t VALUES (3, '2024-10-27 01:00:00.000001+02', '0044-03-15 12:00 BC')"],
            ["UPDATE t SET at = at + interval '1 hour'"],
        )


@pytest.mark.parametrize("collation", ["C", "und-x-icu", "de-x-icu"])
def test_order_and_extremes_under_a_collation(new_case15: NewCase, collation: str) -> None:
    with new_case15(
        f'CREATE TABLE t (id int PRIMARY KEY, s text COLLATE "{collation}")',
        "INSERT INTO t VALUES (1, 'a'), (2, 'B'), (3, 'ä'), (4, 'Z'), (5, '_')",
    ) as case:
        maintain(
            case,
            "SELECT min(s) AS lo, max(s) AS hi, string_agg(s, '' ORDER BY s) AS all_of_them FROM t WHERE s < 'z'",
            ["DELETE FROM t WHERE id IN (1, 4)"],
            ["INSERT INTO t VALUES (6, 'É'), (7, 'e')"],
        )


@pytest.mark.parametrize("collation", ["C", "und-x-icu"])
def test_comparison_under_a_collation(new_case15: NewCase, collation: str) -> None:
    table = f'CREATE TABLE t (id int PRIMARY KEY, s text COLLATE "{collation}")'
    with new_case15(table, "INSERT INTO t VALUES (1, 'a'), (2, 'B')") as case:
        maintain(
            case,
            "SELECT s, id, s < 'C' COLLATE \"C\" AS c FROM t WHERE s > 'b'",
            ["INSERT INTO t VALUES (3, 'c'), (4, 'C'), (5, 'ß')"],
            ["UPDATE t SET s = lower(s)"],
        )


def test_a_collation_that_calls_different_texts_equal(new_case15: NewCase) -> None:
    with new_case15(
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE TABLE t (id int PRIMARY KEY, s text COLLATE loose)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
    ) as case:
        maintain(
            case,
            "SELECT id, s FROM t WHERE s <> 'B'",
            ["UPDATE t SET s = 'A' WHERE id = 1"],
            ["INSERT INTO t VALUES (3, 'B'), (4, 'C')"],
        )


def test_an_old_text_is_told_from_the_equal_new_one(new_case15: NewCase) -> None:
    with new_case15(
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE TABLE s (id int PRIMARY KEY, g int, t text COLLATE loose)",
        "CREATE TABLE d (g int PRIMARY KEY)",
        "INSERT INTO s VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'C')",
        "INSERT INTO d VALUES (1), (2)",
    ) as case:
        maintain(
            case,
            "SELECT x.g, x.every FROM (SELECT g, string_agg(t, ',' ORDER BY id) AS every FROM s GROUP BY g) AS x"
            " JOIN d ON d.g = x.g",
            ["UPDATE s SET t = 'A' WHERE id = 1", "UPDATE s SET t = 'c' WHERE id = 3"],
            ["UPDATE s SET t = 'a' WHERE id = 1", "DELETE FROM d WHERE g = 2"],
        )


VARIOUS = (
    ("integer[]", "'{1,NULL,3}'", "'{}'"),
    ("text[]", """'{"a b",NULL,"NULL",""}'""", "'{x}'"),
    ("jsonb", """'{"a": [1, 2.50, null]}'""", "'[]'"),
    ("json", """'{"b":1,  "a":2}'""", "'null'"),
    ("uuid", "'00000000-0000-0000-0000-000000000001'", "'ffffffff-0000-0000-0000-000000000001'"),
    ("mood", "'sad'", "'happy'"),
    ("int4range", "'[1,5)'", "'empty'"),
    ("interval", "'1 mon 2 days 03:04:05.678'", "'-1 day'"),
    ("bytea", r"'\x00ff27'", r"'\x'"),
    ("inet", "'10.0.0.1/8'", "'::1'"),
    ("bit(4)", "'1010'", "'0000'"),
    ("bit varying(9)", "'1010'", "'0'"),
    ("point", "'(1,2)'", "'(0,0)'"),
    ("time with time zone", "'12:00:00+02'", "'00:00:00.000001-11'"),
    ("money", "'12.34'", "'-1'"),
    ("pair", "'(1,\"a,b\")'", "'(,)'"),
    ("positive", "5", "7"),
    ("tsvector", "'a b:1'", "''"),
    ("real", "'0.1'", "'1e-40'"),
    ('"char"', "'x'", "'y'"),
    ("name", "'pg'", "'x'"),
    ("smallint", "1", "-32768"),
    ("text", r"E'line\nfeed, \"quoted\" \\ \t'", "''"),
)


@pytest.mark.parametrize(("kind", "one", "two"), VARIOUS, ids=[kind for kind, _, _ in VARIOUS])
def test_every_type_passes_unharmed(new_case: NewCase, kind: str, one: str, two: str) -> None:
    with new_case(
        "CREATE TYPE mood AS ENUM ('happy', 'sad')",
        "CREATE TYPE pair AS (a int, b text)",
        "CREATE DOMAIN positive AS int CHECK (value > 0)",
        f"CREATE TABLE t (id int PRIMARY KEY, x {kind})",
        "CREATE TABLE other (id int PRIMARY KEY, label text)",
        f"INSERT INTO t VALUES (1, {one}), (2, NULL), (3, {one})",
        "INSERT INTO other VALUES (1, 'one'), (4, 'four')",
    ) as case:
        maintain(
            case,
            "SELECT t.id, t.x, other.label FROM t LEFT JOIN other USING (id)",
            [f"UPDATE t SET x = {two} WHERE id = 1", f"INSERT INTO t VALUES (4, {one})"],
            [f"UPDATE t SET x = {one}", "UPDATE other SET label = NULL"],
            ["DELETE FROM t WHERE id = 4", "UPDATE t SET x = NULL WHERE id = 1"],
        )


@pytest.mark.parametrize(("kind", "one", "two"), VARIOUS, ids=[kind for kind, _, _ in VARIOUS])
def test_every_type_passes_without_a_key(new_case: NewCase, kind: str, one: str, two: str) -> None:
    with new_case(
        "CREATE TYPE mood AS ENUM ('happy', 'sad')",
        "CREATE TYPE pair AS (a int, b text)",
        "CREATE DOMAIN positive AS int CHECK (value > 0)",
        f"CREATE TABLE t (id int, x {kind})",
        f"INSERT INTO t VALUES (1, {one}), (1, {one}), (1, NULL)",
    ) as case:
        maintain(
            case,
            "SELECT x, id FROM t WHERE id > 0",
            [f"INSERT INTO t VALUES (1, {one}), (1, {two})"],
            ["DELETE FROM t WHERE ctid = (SELECT min(ctid) FROM t)"],
            [f"UPDATE t SET x = {two} WHERE x IS NULL"],
        )


def test_xml_passes_unharmed(new_case15: NewCase) -> None:
    with new_case15("CREATE TABLE t (id int, x xml)", "INSERT INTO t VALUES (1, '<a> <b/></a>'), (1, NULL)") as case:
        maintain(
            case,
            "SELECT x, id FROM t",
            ["INSERT INTO t VALUES (1, '<a> <b/></a>'), (2, 'text')"],
            ["DELETE FROM t WHERE id = 2", "UPDATE t SET x = '<c/>' WHERE x IS NULL"],
        )


def test_mixed_case_names_and_reserved_words(new_case: NewCase) -> None:
    with new_case(
        'CREATE TABLE "Order" ("select" int PRIMARY KEY, "Mixed Case" text, "a""b" int, "табл" int)',
        'CREATE TABLE "user" ("group" int, "from" text)',
        """INSERT INTO "Order" VALUES (1, 'x', 2, 3), (2, 'y', 4, 5)""",
        """INSERT INTO "user" VALUES (1, 'a'), (1, 'a')""",
    ) as case:
        maintain(
            case,
            'SELECT o."select", o."Mixed Case", sum(o."a""b" + o."табл") AS "Sum of", max(u."from") AS "where"'
            ' FROM "Order" o LEFT JOIN "user" u ON u."group" = o."select" GROUP BY o."select", o."Mixed Case"',
            ["""UPDATE "Order" SET "Mixed Case" = 'z'"""],
            ["""DELETE FROM "user" """, """INSERT INTO "Order" VALUES (3, 'w', NULL, 1)"""],
        )
