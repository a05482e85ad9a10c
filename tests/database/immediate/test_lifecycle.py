"""IMMEDIATE tables come, change their mode, are read by others, and go."""

from __future__ import annotations

import warnings

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import NotDifferentiable, PgTrickleError, PgTrickleWarning, UsageError
from tests.database.reported.conftest import Site

TABLES = """
    CREATE TABLE t (id int PRIMARY KEY, g int, v int);
    CREATE TABLE u (g int PRIMARY KEY, name text);
    INSERT INTO t SELECT i, i % 3, i FROM generate_series(1, 20) AS i;
    INSERT INTO u SELECT i, 'n' || i FROM generate_series(0, 4) AS i
"""
SUMS = "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g"
JOINED = "SELECT t.id, t.v, u.name FROM t JOIN u ON u.g = t.g"
CHANGES = (
    "UPDATE t SET v = v + 1",
    "INSERT INTO t VALUES (100, 1, 1), (101, 7, 1) ON CONFLICT (id) DO UPDATE SET v = 0",
    "DELETE FROM t WHERE g = 2",
    "UPDATE u SET name = 'x' WHERE g = 1",
    "UPDATE t SET g = 2 WHERE g = 1",
)


@pytest.fixture(autouse=True)
def _tables(site: Site) -> None:
    site.run(TABLES)


def objects(site: Site) -> list[str]:
    """What is left of ours in the schema of the buffers."""
    rows = site.rows(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'pgtrickle_changes'::regnamespace UNION ALL"
        " SELECT relname FROM pg_class WHERE relnamespace = 'pgtrickle_changes'::regnamespace"
    )
    return sorted(name for (name,) in rows)


def follows(site: Site, name: str, query: str) -> None:
    for change in CHANGES:
        site.run(change)
        assert site.differs(name, query) == [], change


def test_a_writer_reads_its_own_writes(site: Site) -> None:
    site.declare("sums", SUMS, refresh_mode="IMMEDIATE")
    with site.conn.transaction(force_rollback=True):
        site.run("INSERT INTO t VALUES (100, 9, 5)")
        assert site.rows("SELECT n, s FROM sums WHERE g = 9") == [(1, 5)]
        with site.conn.transaction(force_rollback=True):
            site.run("UPDATE t SET v = 6 WHERE id = 100")
            assert site.rows("SELECT n, s FROM sums WHERE g = 9") == [(1, 6)]
        assert site.rows("SELECT n, s FROM sums WHERE g = 9") == [(1, 5)]
    assert site.rows("SELECT n, s FROM sums WHERE g = 9") == []


def test_nothing_is_left_of_a_dropped_table(site: Site) -> None:
    site.declare("sums", SUMS, refresh_mode="IMMEDIATE")
    site.declare("joined", JOINED, refresh_mode="IMMEDIATE")
    site.client.drop_stream_table("sums")
    follows(site, "joined", JOINED)
    site.client.drop_stream_table("joined")
    assert objects(site) == []
    site.run("DELETE FROM t")


@pytest.mark.parametrize("mode", ["AUTO", "DIFFERENTIAL", "FULL"])
def test_to_every_other_mode_and_back(site: Site, mode: str) -> None:
    site.declare("joined", JOINED, refresh_mode=mode, schedule="1m")
    site.run("UPDATE t SET v = v + 1")
    assert site.client.alter_stream_table("joined", refresh_mode="IMMEDIATE").is_live
    assert site.rows("SELECT schedule, staleness, stale FROM pgtrickle.stream_tables_info")[0][0] is None
    follows(site, "joined", JOINED)
    assert not site.client.alter_stream_table("joined", refresh_mode=mode, schedule="1m").is_live
    site.run("INSERT INTO t VALUES (200, 2, 2)")
    assert site.differs("joined", JOINED) != []
    assert site.refresh("joined").action == ("FULL" if mode == "FULL" else "DIFFERENTIAL")
    assert site.differs("joined", JOINED) == []
    site.client.alter_stream_table("joined", refresh_mode="IMMEDIATE")
    site.run("INSERT INTO t VALUES (201, 2, 2)")
    assert site.differs("joined", JOINED) == []


