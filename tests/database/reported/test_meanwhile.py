"""DDL that commits while a refresh is under way, and content that no trigger sees."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.refresh.executor import Computation, PostgresExecutor, Staged, StageTarget
from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult
from tests.database.reported.conftest import Site
from tests.database.reported.test_capture import CHANGE, JOIN, PARTED, T, U

QUICK: dict[str, Any] = {"retry_base_seconds": 0.01}


class Interrupted:
    """An executor that lets something happen between the snapshot and the read of the first computation."""

    def __init__(self, inner: PostgresExecutor, happen: Callable[[], None]) -> None:
        self._inner, self._happen = inner, happen
        self.times = 0

    def compute(self, snapshot_id: str, computation: Computation, stage: StageTarget | None) -> Staged:
        self.times += 1
        if self.times == 1:
            self._happen()
        return self._inner.compute(snapshot_id, computation, stage)


def refresh_with(site: Site, name: str, *statements: str) -> tuple[RefreshResult, int]:
    """A refresh during which the statements are committed, and how often it computed."""
    database = site.client.database
    executor = Interrupted(PostgresExecutor(database), lambda: site.run(*statements))
    with PgTrickle(database.dsn, executor=lambda: executor, differential_max_change_ratio=0.0, **QUICK) as client:
        return client.refresh_stream_table(name), executor.times


@pytest.mark.parametrize(
    "meanwhile",
    [
        "ALTER TABLE u ADD COLUMN uid uuid DEFAULT gen_random_uuid()",
        "ALTER TABLE t ALTER v TYPE bigint",
        "BEGIN; TRUNCATE u; INSERT INTO u SELECT i, 'h' || i FROM generate_series(0, 2) i; COMMIT",
        "BEGIN; DELETE FROM u; TRUNCATE u; INSERT INTO u VALUES (1, 'x'); COMMIT",
        "ALTER TABLE u SET UNLOGGED",
        "ALTER TABLE u SET UNLOGGED; ALTER TABLE u SET LOGGED",
        "ALTER TABLE u RENAME TO w; CREATE TABLE u (g int PRIMARY KEY, name text); INSERT INTO u VALUES (0, 'new')",
        "ALTER TABLE u ALTER name TYPE varchar(10) USING upper(name)",
    ],
)
def test_a_source_that_is_rewritten_under_a_refresh_loses_no_row(site: Site, meanwhile: str) -> None:
    """To the snapshot from before it, the rewritten table is empty."""
    site.run(T, U)
    site.declare("st", JOIN, refresh_mode="AUTO")
    site.run(CHANGE)
    result, times = refresh_with(site, "st", *meanwhile.split("; "))
    assert times > 1 or result.action == "NO_DATA"
    site.refresh("st")
    assert site.differs("st", JOIN) == []
    assert site.rows("SELECT count(*) > 0 FROM st") == [(True,)]


@pytest.mark.parametrize(
    "meanwhile",
    [
        "ALTER TABLE p DETACH PARTITION p_n",
        "DROP TABLE p_n",
        "ALTER TABLE p DETACH PARTITION p_n; ALTER TABLE p ATTACH PARTITION p_n FOR VALUES IN ('n')",
        "CREATE TABLE p_x (id int, region text, v int); INSERT INTO p_x VALUES (1, 'x', 1);"
        " ALTER TABLE p ATTACH PARTITION p_x FOR VALUES IN ('x')",
    ],
)
def test_parts_that_change_under_a_refresh(site: Site, meanwhile: str) -> None:
    query = "SELECT p.region, sum(p.v) AS s FROM p GROUP BY p.region"
    site.run(PARTED)
    site.declare("st", query, refresh_mode="AUTO")
    site.run("UPDATE p SET v = v + 1")
    refresh_with(site, "st", *meanwhile.split("; "))
    assert site.differs("st", query) == []


def test_a_refresh_waits_for_a_rewrite_and_reads_what_came_of_it(site: Site) -> None:
    """As it was reported: the table is locked when the refresh comes, and rewritten when it may read."""
    site.run(T, U)
    site.declare("st", JOIN, refresh_mode="DIFFERENTIAL")
    site.run(CHANGE)
    with psycopg.connect(site.client.database.dsn) as ddl:
        ddl.execute("ALTER TABLE u ADD COLUMN uid uuid DEFAULT gen_random_uuid()")
        waiting = threading.Thread(target=site.refresh, args=("st",))
        waiting.start()
        blocked = "SELECT count(*) > 0 FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0"
        while not site.rows(blocked)[0][0]:
            assert waiting.is_alive()
        ddl.commit()
        waiting.join()
    site.refresh("st")
    assert site.differs("st", JOIN) == []
    assert site.rows("SELECT count(*) FROM st") == [(60,)]


def test_what_never_comes_to_rest_is_told(site: Site) -> None:
    site.run(T, U)
    site.declare("st", JOIN, refresh_mode="AUTO")
    site.run(CHANGE)
    database = site.client.database

    class Restless(Interrupted):
        def compute(self, snapshot_id: str, computation: Computation, stage: StageTarget | None) -> Staged:
            self.times = 0
            return super().compute(snapshot_id, computation, stage)

    executor = Restless(
        PostgresExecutor(database),
        lambda: site.run("BEGIN", "TRUNCATE u", "INSERT INTO u SELECT i, 'h' FROM generate_series(0, 2) i", "COMMIT"),
    )
    with (
        PgTrickle(database.dsn, executor=lambda: executor, retry_attempts=2, **QUICK) as client,
        pytest.raises(Exception, match="rewritten or replaced while it was read"),
    ):
        client.refresh_stream_table("st")
    assert site.refresh("st").action == "FULL"
    assert site.differs("st", JOIN) == []


def test_a_function_that_is_replaced_under_a_refresh(site: Site) -> None:
    query = "SELECT id, shown(v) AS v FROM t"
    replaced = "CREATE OR REPLACE FUNCTION shown(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 * {}'"
    site.run(T, replaced.format(2))
    site.declare("st", query, refresh_mode="AUTO")
    site.run(CHANGE)
    refresh_with(site, "st", replaced.format(3))
    assert site.differs("st", query) == []


# -- what no trigger sees --------------------------------------------------------------------------------------------

KINDS = """
    CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE TYPE pair AS (a int, b mood);
    CREATE DOMAIN feeling AS mood;
    CREATE TABLE e (id int PRIMARY KEY, m mood, f feeling, ms mood[], p pair);
    INSERT INTO e VALUES (1, 'sad', 'glad', '{sad,glad}', '(1,sad)'), (2, 'glad', NULL, NULL, NULL)
