"""What got stuck or told nobody why: clocks, keys, very long and very deep queries, settings of roles and databases."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import (
    EnvironmentFault,
    PgTrickleError,
    QueryError,
    TableAltered,
    UsageError,
)
from airflow_provider_pgtrickle.engine.graph.reads import reads
from airflow_provider_pgtrickle.engine.refresh import lease
from airflow_provider_pgtrickle.engine.schedule import Cron, Every
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.operators import readiness
from tests.database.reported.conftest import Site, site_at
from tests.servers import ORDINARY_ROLE

T = "CREATE TABLE t (id int PRIMARY KEY, g int, v int); INSERT INTO t SELECT i, i % 3, i FROM generate_series(1, 30) i"
QUERY = "SELECT id, g, v FROM t"
MONTH = "UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = now() + interval '30 days'"


@pytest.fixture
def filled(site: Site) -> Site:
    site.run(T)
    site.declare("st", QUERY, refresh_mode="DIFFERENTIAL", schedule="5m")
    return site


# -- a clock that was ahead ------------------------------------------------------------------------------------------


def test_a_table_of_the_future_is_due_and_not_negatively_stale(filled: Site) -> None:
    filled.run(MONTH)
    state = readiness.read(filled.conn, ["public.st"])["public.st"]
    assert state.is_due(Every(300))
    assert state.is_due(Cron("0 0 1 1 *"))
    assert filled.rows("SELECT staleness, stale FROM pgtrickle.stream_tables_info")[0][1] is True
    assert filled.rows("SELECT staleness >= interval '0' FROM pgtrickle.pg_stat_stream_tables") == [(True,)]
    assert filled.rows("SELECT pgtrickle.get_staleness('st')") == [(0.0,)]
    assert filled.refresh("st").action == "NO_DATA"
    assert filled.rows("SELECT data_timestamp <= clock_timestamp() FROM pgtrickle.pgt_stream_tables") == [(True,)]
    state = readiness.read(filled.conn, ["public.st"])["public.st"]
    assert not state.is_due(Every(86_400))


def test_due_is_judged_by_the_clock_of_the_server_that_wrote_the_timestamp(filled: Site) -> None:
    state = readiness.read(filled.conn, ["public.st"])["public.st"]
    now = filled.rows("SELECT clock_timestamp()")[0][0]
    assert state.data_timestamp is not None
    assert state.data_timestamp <= state.asked_at <= now


def test_a_lease_of_the_future_is_no_lease(filled: Site) -> None:
    settings = Settings.load(lease_seconds=60)
    held = "UPDATE pgtrickle.pgt_stream_tables SET lease_token = 'run/1', lease_expires = now() + interval '{}'"
    ids = [filled.rows("SELECT pgt_id FROM pgtrickle.pgt_stream_tables")[0][0]]
    filled.run(held.format("50 seconds"))
    assert not lease.may_take_over(filled.conn, ids, "other", settings)
    filled.run(held.format("30 days"))
    assert lease.may_take_over(filled.conn, ids, "other", settings)


# -- keys that go -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "SELECT g AS id, g, v FROM t",
        "SELECT id, v FROM t UNION ALL SELECT id, v FROM t",
        "SELECT t.id, t.g, u.v FROM t JOIN t u ON u.g = t.g",
    ],
)
def test_no_unique_index_of_ours_outlives_the_query_that_it_was_for(filled: Site, query: str) -> None:
    filled.client.alter_stream_table("st", query=query)
    assert filled.differs("st", query) == []
    filled.run("INSERT INTO t VALUES (99, 1, 1), (98, 1, 1)")
    assert filled.refresh("st").action == "DIFFERENTIAL"
    assert filled.differs("st", query) == []


def test_a_unique_index_of_the_users_own_is_named(filled: Site) -> None:
    filled.run("CREATE UNIQUE INDEX mine ON st (id)")
    with pytest.raises(TableAltered, match="'mine' refuses what the query yields"):
        filled.client.alter_stream_table("st", query="SELECT g AS id, g, v FROM t")
    assert filled.refresh("st").action == "NO_DATA"
    assert filled.differs("st", QUERY) == []


@pytest.mark.parametrize(
    "loss",
    [
        "ALTER TABLE t DROP CONSTRAINT t_pkey; INSERT INTO t SELECT * FROM t WHERE id < 5",
        "ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ALTER id DROP NOT NULL;"
        "INSERT INTO t VALUES (NULL, 1, 1), (NULL, 1, 1)",
        "ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (id, g); INSERT INTO t SELECT id, g + 1, v"
        " FROM t",
    ],
)
def test_a_source_that_lost_its_key_is_captured_anew(filled: Site, loss: str) -> None:
    filled.run(loss)
    assert filled.refresh("st").action == "REINITIALIZE"
    assert filled.differs("st", QUERY) == []
    filled.run("UPDATE t SET v = v + 1 WHERE id IS NULL OR id = 3; DELETE FROM t WHERE id = 4")
    assert filled.refresh("st").action == "DIFFERENTIAL"
    assert filled.differs("st", QUERY) == []


def test_a_query_that_needed_the_lost_key_says_so_and_works_with_another(site: Site) -> None:
    site.run(T)
    site.declare("st", "SELECT id, g, v, count(*) AS n FROM t GROUP BY id")
    site.run("ALTER TABLE t DROP CONSTRAINT t_pkey CASCADE; INSERT INTO t SELECT * FROM t WHERE id < 5")
    for force_full in (False, True):
        with pytest.raises(QueryError, match="must appear in the GROUP BY") as told:
            site.refresh("st", force_full=force_full)
        assert "alter its query" in str(told.value)
    mended = "SELECT id, g, v, count(*) AS n FROM t GROUP BY id, g, v"
    assert site.client.alter_stream_table("st", query=mended).status == "ACTIVE"
    assert site.differs("st", mended) == []


# -- long and deep ----------------------------------------------------------------------------------------------------


def _listed(n: int, form: str = "{}", between: str = ", ") -> str:
    return between.join(form.format(i) for i in range(n))


def _nested(levels: int, form: str, inner: str = "v") -> str:
    text = inner
    for level in range(levels):
        text = form.format(text, level)
    return text


LONG_CONSTANTS = {
    "numbers": f"SELECT id, v FROM t WHERE v IN ({_listed(50_000)})",
    "texts": f"SELECT id, v FROM t WHERE v::text NOT IN ({_listed(20_000, chr(39) + '{}' + chr(39))}, 'it''s')",
    "a literal": "SELECT id, v || '" + "it''s \\ " * 30_000 + "' AS v FROM t",
    "an array": f"SELECT id, v = ANY ('{{{_listed(50_000)}}}') AS v FROM t",
    "with a name like it": f'SELECT id, v AS "ARRAY[1, 2]\'" FROM t WHERE v IN ({_listed(500)})',
}

LONG_TERMS = {
    "OR": f"SELECT id, v FROM t WHERE {_listed(10_000, 'v = {}', ' OR ')}",
    "AND": f"SELECT id, v FROM t WHERE {_listed(10_000, 'v <> {}', ' AND ')}",
    "CASE": f"SELECT id, CASE v {_listed(10_000, 'WHEN {0} THEN {0}', ' ')} END AS v FROM t",
    "VALUES": f"SELECT t.id, x.b FROM t JOIN (VALUES {_listed(10_000, '({0}, {0})')}) AS x (a, b) ON x.a = t.v",
    "joins": "SELECT t.id FROM t" + "".join(f" JOIN t AS t{i} ON t{i}.id = t.id" for i in range(120)),
}

DEEP = {
    "sums": f"SELECT id, {_nested(200, '({} + 1)')} AS v FROM t",
    "products of parts": f"SELECT id, {_nested(100, '({} * 2 / 2)')} AS v FROM t",
    "functions": f"SELECT id, {_nested(200, 'abs({})')} AS v FROM t",
    "coalesce": f"SELECT id, {_nested(100, 'coalesce({}, {})')} AS v FROM t",
    "CASE": f"SELECT id, {_nested(50, 'CASE WHEN v > {1} THEN {0} ELSE {1} END')} AS v FROM t",
    "ELSE CASE": f"SELECT id, {_nested(50, 'CASE WHEN v > {1} THEN {1} ELSE {0} END')} AS v FROM t",
    "AND in OR": f"SELECT id, v FROM t WHERE {_nested(50, '(v = {1} OR (v <> {1} + 1 AND {0}))', 'v > 1')}",
    "derived tables": _nested(30, "SELECT id, v + 1 AS v FROM ({0}) AS s{1} WHERE v <> {1}", "SELECT id, v FROM t"),
    "scalar subqueries": f"SELECT id, v FROM t WHERE v < (SELECT {_nested(10, '(SELECT {} + 1)', '5')})",
    "CTEs": "WITH c0 AS (SELECT id, v FROM t)"
    + "".join(f", c{i + 1} AS (SELECT id, v + 1 AS v FROM c{i})" for i in range(30))
    + " SELECT * FROM c30",
}


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Far above what it takes on a quiet machine."""
    start = time.monotonic()
    yield
    assert time.monotonic() - start < seconds