def test_a_new_query(site: Site) -> None:
    site.declare("st", SUMS, refresh_mode="IMMEDIATE")
    site.client.alter_stream_table("st", query=JOINED)
    follows(site, "st", JOINED)


def test_chains_are_current_within_the_transaction(site: Site) -> None:
    total = "SELECT sum(n) AS n, max(s) AS s FROM sums"
    both = "SELECT t.id, sums.n, total.s FROM t JOIN sums USING (g) CROSS JOIN total"
    for name, query in (("sums", SUMS), ("total", total), ("both", both)):
        site.declare(name, query, refresh_mode="IMMEDIATE")
    for change in CHANGES:
        site.run(change)
        for name, query in (("sums", SUMS), ("total", total), ("both", both)):
            assert site.differs(name, query) == [], (change, name)
    # Who goes takes nobody else's maintenance along.
    site.client.drop_stream_table("both")
    site.run("UPDATE t SET v = v - 5")
    assert site.differs("total", total) == []


def test_who_reads_a_table_that_is_computed_anew_comes_back_with_it(site: Site) -> None:
    above, top = "SELECT n, s FROM sums WHERE n > 1", "SELECT count(*) AS c, sum(s) AS s FROM above"
    for name, query in (("sums", SUMS), ("above", above), ("top", top)):
        site.declare(name, query, refresh_mode="IMMEDIATE")
    everybody = [("above", True), ("sums", True), ("top", True)]
    alive = "SELECT pgt_name, is_live FROM pgtrickle.stream_tables_info ORDER BY 1"

    def repaired() -> None:
        with site.conn.transaction():
            site.run("SET LOCAL pgtrickle.refreshing = 'on'", "DELETE FROM sums WHERE g = 0")
        assert {v.name: v.repaired for v in site.client.verify(repair=True).tables}["public.sums"]

    for again in (
        repaired,
        lambda: site.refresh("sums", force_full=True),
        lambda: site.client.alter_stream_table("sums", query=SUMS + " HAVING sum(v) <> 5"),
    ):
        again()
        assert site.rows(alive) == everybody
        site.run("UPDATE t SET v = v + 1 WHERE g = 1")
        assert site.differs("top", top) == []
    with pytest.warns(PgTrickleWarning, match=r"what reads it isn't either: public\.above, public\.top"):
        site.client.alter_stream_table("sums", refresh_mode="AUTO")
    assert {is_live for _, is_live in site.rows(alive)} == {False}


def test_a_scheduled_table_over_it_and_over_its_source(site: Site) -> None:
    site.declare("sums", SUMS, refresh_mode="IMMEDIATE")
    reader = "SELECT t.id, t.v, sums.s FROM t JOIN sums USING (g)"
    site.declare("reader", reader, refresh_mode="DIFFERENTIAL")
    for change in CHANGES:
        site.run(change)
        assert site.refresh("reader").action in ("DIFFERENTIAL", "NO_DATA")
        assert site.differs("reader", reader) == [], change
        assert site.differs("sums", SUMS) == [], change


def test_refreshing_it_says_whether_anything_differed(site: Site) -> None:
    site.declare("sums", SUMS, refresh_mode="IMMEDIATE")
    site.run("UPDATE t SET v = 7")
    result = site.refresh("sums")
    assert (result.action, result.rows_inserted, result.rows_updated, result.rows_deleted) == ("IMMEDIATE", 0, 0, 0)
    # Only somebody who passes the guard can make it differ.
    with site.conn.transaction():
        site.run("SET LOCAL pgtrickle.refreshing = 'on'", "UPDATE sums SET s = 0 WHERE g = 1")
    assert site.refresh("sums").rows_updated == 1
    assert site.differs("sums", SUMS) == []
    follows(site, "sums", SUMS)


