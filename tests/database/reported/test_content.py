"""Queries whose content was wrong, or that failed for their SQL, as they were reported."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.sql import SQL

from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.probe import probe
from airflow_provider_pgtrickle.engine.declare import definition
from airflow_provider_pgtrickle.engine.dvm import Binding
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, QueryError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.query import analysed
from tests import servers
from tests.database.reported.conftest import Site

THREE = """
    CREATE TABLE a (i int, j int); CREATE TABLE b (i int, k int); CREATE TABLE c (i int, z int);
    INSERT INTO a VALUES (1, 2); INSERT INTO b VALUES (1, 5); INSERT INTO c VALUES (9, 9);
"""
GROUPS = """
    CREATE TABLE g (a int, b int, c int);
    INSERT INTO g VALUES (1, 1, 10), (1, 2, 20), (2, 1, 30), (2, 2, 5), (3, NULL, 7), (NULL, 1, 7);
"""
ON_A = ("INSERT INTO a VALUES (9, 3), (1, 7)", "UPDATE a SET i = 1 WHERE i = 9", "DELETE FROM a WHERE j = 2")
ON_G = ("INSERT INTO g VALUES (2, 1, 4), (4, 4, 4)", "UPDATE g SET c = c + 30 WHERE a = 1", "DELETE FROM g WHERE b = 2")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT c.z, p.j FROM c, a p JOIN b q USING (i)",
        "SELECT c.z, p.j FROM c, a p LEFT JOIN b q USING (i)",
        "SELECT c.z, p.j, q.k FROM c, a p NATURAL FULL JOIN b q",
        "SELECT c.i, c.z, x.k FROM c, (a x0 JOIN b x USING (i))",
        "SELECT i, j, k, z FROM a JOIN b USING (i) LEFT JOIN c USING (i)",
        "SELECT x.i, x.j, x.k, c.z FROM c, (a JOIN b USING (i)) x",
    ],
)
def test_a_join_merges_the_columns_of_its_own_two_sides(site: Site, query: str) -> None:
    site.run(THREE)
    site.follows(query, *ON_A)


COUNTED = (
    "SELECT o.i, ARRAY(SELECT n.z FROM a l FULL JOIN a m USING (i) JOIN c n ON l.j = n.i WHERE l.i = o.i ORDER BY n.z)"
    " AS zs FROM a o JOIN c ON c.i = o.j"
)
"""PostgreSQL prints `c n(i_1, z)` in it: an alias that counts columns, inside of what is left as it stands."""


@pytest.mark.parametrize(
    "query",
    [
        COUNTED,
        COUNTED.replace("n.z", "n.i").replace("a l FULL JOIN a m USING (i)", "a l LEFT JOIN a m USING (i)"),
        "SELECT o.k, ARRAY(SELECT x.z FROM (a p JOIN c q ON p.j = q.i) x (i, j, y, z) WHERE x.i = o.i ORDER BY x.z)"
        " AS zs FROM b o",
        "SELECT o.k, (SELECT count(x.n) FROM b x (m, n) WHERE x.m >= o.i) AS n FROM b o",
        # PostgreSQL prints aliases that count columns for the join's sides, too.
        "SELECT o.i, (SELECT count(*) FROM (a l JOIN a r USING (i)) AS x (p, q, s) WHERE o.i = x.p OR x.q = 2) AS n"
        " FROM a o",
    ],
)
def test_an_alias_that_counts_columns_counts_all_of_them(site: Site, query: str) -> None:
    site.run(THREE + "ALTER TABLE b ADD COLUMN l int; ALTER TABLE c ADD COLUMN l int")
    site.run("INSERT INTO c (i, z) VALUES (2, 8), (2, 7)")
    changes = (*ON_A[:2], "UPDATE c SET i = 7 - i WHERE z < 9", "UPDATE b SET i = 2", "DELETE FROM c WHERE z = 8")
    site.follows(query, *changes, actions=frozenset({"DIFFERENTIAL", "NO_DATA"}))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT l.i, n.k FROM a l FULL JOIN a m USING (i) JOIN kept n ON l.j = n.i",
        'SELECT x.j, x.k FROM (a p JOIN kept q ON p.i = q.i) x (h, j, "rows", i, k)',
        "SELECT o.i, ARRAY(SELECT n.k FROM a l FULL JOIN a m USING (i) JOIN kept n ON l.j = n.i WHERE l.i = o.i"
        " ORDER BY n.k) AS ks FROM a o",
        "SELECT o.i, ARRAY(SELECT row_number() OVER (ORDER BY n.k) FROM a l FULL JOIN a m USING (i)"
        " JOIN kept n ON l.j = n.i WHERE l.i = o.i) AS ks FROM a o",
    ],
)
def test_an_alias_counts_the_internal_columns_of_a_stream_table(site: Site, query: str) -> None:
    site.run(THREE + "INSERT INTO b VALUES (2, 7), (7, 8)")
    site.declare("kept", "SELECT i, k FROM b")
    site.declare("st", query, refresh_mode="DIFFERENTIAL")
    assert site.differs("st", query) == []
    for change in (*ON_A, "UPDATE b SET i = 7 WHERE k = 7", "UPDATE a SET j = 7", "DELETE FROM b WHERE k = 8"):
        site.run(change)
        site.refresh("kept")
        assert site.refresh("st").action in ("DIFFERENTIAL", "NO_DATA")
        assert site.differs("st", query) == [], change


@pytest.mark.parametrize(
    "query",
    [
        "SELECT row_to_json(u.*) AS r FROM a JOIN b USING (i) AS u",
        # It prints i_1 where a name comes twice, and that would be the field's.
        "SELECT to_jsonb(u) AS r FROM (a JOIN b ON a.i = b.i) AS u",
        "SELECT to_jsonb(u) AS r FROM (a JOIN a AS x USING (i)) AS u",
        "SELECT count(*) FILTER (WHERE to_jsonb(u) ? 'i_1') AS r FROM (a JOIN b ON a.i = b.i) AS u (one, i, i)",
        "SELECT (SELECT max(to_jsonb(u)::text) FROM a AS n) AS r FROM (a JOIN b AS m (j) ON a.i = m.k) AS u",
    ],
)
@pytest.mark.parametrize("mode", ["AUTO", "FULL"])
def test_a_whole_row_of_a_joins_alias_is_refused(site: Site, query: str, mode: str) -> None:
    """PostgreSQL itself forgets the names of its fields when it prints the query."""
    site.run(THREE)
    with pytest.raises(PgTrickleError, match="a join's alias"):
        site.declare("st", query, refresh_mode=mode)


def test_a_whole_row_of_a_joins_alias_that_names_its_columns_is_computed(site: Site) -> None:
    site.run(THREE)
    for number, query in enumerate(
        (
            "SELECT to_jsonb(u) AS r FROM (a JOIN b ON a.i = b.i) AS u (one, two, three, four)",
            "SELECT to_jsonb(u) AS r FROM (a AS l (x, y) JOIN b ON l.x = b.i) AS u",
            "SELECT to_jsonb(q) AS r FROM (SELECT a.i, b.k FROM a JOIN b ON a.i = b.i) AS q",
        )
    ):
        site.declare(f"st{number}", query, refresh_mode="FULL")
        assert site.differs(f"st{number}", query) == []


def test_a_query_that_postgresql_prints_as_another_is_refused(site: Site) -> None:
    """It prints `u.i` as `i`, which is the outer join's column: a dump of such a view restores another one."""
    site.run(THREE)
    with pytest.raises(QueryError, match="reads another column"):
        site.declare("st", "SELECT u.i FROM a FULL JOIN a m USING (i, j) AS u RIGHT JOIN a n USING (i, j)")
    site.follows("SELECT u.i FROM a FULL JOIN a m USING (i, j) AS u LEFT JOIN c ON u.i = c.i", *ON_A)