@pytest.mark.parametrize("name", LONG_CONSTANTS)
def test_long_constants_cost_little_and_keep_their_values(site: Site, name: str) -> None:
    query = LONG_CONSTANTS[name]
    site.run(T)
    with _within(30):
        site.follows(query, "UPDATE t SET v = v + 100 WHERE id % 2 = 0", "DELETE FROM t WHERE id < 5")


@pytest.mark.parametrize("name", LONG_TERMS)
def test_more_terms_than_can_be_handled_run_full_with_the_reason(site: Site, name: str) -> None:
    query = LONG_TERMS[name]
    site.run(T)
    with _within(30), pytest.raises(PgTrickleError, match=r"more than [\d ]+ (words and signs|joins|s to plan)"):
        site.declare("st", query, refresh_mode="DIFFERENTIAL")


@pytest.mark.parametrize("name", DEEP)
def test_deep_queries_are_ordinary_ones(site: Site, name: str) -> None:
    query = DEEP[name]
    site.run(T)
    limit = sys.getrecursionlimit()
    with _within(60):
        site.follows(query, "UPDATE t SET v = v + 100 WHERE id % 2 = 0")
    assert reads(query) == {("public", "t")}
    assert str(site.client.explain_st("st")).startswith("differentiable: yes")
    assert sys.getrecursionlimit() == limit