def test_verify_finds_what_differs_and_repairs_it(site: Site) -> None:
    site.declare("sums", SUMS, refresh_mode="IMMEDIATE")
    site.declare("total", "SELECT sum(n) AS n FROM sums", refresh_mode="DIFFERENTIAL")
    site.run("UPDATE t SET v = v + 1 WHERE g = 0")
    assert site.client.verify("sums").differences == 0
    with site.conn.transaction():
        site.run("SET LOCAL pgtrickle.refreshing = 'on'", "UPDATE sums SET n = 0 WHERE g = 1")
    assert site.client.verify("sums").differences == 2
    verified = site.client.verify("sums", repair=True)
    assert [(v.differences, v.repaired) for v in verified.tables] == [(0, True)]
    assert site.rows("SELECT is_live FROM pgtrickle.stream_tables_info ORDER BY pgt_name") == [(True,), (False,)]
    follows(site, "sums", SUMS)
    site.refresh("total")
    assert site.differs("total", "SELECT sum(n) AS n FROM sums") == []


def test_capture_that_was_off_is_noticed(site: Site) -> None:
    site.declare("sums", SUMS, refresh_mode="IMMEDIATE")
    site.run("ALTER TABLE t DISABLE TRIGGER USER", "DELETE FROM t WHERE g = 1", "ALTER TABLE t ENABLE TRIGGER USER")
    assert site.differs("sums", SUMS) != []
    assert site.rows("SELECT count(*) FROM pgtrickle.pgt_distrusted") == [(1,)]
    assert site.refresh("sums").action == "IMMEDIATE"
    assert site.differs("sums", SUMS) == []
    follows(site, "sums", SUMS)


def test_a_source_whose_columns_change(site: Site) -> None:
    site.declare("sums", SUMS, refresh_mode="IMMEDIATE")
    site.declare("joined", JOINED, refresh_mode="IMMEDIATE")
    site.run("ALTER TABLE t ALTER v TYPE bigint", "UPDATE t SET v = v + 3 WHERE id = 1")
    assert site.differs("sums", SUMS) == []
    # Until it is refreshed, its own column is the old integer.
    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        site.run("UPDATE t SET v = v + 3000000000 WHERE id = 1")
    for name, query in (("sums", SUMS), ("joined", JOINED)):
        assert site.refresh(name).action == "IMMEDIATE"
        follows(site, name, query)
    site.run("UPDATE t SET v = v + 3000000000 WHERE id = 1")
    site.run("ALTER TABLE t ADD COLUMN w int")
    follows(site, "sums", SUMS)
    site.run("ALTER TABLE t DROP COLUMN v")
    with pytest.raises(psycopg.errors.UndefinedColumn):
        site.run("DELETE FROM t WHERE id = 3")
    # Until whoever may says what they shall be now, or drops them.
    site.client.drop_stream_table("joined")
    site.client.alter_stream_table("sums", query="SELECT g, count(*) AS n FROM t GROUP BY g")
    site.run("DELETE FROM t WHERE id = 3")
    assert site.differs("sums", "SELECT g, count(*) AS n FROM t GROUP BY g") == []


def test_truncate_recomputes_in_the_transaction(site: Site) -> None:
    site.declare("joined", JOINED, refresh_mode="IMMEDIATE")
    site.run("BEGIN; TRUNCATE t; INSERT INTO t VALUES (1, 1, 1), (2, 2, 2); COMMIT")
    assert site.differs("joined", JOINED) == []
    assert len(site.rows("SELECT * FROM joined")) == 2


def test_copy_and_partitions(site: Site) -> None:
    site.run(
        "CREATE TABLE p (id int, g int, v int) PARTITION BY LIST (g); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);"
        "CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2)"
    )
    query = "SELECT p.g, u.name, count(*) AS n FROM p JOIN u USING (g) GROUP BY p.g, u.name"
    site.declare("st", query, refresh_mode="IMMEDIATE")
    with site.conn.cursor() as cursor, cursor.copy("COPY p FROM STDIN") as copy:
        copy.write("1\t1\t1\n2\t2\t2\n3\t1\t3\n")
    assert site.differs("st", query) == []
    for change in (
        "INSERT INTO p1 VALUES (9, 1, 1)",
        "UPDATE p SET g = 2 WHERE id = 1",
        "DELETE FROM p2 WHERE id = 2",
        "CREATE TABLE p3 PARTITION OF p FOR VALUES IN (3)",
        "INSERT INTO p VALUES (5, 3, 3)",
    ):
        site.run(change)
        assert site.differs("st", query) == [], change