def test_a_query_whose_text_postgresql_cannot_read_is_refused(site: Site) -> None:
    """PostgreSQL 18 prints the merged column of an aliased join as COALESCE of columns that the alias hides."""
    site.run(THREE)
    query = "SELECT (SELECT count(x.p) FROM (a l FULL JOIN a r USING (i)) AS x (p, q, s) WHERE o.i = x.q) AS n FROM a o"
    if not servers.is_second(site.conn):
        with pytest.raises(QueryError, match="can't read its own text"):
            site.declare("st", query)
    else:
        site.follows(query, *ON_A)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, sum(c) AS s, rank() OVER (ORDER BY sum(c) DESC) AS r FROM g GROUP BY ROLLUP (a)",
        "SELECT DISTINCT ON (b) a, b, sum(c) AS s FROM g GROUP BY CUBE (a, b) ORDER BY b, s DESC, a",
        "SELECT a, b, count(*) AS n, sum(count(*)) OVER (PARTITION BY grouping(a, b)) AS w"
        " FROM g GROUP BY GROUPING SETS ((a, b), (a), ())",
        "SELECT 1 AS k, a, sum(c) AS s FROM g GROUP BY GROUPING SETS (1, 2)",
        # A constant key is NULL in the first item that is it, and itself in every other place.
        "SELECT 1 AS k, 1 AS l, coalesce(NULL, 1) AS m, a, count(*) AS n FROM g GROUP BY ROLLUP (1, a)",
        "SELECT 1 AS k, a, sum(1) OVER (ORDER BY 1, a) AS v FROM g GROUP BY ROLLUP (1, a)",
        "SELECT 1 AS k, count(*) AS n FROM (SELECT count(*) AS n, row_number() OVER (ORDER BY count(*)) AS r FROM g) q"
        " GROUP BY ROLLUP (1)",
        "SELECT 1 + 1 AS k, (1 + 1) * 2 AS l, a, count(*) AS n FROM g GROUP BY ROLLUP ((1 + 1), a)",
        "SELECT k, k + 1 AS l, a, sum(c) AS s FROM (SELECT 1 AS k, a, c FROM g) AS q GROUP BY CUBE (k, a)",
        "SELECT x, y, count(*) AS n FROM (SELECT a AS x, a AS y FROM g) q GROUP BY GROUPING SETS (x, y)"
        " HAVING y IS NULL",
    ],
)
def test_grouping_sets_are_one_relation(site: Site, query: str) -> None:
    site.run(GROUPS)
    site.follows(query, *ON_G, actions=frozenset({"DIFFERENTIAL", "NO_DATA"}))