def test_what_is_too_deep_or_too_long_for_everybody_is_refused_in_a_sentence(site: Site) -> None:
    site.run(T)
    endless = f"SELECT id, {_nested(20_000, '({} + 1)')} AS v FROM t"
    with pytest.raises(QueryError, match="nested too deeply"):
        reads(endless)
    with _within(30), pytest.raises(QueryError, match="nested too deeply"):
        site.client.validate_query(endless)
    for told in (site.client.validate_query, reads):
        with pytest.raises(QueryError, match="1000022 characters, more than 1000000"):
            told("SELECT '" + "x" * 1_000_001 + "' AS x FROM t")


def test_many_branches_and_columns_follow(site: Site) -> None:
    site.run(T)
    branches = " UNION ALL ".join(f"SELECT id, v + {i} AS v FROM t" for i in range(200))
    with _within(60):
        site.follows(branches, "UPDATE t SET v = v + 100 WHERE id = 3")
    wide = f"SELECT id, {_listed(1_500, 'v + {0} AS c{0}')} FROM t"
    site.declare("wide", wide, refresh_mode="DIFFERENTIAL")
    site.run("UPDATE t SET v = v + 100 WHERE id = 3")
    assert site.refresh("wide").action == "DIFFERENTIAL"
    assert site.rows("SELECT count(*) FROM wide w JOIN t USING (id) WHERE w.c7 = t.v + 7 AND w.c1499 = t.v + 1499") == [
        (30,)
    ]


# -- what is no text, and what no table holds ------------------------------------------------------------------------