def test_topk_and_recursion(site: Site) -> None:
    top = "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 3"
    site.run("CREATE TABLE edge (a int, b int, PRIMARY KEY (a, b)); INSERT INTO edge VALUES (1, 2), (2, 3), (4, 5)")
    reach = (
        "WITH RECURSIVE r (a, b) AS (SELECT a, b FROM edge UNION SELECT r.a, edge.b FROM r JOIN edge ON edge.a = r.b)"
        " SELECT a, b FROM r"
    )
    site.declare("top", top, refresh_mode="IMMEDIATE")
    site.declare("reach", reach, refresh_mode="IMMEDIATE")
    for change in (*CHANGES, "INSERT INTO edge VALUES (3, 4), (5, 1)", "DELETE FROM edge WHERE a = 2"):
        site.run(change)
        assert site.differs("top", top) == [], change
        assert site.differs("reach", reach) == [], change


def test_a_window_that_is_too_long_is_refused(site: Site) -> None:
    with pytest.raises(UsageError, match="immediate_topk_max_limit"):
        site.declare("st", "SELECT id, v FROM t ORDER BY v, id LIMIT 900 OFFSET 200", refresh_mode="IMMEDIATE")
    assert site.client.status() == []


def test_a_writer_without_rights_on_the_stream_table(site: Site, admin: psycopg.Connection) -> None:
    site.declare("sums", SUMS, refresh_mode="IMMEDIATE")
    admin.execute("DROP ROLE IF EXISTS poor; CREATE ROLE poor; GRANT INSERT, UPDATE, DELETE, SELECT ON t TO poor")
    with admin.transaction():
        admin.execute("SET LOCAL ROLE poor")
        admin.execute("SET LOCAL \"TimeZone\" = 'Asia/Tokyo'; SET LOCAL search_path = ''")
        admin.execute("UPDATE public.t SET v = v + 1")
    assert site.differs("sums", SUMS) == []
    admin.execute("REVOKE ALL ON t FROM poor; DROP ROLE poor")


def test_an_error_in_maintenance_fails_the_statement(site: Site) -> None:
    query = "SELECT id, 100 / v AS share FROM t"
    site.declare("shares", query, refresh_mode="IMMEDIATE")
    with pytest.raises(psycopg.errors.DivisionByZero):
        site.run("UPDATE t SET v = 0 WHERE id = 1")
    assert site.differs("shares", query) == []


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT id, now() AS at FROM t", "the clock"),
        ("SELECT id, random() AS r FROM t", "random"),
        ("SELECT m.id FROM m", "m"),
    ],
)
def test_what_writers_cannot_maintain_is_refused(site: Site, query: str, words: str) -> None:
    site.run("CREATE MATERIALIZED VIEW m AS SELECT id FROM t")
    with pytest.raises(PgTrickleError, match=words):
        site.declare("st", query, refresh_mode="IMMEDIATE")
    assert site.client.status() == []


def test_it_takes_no_schedule(site: Site) -> None:
    with pytest.raises(UsageError, match="takes no schedule"):
        site.declare("st", SUMS, refresh_mode="IMMEDIATE", schedule="1m")
    site.declare("st", SUMS, refresh_mode="IMMEDIATE")
    with pytest.raises(UsageError, match="takes no schedule"):
        site.client.alter_stream_table("st", schedule="1m")
    site.run("UPDATE t SET v = v + 1")
    assert site.differs("st", SUMS) == []
    site.client.alter_stream_table("st", schedule="calculated", tier="warm")
    assert site.rows("SELECT is_live, tier FROM pgtrickle.stream_tables_info") == [(True, "warm")]