def test_grouping_sets_that_postgresql_prints_otherwise_than_it_reads_them_are_refused(site: Site) -> None:
    """The second of two equal expressions is printed as the first, so that the text it gives is another query."""
    site.run(GROUPS)
    query = "SELECT a + 1 AS x, a + 1 AS y, count(*) AS n FROM g GROUP BY GROUPING SETS (1, 2)"
    site.run(f"CREATE VIEW both_ways AS {query}")
    for text in (query, "SELECT x, n FROM both_ways WHERE y IS NULL"):
        with pytest.raises(PgTrickleError, match="two columns of one expression"):
            site.declare("st", text)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS n FROM (SELECT 1 AS one FROM g HAVING true) q",
        "SELECT 1 AS one FROM g HAVING 1 < 2",
        "SELECT 1 AS one FROM g WHERE c > 1000 HAVING 1 > 2",
    ],
)
def test_having_alone_makes_one_group(site: Site, query: str) -> None:
    site.run(GROUPS)
    site.follows(query, *ON_G, actions=frozenset({"DIFFERENTIAL", "NO_DATA"}))


def test_group_by_nothing_is_one_group(site: Site) -> None:
    site.run(GROUPS)
    site.follows("SELECT sum(c) AS s, grouping(a) AS g FROM g GROUP BY a", *ON_G)
    site.client.drop_stream_table("st")
    site.follows("SELECT sum(c) AS s FROM g GROUP BY ()", "DELETE FROM g", "INSERT INTO g VALUES (1, 1, 1)")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, (SELECT max(n) FROM (SELECT count(o.c) AS n) q) AS m FROM g o GROUP BY a",
        "SELECT a, (SELECT sum(o.c) FROM (SELECT 1) q) AS s FROM g o GROUP BY a",
        "SELECT (SELECT max((SELECT max(i.b) FROM g i WHERE i.a = o.a))) AS m FROM g o WHERE b = 1 AND a < 0",
        "SELECT a, c FROM g o WHERE EXISTS (SELECT FROM a LEFT JOIN b ON b.i = o.b WHERE a.i = o.a OR b.k IS NOT NULL)",
        "SELECT a, c FROM g o WHERE NOT EXISTS (SELECT FROM a FULL JOIN b USING (i) WHERE i = o.a)",
    ],
)
def test_subqueries_that_reach_outside(site: Site, query: str) -> None:
    site.run(THREE, GROUPS)
    site.follows(query, *ON_G, *ON_A, actions=frozenset({"DIFFERENTIAL", "NO_DATA"}))