@pytest.mark.parametrize("query", [b"SELECT 1 AS a", 7, None, "", "SELECT 'a\ud800' AS a", "SELECT 'a\0' AS a"])
def test_a_query_that_is_no_text_is_refused_in_a_sentence(site: Site, query: Any) -> None:
    for told in (site.client.validate_query, reads, lambda q: site.client.create_stream_table("st", q)):
        with pytest.raises((QueryError, UsageError), match=r"not text|empty|no character|NUL"):
            told(query)


@pytest.mark.parametrize("name", ["a\ud800", "public.\udfff", b"st", 7])
def test_a_name_that_is_no_text_is_refused_in_a_sentence(site: Site, name: Any) -> None:
    for told in (site.refresh, lambda n: site.client.create_stream_table(n, "SELECT 1 AS a")):
        with pytest.raises(UsageError, match=r"not text|no character"):
            told(name)


def test_any_other_text_that_is_none_is_refused_in_a_sentence(filled: Site) -> None:
    with pytest.raises(UsageError, match=r"U\+D800, which is no character"):
        filled.client.gate("st", "a\ud800")


def test_of_a_wide_table_a_buffer_holds_798_columns(site: Site) -> None:
    site.run(
        f"CREATE TABLE wide (id int PRIMARY KEY, {_listed(900, 'c{} int')})", "INSERT INTO wide (id, c7) VALUES (1, 7)"
    )
    with pytest.raises(QueryError, match=r"More than 798 columns of public\.wide would be captured"):
        site.declare("st", f"SELECT id, {_listed(800, 'c{}')} FROM wide")
    site.declare("st", f"SELECT id, {_listed(797, 'c{}')} FROM wide", refresh_mode="DIFFERENTIAL")
    site.run("UPDATE wide SET c7 = 8")
    assert site.refresh("st").action == "DIFFERENTIAL"
    assert site.rows("SELECT c7 FROM st") == [(8,)]


# -- settings of roles and databases ---------------------------------------------------------------------------------


@pytest.fixture
def setting(admin: psycopg.Connection, site: Site) -> Iterator[Any]:
    """Sets something for the ordinary role in the site's database, for sessions to come."""
    database = sql.Identifier(site.conn.info.dbname)
    role = sql.Identifier(ORDINARY_ROLE)

    def given(text: str) -> None:
        admin.execute(sql.SQL("ALTER ROLE {} IN DATABASE {} SET ").format(role, database) + sql.SQL(text))
        site.client.database.close()

    yield given
    admin.execute(sql.SQL("ALTER ROLE {} IN DATABASE {} RESET ALL").format(role, database))


ODD = [
    "array_nulls = off",
    "standard_conforming_strings = off",
    "backslash_quote = off",
    "default_transaction_isolation = serializable",
    "default_transaction_deferrable = on",
    "idle_in_transaction_session_timeout = '1ms'",
    "quote_all_identifiers = on",
    "bytea_output = escape",
    "client_encoding = LATIN1",
    "DateStyle = 'German'",
    "IntervalStyle = sql_standard",
    "extra_float_digits = -15",
    "TimeZone = 'Pacific/Auckland'",
    "check_function_bodies = off",
    "plan_cache_mode = force_generic_plan",
]


def test_settings_of_a_role_change_no_content(site: Site, setting: Any) -> None:
    """All at once: what one of them breaks, breaks."""
    site.run(
        "CREATE TABLE t (id int PRIMARY KEY, a int[], x text, d date, i interval, f float8, b bytea)",
        "INSERT INTO t SELECT i, ARRAY[i, NULL], 'a\\b''ü' || i, date '2026-01-01' + i, make_interval(days => i),"
        " i / 3.0, '\\xff00' FROM generate_series(1, 30) i",
    )
    query = "SELECT id, a, x, d, i, f, b, a = '{1,NULL}'::int[] AS same, x = 'a\\b''ü1' AS alike FROM t"
    for odd in ODD:
        setting(odd)
    site.follows(query, "UPDATE t SET a = ARRAY[NULL, id], f = f / 7 WHERE id % 2 = 0", "DELETE FROM t WHERE id < 5")
    assert site.refresh("st", force_full=True).rows_inserted == 0
    assert site.differs("st", query) == []