"""


@pytest.mark.parametrize("shown", ["m", "m::text", "f::text", "ms::text", "p", "p::text", "to_jsonb(e)"])
def test_labels_of_an_enum_are_content(site: Site, shown: str) -> None:
    query = f"SELECT id, {shown} AS x FROM e"
    site.run(KINDS)
    site.declare("st", query, refresh_mode="DIFFERENTIAL")
    site.run("ALTER TYPE mood RENAME VALUE 'sad' TO 'low'")
    assert site.refresh("st").action == "REINITIALIZE"
    assert site.differs("st", query) == []
    site.run("UPDATE e SET (m, f, ms, p) = ('glad', 'low', '{low}', '(2,low)')", "UPDATE e SET m = 'low' WHERE id = 1")
    assert site.refresh("st").action == "DIFFERENTIAL"
    assert site.differs("st", query) == []


def test_a_field_of_a_composite_type_is_content(site: Site) -> None:
    query = "SELECT id, p::text AS x FROM e"
    site.run(KINDS)
    site.declare("st", query, refresh_mode="DIFFERENTIAL")
    site.run("ALTER TYPE pair ADD ATTRIBUTE c int CASCADE")
    assert site.refresh("st").action == "REINITIALIZE"
    assert site.differs("st", query) == []


NESTED = """
    CREATE FUNCTION inner_one(int) RETURNS int IMMUTABLE LANGUAGE {language} AS '{inner}';
    CREATE FUNCTION outer_one(int) RETURNS int IMMUTABLE LANGUAGE {language} AS '{outer}';
    CREATE FUNCTION adds(int, int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + $2';
    CREATE AGGREGATE total(int) (SFUNC = adds, STYPE = int, INITCOND = '0');
"""


@pytest.mark.parametrize(
    ("query", "replaced"),
    [
        ("SELECT id, outer_one(v) AS x FROM t", "inner_one(int)"),
        ("SELECT id, outer_one(v) AS x FROM t", "outer_one(int)"),
        ("SELECT g, total(v) AS x FROM t GROUP BY g", "adds(int, int)"),
    ],
)
@pytest.mark.parametrize(
    ("language", "inner", "outer"),
    [
        ("sql", "SELECT $1 + 1", "SELECT public.inner_one($1) * 2"),
        ("plpgsql", "BEGIN RETURN $1 + 1; END", "BEGIN RETURN public.Inner_One($1) * 2; END"),
    ],
)
def test_whatever_a_function_calls_is_content(
    site: Site, query: str, replaced: str, language: str, inner: str, outer: str
) -> None:
    site.run(T, NESTED.format(language=language, inner=inner, outer=outer))
    site.declare("st", query, refresh_mode="DIFFERENTIAL")
    site.run(f"CREATE OR REPLACE FUNCTION {replaced} RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 * 7'")
    assert site.refresh("st").action == "REINITIALIZE"
    assert site.differs("st", query) == []
    site.run(CHANGE)
    assert site.refresh("st").action == "DIFFERENTIAL"
    assert site.differs("st", query) == []


def test_another_function_of_a_name_that_a_body_calls_is_content(site: Site) -> None:
    site.run(T, NESTED.format(language="sql", inner="SELECT $1 + 1", outer="SELECT public.inner_one($1) * 2"))
    query = "SELECT id, outer_one(v) AS x FROM t"
    site.declare("st", query, refresh_mode="DIFFERENTIAL")
    site.run("CREATE FUNCTION inner_one(bigint) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 0'")
    assert site.refresh("st").action == "REINITIALIZE"
    site.run("CREATE FUNCTION other(bigint) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 0'")
    assert site.refresh("st").action == "NO_DATA"


READERS = (
    "sql IMMUTABLE AS 'SELECT max(name) FROM public.u WHERE g = $1'",
    "sql IMMUTABLE BEGIN ATOMIC SELECT max(name) FROM u WHERE g = $1; END",
    "plpgsql IMMUTABLE AS 'DECLARE found text; BEGIN SELECT max(name) INTO found FROM public.u WHERE g = $1;"
    " RETURN found; END'",
    "plpgsql IMMUTABLE AS 'DECLARE found text; BEGIN EXECUTE ''SELECT name FROM public.'' || ''u LIMIT 1'' INTO found;"
    " RETURN found; END'",
)


@pytest.mark.parametrize("body", READERS)
def test_a_function_that_reads_a_table_has_no_difference(site: Site, body: str) -> None:
    query = "SELECT id, named(g) AS x FROM t"
    site.run(T, U, "CREATE FUNCTION named(int) RETURNS text LANGUAGE " + body)
    assert "may read tables" in str(site.client.validate_query(query))
    site.declare("st", query, refresh_mode="AUTO")
    for number in range(2):
        site.run(f"UPDATE u SET name = name || '{number}'")
        result = site.refresh("st")
        assert result.action == "FULL"
        assert "may read tables" in (result.fallback_reason or "")
        assert site.differs("st", query) == []


@pytest.mark.parametrize(
    "body",
    [
        "sql IMMUTABLE AS 'SELECT sum(x)::text FROM unnest(ARRAY[$1, 2]) x'",
        "sql IMMUTABLE AS 'SELECT extract(year FROM make_date($1 + 2000, 1, 1))::text'",
        "plpgsql IMMUTABLE AS 'BEGIN RETURN substring($1::text FROM 1 FOR 1); END'",
        "sql IMMUTABLE RETURN ($1 + 1)::text",
    ],
)
def test_a_function_that_reads_no_table_has_a_difference(site: Site, body: str) -> None:
    site.run(T, U, "CREATE FUNCTION named(int) RETURNS text LANGUAGE " + body)
    site.follows("SELECT id, named(g) AS x FROM t", "DELETE FROM t WHERE id = 2", "UPDATE t SET g = g + 1")


def test_an_aggregate_is_what_its_functions_are(site: Site) -> None:
    site.run(
        T,
        "CREATE FUNCTION noisy(int, int) RETURNS int VOLATILE LANGUAGE sql AS 'SELECT $1 + $2'",
        "CREATE AGGREGATE total(int) (SFUNC = noisy, STYPE = int, INITCOND = '0')",
    )
    assert "volatile" in str(site.client.validate_query("SELECT total(v) AS x FROM t"))


def test_another_version_of_a_collation_is_noticed(site: Site) -> None:
    """A newer library sorts otherwise; here the older one's digest is put into the catalog."""
    site.run(T, "CREATE TABLE words (w text)")
    site.declare("st", "SELECT max(w) AS w FROM words", refresh_mode="DIFFERENTIAL")
    assert site.refresh("st").action == "NO_DATA"
    site.run(
        "UPDATE pgtrickle.pgt_stream_tables SET fingerprint ="
        " jsonb_set(fingerprint::jsonb, '{collations,100}', '\"older\"')::text"
    )
    assert site.refresh("st").action == "REINITIALIZE"