def test_a_query_that_counts_a_frame_is_refused_with_its_reason_or_runs(site: Site) -> None:
    site.run(GROUPS)
    query = "SELECT a, c, sum(c) OVER (ORDER BY a, b, c ROWS (SELECT 1) PRECEDING) AS s FROM g"
    site.declare("st", query)
    for change in ON_G:
        site.run(change)
        site.refresh("st")
        assert site.differs("st", query) == []


@pytest.mark.parametrize(
    ("typ", "values"),
    [("xid", ("1", "2", "3")), ("money", ("1", "2", "3")), ("tsvector", ("'a'", "'b'", "'c'")), ("cid", "123")],
)
def test_grouping_sets_over_types_that_only_hash_or_only_sort(site: Site, typ: str, values: tuple[str, ...]) -> None:
    """What PostgreSQL can't group itself is refused when it is declared; the rest is maintained."""
    site.run(f"CREATE TABLE odd (k {typ}, v int)")
    for number, value in enumerate(values):
        literal = value if value.startswith("'") else f"'{value}'"
        site.run(f"INSERT INTO odd VALUES ({literal}, {number})")
    for query in (
        "SELECT k, count(*) AS n FROM odd GROUP BY ROLLUP (k)",
        "SELECT k, v, count(*) AS n FROM odd GROUP BY GROUPING SETS ((k), (v))",
    ):
        try:
            site.conn.execute(SQL(query))
        except psycopg.Error:
            with pytest.raises(PgTrickleError):
                site.declare("st", query)
            continue
        site.declare("st", query)
        site.run("UPDATE odd SET v = v + 1 WHERE v < 2")
        site.refresh("st")
        assert site.differs("st", query) == []
        site.client.drop_stream_table("st")


def test_row_locks_are_refused_by_name(site: Site) -> None:
    site.run(THREE)
    with pytest.raises(PgTrickleError, match="FOR UPDATE"):
        site.declare("st", "SELECT u.i FROM a JOIN b USING (i) AS u FOR UPDATE OF a")


def test_an_update_of_every_key_in_a_self_reference(site: Site) -> None:
    """The cascade makes transition tables of its own, and the second is not of the rows of the first."""
    site.run(
        "CREATE TABLE t (a int PRIMARY KEY, b int REFERENCES t (a) ON UPDATE CASCADE)",
        "INSERT INTO t VALUES (1, NULL), (2, 1), (3, 2)",
    )
    site.follows(
        "SELECT sum(a) AS a, sum(b) AS b FROM t",
        "UPDATE t SET a = a + 10",
        "UPDATE t SET a = 100 - a",
        "UPDATE t SET a = a + 1",
    )