@pytest.mark.parametrize(
    ("text", "error", "told", "remedy"),
    [
        ("default_transaction_read_only = on", EnvironmentFault, "takes no changes", "primary"),
        # The second is what PostgreSQL says if the time is up between two statements.
        ("statement_timeout = '1ms'", PgTrickleError, "statement timeout|user request", "SET statement_timeout = 0"),
    ],
)
def test_a_session_that_may_not_do_it_is_told_of_in_a_sentence(
    filled: Site, setting: Any, text: str, error: type[PgTrickleError], told: str, remedy: str
) -> None:
    setting(text)
    with filled.conn.transaction(force_rollback=True):
        if "timeout" in text:
            # On an idle machine a statement may take less than a millisecond, unless it waits.
            filled.conn.execute("LOCK TABLE pgtrickle.pgt_stream_tables")
        for attempt in (
            lambda: filled.refresh("st"),
            lambda: filled.client.create_stream_table("other", QUERY),
            lambda: filled.client.drop_stream_table("st"),
        ):
            with pytest.raises(error, match=told) as raised:
                attempt()
            assert remedy in str(raised.value)


def test_qualified_names_need_no_search_path(filled: Site, setting: Any) -> None:
    setting("search_path = ''")
    filled.run("INSERT INTO t VALUES (77, 7, 7)")
    assert filled.refresh("public.st").action == "DIFFERENTIAL"
    with pytest.raises(UsageError, match="Qualify the name"):
        filled.refresh("st")


def test_a_function_that_needs_a_search_path_is_named(site: Site, setting: Any) -> None:
    site.run(
        T,
        "CREATE SCHEMA own; CREATE TABLE own.rates (n int); INSERT INTO own.rates VALUES (2)",
        "CREATE FUNCTION twice(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS"
        " $$ BEGIN RETURN n * (SELECT r.n FROM rates r); END $$",
    )
    words = r'function public\.twice finds no names by itself: relation "rates"'
    with pytest.raises(PgTrickleError, match=words) as told:
        site.declare("st", "SELECT id, public.twice(v) AS v FROM t")
    assert "SET search_path" in str(told.value)
    site.run("ALTER FUNCTION twice SET search_path = own")
    site.declare("st", "SELECT id, public.twice(v) AS v FROM t")
    assert site.rows("SELECT v FROM st WHERE id = 5") == [(10,)]


# -- encodings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("server", ["postgres18", "postgres15"])
def test_a_database_without_an_encoding_works_and_others_are_refused(
    request: pytest.FixtureRequest, server: str
) -> None:
    running = request.getfixturevalue(server)
    make = "CREATE DATABASE {} ENCODING {} LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0"
    with psycopg.connect(running.dsn(), autocommit=True) as conn:
        names = {encoding: f"in_{encoding.lower()}" for encoding in ("SQL_ASCII", "LATIN1")}
        try:
            for encoding, name in names.items():
                conn.execute(sql.SQL(make).format(sql.Identifier(name), sql.Literal(encoding)))
            for site in site_at(running.dsn(names["SQL_ASCII"])):
                site.run("SET client_encoding = 'UTF8'", "CREATE TABLE t (id int PRIMARY KEY, x text)")
                site.run("INSERT INTO t VALUES (1, 'größer')")
                changes = "UPDATE t SET x = 'ß' || x", "INSERT INTO t VALUES (2, 'é')"
                site.follows("SELECT id, x || 'ä' AS x FROM t", *changes)
            with (
                PgTrickle(running.dsn(names["LATIN1"])) as client,
                pytest.raises(EnvironmentFault, match="encoding LATIN1"),
            ):
                client.install()
        finally:
            for name in names.values():
                conn.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def test_a_kept_session_is_not_ended_for_being_idle(site: Site) -> None:
    with site.client.database.session() as conn:
        assert conn.execute("SHOW idle_session_timeout").fetchone() == ("0",)