@pytest.mark.parametrize(
    "query",
    [SUMS, JOINED, "SELECT id, v FROM t WHERE v > 2", "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 3"],
    ids=["sums", "join", "filter", "topk"],
)
def test_explain_says_what_writers_pay(site: Site, query: str) -> None:
    site.declare("st", query, refresh_mode="IMMEDIATE")
    costs = {cost.source: cost for cost in site.client.explain_st("st").writers}
    assert set(costs) == ({"public.t", "public.u"} if query == JOINED else {"public.t"})
    assert all(cost.estimated > 0 for cost in costs.values())
    assert "public.t: estimated cost" in str(site.client.explain_st("st"))
    # Of hundreds of statements, one in fifty is timed; the clock picks it.
    while not costs["public.t"].samples:
        for _ in range(50):
            site.run("UPDATE t SET v = v + 1 WHERE id = 1")
        costs = {cost.source: cost for cost in site.client.explain_st("st").writers}
    assert costs["public.t"].rows == 1
    assert 0 < costs["public.t"].mean_ms <= costs["public.t"].most_ms
    site.run("UPDATE pgtrickle.pgt_immediate_stats SET at = at - interval '2 days'")
    site.client.cleanup()
    assert [cost.samples for cost in site.client.explain_st("st").writers if cost.source == "public.t"] == [0]


OVER = "SELECT u.name, count(*) AS n, sum(b.v) AS v FROM base b JOIN u ON u.g = b.g GROUP BY u.name"


def over_base(site: Site) -> None:
    """`base`, which refreshes write, and an IMMEDIATE table over it and over a table."""
    site.declare("base", "SELECT id, g, v FROM t WHERE v > 2", refresh_mode="DIFFERENTIAL")
    site.declare("st", OVER, refresh_mode="IMMEDIATE")
    assert site.rows("SELECT is_live FROM pgtrickle.pgt_stream_tables ORDER BY pgt_name") == [(False,), (True,)]


def test_over_a_scheduled_table_it_changes_in_the_refreshs_commit(site: Site) -> None:
    over_base(site)
    for change in CHANGES:
        site.run(change)
        assert site.differs("st", OVER) == [], change
        assert site.refresh("base").action in ("DIFFERENTIAL", "FULL", "NO_DATA")
        assert site.differs("st", OVER) == [], change
    assert site.refresh("base", force_full=True).action == "FULL"
    site.run("UPDATE u SET name = name || 'x'")
    assert site.differs("st", OVER) == []
    assert site.refresh("st").rows_updated == 0


def test_over_a_scheduled_table_it_is_as_old_as_that(site: Site) -> None:
    over_base(site)
    site.declare("top", "SELECT count(*) AS c FROM st", refresh_mode="DIFFERENTIAL")
    both = "SELECT name, data_timestamp FROM pgtrickle.stream_tables_info ORDER BY 1"
    of_base, of_st, of_top = (at for _, at in site.rows(both))
    assert of_base == of_st == of_top
    site.run("UPDATE t SET v = v + 1")
    assert site.refresh("base").action == "DIFFERENTIAL"
    later, of_st, of_top = (at for _, at in site.rows(both))
    assert later == of_st > of_base == of_top
    # It is only read through `st`, which nobody has to refresh.
    assert site.refresh("top").data_timestamp == site.rows(both)[0][1]


def test_a_table_that_reads_it_and_what_it_reads(site: Site) -> None:
    """A diamond: the refresh of `base` is committed first, because it changes `st`."""
    over_base(site)
    top = "SELECT b.id, b.v, st.n FROM base b JOIN u ON u.g = b.g JOIN st ON st.name = u.name"
    site.declare("top", top, refresh_mode="DIFFERENTIAL")
    for change in CHANGES:
        site.run(change)
        done = site.client.refresh(["base", "st", "top"])
        assert done["top"].action in ("DIFFERENTIAL", "NO_DATA", "FULL"), change
        assert done["st"].action == "IMMEDIATE"
        for name, query in (("st", OVER), ("top", top)):
            assert site.differs(name, query) == [], (name, change)
    site.run("UPDATE t SET v = v + 1 WHERE id = 1")
    assert {result.action for result in site.client.refresh(["base", "top"]).values()} == {"DIFFERENTIAL"}
    assert site.differs("top", top) == []