def test_now_has_work_at_each_refresh(site: Site) -> None:
    site.run("CREATE TABLE e (id int PRIMARY KEY, at timestamptz); INSERT INTO e VALUES (1, now() + '1 hour')")
    site.declare("st", "SELECT id, at < now() AS past, random() < 0 AS never FROM e")
    for _ in range(2):
        assert site.refresh("st").action == "FULL"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT id, {f} AS x FROM s"
        for f in (
            "substring(v, 1, 3)",
            "substr(v, 2)",
            "strpos(v, 'b')",
            "btrim(v)",
            "trim(trailing 'x' from v)",
            "char_length(v)",
            "ceiling(n)",
            "mod(id, 2)",
            "date_part('day', d)",
            "v IN ('a', 'b')",
            "v NOT IN ('a', 'b')",
            "CASE WHEN n BETWEEN 1 AND 2 AND n > 1 THEN 1 END",
            "(n > 1) IS NOT TRUE",
            "(n > 1) IS UNKNOWN",
            "n ^ 2",
            "|/ n",
            "@ n",
            "v ^@ 'a'",
            "id::bit(4)",
            "v || 'x' LIKE 'a%'",
        )
    ]
    + [
        "SELECT count(*) AS n, variance(id) AS w FROM s HAVING count(*) BETWEEN 1 AND 100 AND max(n) > 0",
        "SELECT id, sum(id) OVER (ORDER BY id ROWS 3 PRECEDING) AS w FROM s",
        "SELECT s.id FROM s JOIN s r ON s.id BETWEEN 1 AND r.id AND r.n > 1",
        "SELECT u.id FROM s JOIN (SELECT id FROM s) q USING (id) AS u",
    ],
)
def test_ordinary_sql_is_differentiated(site: Site, query: str) -> None:
    """It was refused because the parser's own text of it was another."""
    site.run(
        "CREATE TABLE s (id int PRIMARY KEY, v varchar, n float8, d date)",
        "INSERT INTO s VALUES (1, 'abx', 1, '2020-01-02'), (2, 'b', 2.25, NULL), (3, NULL, 4, '2020-02-03')",
    )
    assert site.client.validate_query(query).differentiable
    site.follows(
        query,
        "INSERT INTO s VALUES (4, 'a', 9, '2021-01-01')",
        "UPDATE s SET v = 'bxx', n = 16, d = '2020-05-05', id = id + 6 WHERE id < 3",
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, 7 / v AS x FROM t",
        "SELECT id FROM t WHERE 7 / v > 1",
        "SELECT t.id FROM t JOIN t AS o ON 7 / t.v = o.v",
        "SELECT id, (w || '1')::int AS x FROM t",
        "SELECT id, (SELECT o.id FROM t AS o WHERE o.v = t.v) AS x FROM t",
        "SELECT id, 7 / v AS x FROM t ORDER BY 7 / v, id LIMIT 2",
    ],
)
def test_a_row_that_comes_and_goes_need_have_no_value(site: Site, query: str) -> None:
    site.run("CREATE TABLE t (id int PRIMARY KEY, v int, w text); INSERT INTO t VALUES (1, 1, '1'), (2, 2, '2')")
    site.declare("st", query, refresh_mode="DIFFERENTIAL")
    for number in (3, 4):
        site.run(f"INSERT INTO t VALUES ({number}, 0, 'x'), ({number + 10}, 0, 'x')")
        site.run(f"UPDATE t SET v = id, w = id WHERE id > {number}; DELETE FROM t WHERE v = 0")
        result = site.refresh("st")
        assert site.differs("st", query) == []
        assert result.action in ("DIFFERENTIAL", "TOPK") or (result.fallback_reason or "").startswith("data_error: ")
    site.run("UPDATE t SET v = v + 20 WHERE id = 1")
    assert site.refresh("st").action in ("DIFFERENTIAL", "TOPK", "NO_DATA")
    site.run("INSERT INTO t VALUES (99, 0, 'x')")
    if "SELECT o.id" not in query:
        with pytest.raises(PgTrickleError, match=r"(?i)division by zero|invalid input syntax"):
            site.refresh("st")
        site.run("DELETE FROM t WHERE id = 99")
        site.refresh("st")
        assert site.differs("st", query) == []


def test_a_domain_is_told_apart_as_its_base_is(site: Site) -> None:
    """Several keys that may be NULL are compared as records, whose columns have to be of one type."""
    site.run(
        "CREATE DOMAIN positive AS int CHECK (VALUE > 0); CREATE TABLE t0 (a int PRIMARY KEY)",
        "CREATE TABLE t1 (a int, b int, p positive, PRIMARY KEY (a, b)); INSERT INTO t0 VALUES (5)",
        "INSERT INTO t1 VALUES (0, 0, 1), (1, 1, NULL), (2, 1, 2)",
    )
    query = "SELECT g.p, g.a FROM (SELECT o.a, o.p FROM t1 AS o WHERE o.a NOT IN (SELECT i.a FROM t0 AS i)) AS g"
    site.follows(
        f"{query} GROUP BY g.p, g.a",
        "DELETE FROM t1 WHERE a = 0",
        "UPDATE t1 SET p = 7",
        "INSERT INTO t0 VALUES (1)",
        "INSERT INTO t1 VALUES (3, 3, NULL), (4, 4, 3)",
    )


@pytest.mark.parametrize("query", ["SELECT id, v * 2 AS w FROM t", "SELECT v, count(*) AS n FROM t GROUP BY v"])
def test_a_text_that_postgresql_reads_otherwise_is_never_computed(
    site: Site, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The declaration refused it for differences, and FULL was computed from our reading of it all the same."""
    site.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT i, i % 3 FROM generate_series(1, 9) i")
    with monkeypatch.context() as patched:
        patched.setattr(definition, "survives_parsing", lambda *_: False)
        site.declare("st", query, refresh_mode="AUTO")
    site.run("UPDATE t SET v = 5 WHERE id = 1")
    result = site.refresh("st")
    assert result.action == "FULL"
    assert result.fallback_reason is not None
    assert result.fallback_reason.startswith("not_differentiable: ")
    assert site.differs("st", query) == []
    with site.client.database.transaction() as conn:
        st = records.get(conn, QualifiedName("public", "st"))
        assert analysed(conn, st).full(Binding()) == probe(conn, st.defining_query).text


def test_what_postgresql_alone_computes_sees_what_its_unit_changed(site: Site) -> None:
    """A text names tables as they are committed: in one commit with what it reads it was older than it said."""
    site.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
    site.run("INSERT INTO t SELECT i, i % 3, i FROM generate_series(1, 9) AS i")
    queries = {
        "sums": "SELECT g, sum(v) AS s FROM t GROUP BY g",
        "counts": "SELECT g, count(*) AS n FROM t GROUP BY g",
        "joined": "SELECT sums.g, sums.s, counts.n, current_user::text AS who FROM sums JOIN counts USING (g)",
        "total": "SELECT sum(s) AS s, sum(n) AS n FROM joined",
    }
    for name, query in queries.items():
        site.declare(name, query, diamond_consistency="atomic")
    for cycle in range(2):
        site.run(f"INSERT INTO t VALUES ({10 + cycle}, 1, 100)")
        results = site.client.refresh(list(queries), force_full=cycle == 1)
        actions = ["FULL"] * 4 if cycle else ["DIFFERENTIAL", "DIFFERENTIAL", "FULL", "DIFFERENTIAL"]
        assert [results[name].action for name in queries] == actions
        for name, query in queries.items():
            assert site.differs(name, query) == [], name