def test_over_a_scheduled_table_whose_columns_change(site: Site) -> None:
    over_base(site)
    plain = "SELECT g, count(*) AS n FROM u GROUP BY g"
    site.declare("plain", plain, refresh_mode="IMMEDIATE")
    site.run("ALTER TABLE t ALTER v TYPE numeric", "UPDATE t SET v = v + 0.5 WHERE id < 3")
    assert site.refresh("base").action == "REINITIALIZE"
    # Its writers go on: nothing is left that would fail.
    site.run("UPDATE u SET name = name || 'y'", "INSERT INTO u VALUES (77, 'new')")
    for name, query in (("st", OVER), ("plain", plain)):
        site.refresh(name)
        follows(site, name, query)
    site.run("UPDATE t SET v = v + 1")
    site.refresh("base")
    assert site.differs("st", OVER) == []
    assert site.rows("SELECT bool_and(is_live OR pgt_name = 'base') FROM pgtrickle.pgt_stream_tables") == [(True,)]


def test_over_a_table_that_becomes_immediate_and_scheduled_again(site: Site) -> None:
    over_base(site)
    for mode in ("IMMEDIATE", "DIFFERENTIAL", "IMMEDIATE"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            site.client.alter_stream_table("base", refresh_mode=mode)
        site.refresh("st")
        site.run("UPDATE t SET v = v + 1 WHERE id = 2", "UPDATE u SET name = name || 'z' WHERE g = 1")
        if mode == "DIFFERENTIAL":
            assert site.refresh("base").action == "DIFFERENTIAL"
        assert site.differs("st", OVER) == [], mode
        assert ("st", True) in site.rows("SELECT pgt_name, is_live FROM pgtrickle.pgt_stream_tables"), mode
    site.client.drop_stream_table("base", cascade=True)
    site.run("UPDATE u SET name = 'a'", "DELETE FROM t")
    left = "SELECT count(*) FROM pg_proc WHERE pronamespace = 'pgtrickle_changes'::regnamespace"
    assert site.rows(left) == [(0,)]


def test_a_chain_that_is_declared_before_it_is_filled(site: Site) -> None:
    total = "SELECT sum(n) AS n, max(s) AS s FROM sums"
    site.declare("sums", SUMS, refresh_mode="IMMEDIATE", initialize=False)
    site.declare("total", total, refresh_mode="IMMEDIATE", initialize=False)
    site.refresh("total")
    assert site.rows("SELECT is_live FROM pgtrickle.pgt_stream_tables") == [(True,), (True,)]
    follows(site, "total", total)


def test_repairing_what_writers_maintain(site: Site) -> None:
    site.declare("sums", SUMS, refresh_mode="IMMEDIATE")
    with site.conn.transaction():
        site.run("SET LOCAL pgtrickle.refreshing = 'on'", "UPDATE sums SET s = 0 WHERE g = 1")
    assert site.client.verify("sums").differences == 2
    (repaired,) = site.client.verify("sums", repair=True).tables
    assert (repaired.differences, repaired.repaired) == (0, True)
    follows(site, "sums", SUMS)


def test_torn_capture_is_mended_before_writers_wait(site: Site) -> None:
    site.declare("sums", SUMS, refresh_mode="IMMEDIATE")
    site.client.withdraw("sums")
    site.run("ALTER TABLE t DISABLE TRIGGER USER", "DELETE FROM t WHERE id = 1", "ALTER TABLE t ENABLE TRIGGER USER")
    assert site.client.alter_stream_table("sums", refresh_mode="IMMEDIATE").is_live
    follows(site, "sums", SUMS)


def test_our_functions_are_nobody_elses(site: Site, admin: psycopg.Connection) -> None:
    """A role that may use the schema could attach them to a table of its own, and feed a buffer."""
    site.declare("joined", JOINED, refresh_mode="IMMEDIATE")
    assert site.rows(
        "SELECT count(*) FILTER (WHERE has_function_privilege('public', oid, 'EXECUTE')), count(*) > 5 FROM pg_proc"
        " WHERE pronamespace = 'pgtrickle_changes'::regnamespace"
    ) == [(0, True)]


def test_code_of_others_is_refused(site: Site, admin: psycopg.Connection) -> None:
    admin.execute("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger; CREATE SCHEMA strange AUTHORIZATION stranger")
    admin.execute("GRANT USAGE ON SCHEMA strange TO PUBLIC")
    with admin.transaction():
        admin.execute("SET LOCAL ROLE stranger")
        admin.execute("CREATE FUNCTION strange.twice(v int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT v * 2'")
    with pytest.raises(UsageError, match="of other roles"):
        site.declare("st", "SELECT id, strange.twice(v) AS w FROM t", refresh_mode="IMMEDIATE")
    admin.execute("DROP OWNED BY stranger; DROP ROLE stranger")


def test_numbers_that_are_none_and_come_back(site: Site) -> None:
    """A sum that was NaN or infinite can't be added to any more."""
    site.run("CREATE TABLE m (id int PRIMARY KEY, g int, v numeric); INSERT INTO m VALUES (1, 1, 1.50), (2, 1, 2)")
    query = "SELECT g, sum(v) AS s, avg(v) AS a, count(v) AS n FROM m GROUP BY g"
    site.declare("st", query, refresh_mode="IMMEDIATE")
    for change in (
        "INSERT INTO m VALUES (3, 1, 'NaN'), (4, NULL, 7)",
        "DELETE FROM m WHERE id = 3",
        "UPDATE m SET v = 'Infinity' WHERE id = 1",
        "UPDATE m SET v = NULL WHERE id = 1",
        "DELETE FROM m WHERE g IS NULL",
        "DELETE FROM m",
        "INSERT INTO m SELECT i, i % 3, i / 7.0 FROM generate_series(1, 2000) AS i",
        "UPDATE m SET g = g + 1",
    ):
        site.run(change)
        assert site.differs("st", query) == [], change


def test_altering_to_it_is_refused_for_what_has_no_difference(site: Site) -> None:
    site.declare("st", "SELECT id, now() AS at FROM t")
    with pytest.raises((NotDifferentiable, UsageError)):
        site.client.alter_stream_table("st", refresh_mode="IMMEDIATE")
    assert site.rows("SELECT refresh_mode, is_live FROM pgtrickle.stream_tables_info") == [("AUTO", False)]


def test_declared_without_content_it_is_live_once_it_is_refreshed(site: Site) -> None:
    above = "SELECT n FROM sums"
    site.declare("sums", SUMS, refresh_mode="IMMEDIATE", initialize=False)
    site.declare("above", above, refresh_mode="IMMEDIATE", initialize=False)
    # It can't be maintained before what it reads is.
    site.client.refresh(["above", "sums"])
    assert {row["is_live"] for row in site.client.status()} == {True}
    site.run("INSERT INTO t VALUES (100, 9, 5)")
    assert site.differs("above", above) == []
    site.client.withdraw("sums")
    site.client.create_or_replace_stream_table("sums", SUMS, refresh_mode="IMMEDIATE")
    assert [site.refresh("above").action, site.refresh("above").action] == ["FULL", "IMMEDIATE"]
    follows(site, "above", above)


def test_one_that_is_held_back_disturbs_nobody(site: Site) -> None:
    site.declare("sums", SUMS, refresh_mode="IMMEDIATE")
    site.client.gate("sums", "loading")
    site.client.withdraw("sums")
    site.declare("joined", JOINED, refresh_mode="IMMEDIATE")
    assert site.refresh("sums").action == "SKIP"
    site.client.ungate("sums")
    assert site.refresh("sums").action == "FULL"
    assert {row["is_live"] for row in site.client.status()} == {True}


@pytest.mark.parametrize("is_old", [False, True], ids=["new", "of an earlier release"])
@pytest.mark.parametrize("query", [SUMS, JOINED, "SELECT g FROM t"])
def test_a_change_of_mode_that_was_interrupted(
    site: Site, query: str, is_old: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.declare("st", query, refresh_mode="DIFFERENTIAL")
    if is_old:
        site.run("UPDATE pgtrickle.pgt_stream_tables SET server_row_ids = false")
        site.refresh("st", force_full=True)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(PgTrickle, "_refresh", interrupted)
        with pytest.raises(KeyboardInterrupt):
            site.client.alter_stream_table("st", refresh_mode="IMMEDIATE")
    site.run("UPDATE t SET v = v + 1, g = 1 WHERE id < 9")
    # The rows of an old table have other ids, so that no difference can be applied to them.
    assert site.refresh("st").action == ("FULL" if is_old else "DIFFERENTIAL")
    follows(site, "st", query)
