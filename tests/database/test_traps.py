"""A schema of somebody else's stands first in the path, full of namesakes of what we use. None is called."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.catalog.search_path import read_only
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor

# Namesakes of all that came with the server and can be imitated. Whoever calls one fails, and says so.
_TRAPS = r"""
CREATE SCHEMA traps AUTHORIZATION {mallory};
GRANT USAGE ON SCHEMA traps TO PUBLIC;
SET ROLE {mallory};
CREATE FUNCTION traps.boom() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE 'trapped'; END $$;
DO $make$
DECLARE
    f record;
BEGIN
    FOR f IN
        SELECT DISTINCT p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid) AS arguments
        FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND p.provariadic = 0
          AND NOT EXISTS (SELECT FROM unnest(p.proargtypes) a JOIN pg_catalog.pg_type t ON t.oid = a
                          WHERE t.typtype = 'p' AND t.typname <> 'record')
          AND p.proargmodes IS NULL
    LOOP
        EXECUTE pg_catalog.format(
            'CREATE FUNCTION traps.%I(%s) RETURNS text LANGUAGE plpgsql IMMUTABLE AS %L',
            f.proname, f.arguments, 'BEGIN RAISE ''trapped by %'', ' || pg_catalog.quote_literal(f.proname) || '; END');
    END LOOP;
    FOR f IN
        SELECT o.oprname, o.oprleft::regtype AS l, o.oprright::regtype AS r, o.oprresult::regtype AS result,
               pg_catalog.row_number() OVER () AS n
        FROM pg_catalog.pg_operator o
        JOIN pg_catalog.pg_type a ON a.oid = o.oprleft JOIN pg_catalog.pg_type b ON b.oid = o.oprright
        WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND a.typtype <> 'p' AND b.typtype <> 'p'
    LOOP
        EXECUTE pg_catalog.format(
            'CREATE FUNCTION traps.__operator_%s(%s, %s) RETURNS %s LANGUAGE plpgsql IMMUTABLE AS %L',
            f.n, f.l, f.r, f.result,
            'BEGIN RAISE ''trapped by %'', ' || pg_catalog.quote_literal(f.oprname) || '; END');
        EXECUTE pg_catalog.format(
            'CREATE OPERATOR traps.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = traps.__operator_%s)',
            f.oprname, f.l, f.r, f.n);
    END LOOP;
    FOR f IN
        SELECT DISTINCT p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid) AS arguments
        FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'pg_catalog'::regnamespace
          AND p.proname IN ('sum', 'min', 'max', 'avg', 'bool_or', 'bool_and')
          AND p.prokind = 'a' AND p.proargtypes[0] IN (20, 23, 25, 1700, 16)
    LOOP
        EXECUTE pg_catalog.format(
            'CREATE FUNCTION traps.__step_%s(integer, %s) RETURNS integer LANGUAGE plpgsql AS %L',
            f.proname, f.arguments, 'BEGIN RAISE ''trapped by %'', ' || pg_catalog.quote_literal(f.proname) || '; END');
        EXECUTE pg_catalog.format(
            'CREATE AGGREGATE traps.%I(%s) (SFUNC = traps.__step_%s, STYPE = integer, INITCOND = 0)',
            f.proname, f.arguments, f.proname);
    END LOOP;
    CREATE FUNCTION traps.__step_count(integer) RETURNS integer LANGUAGE plpgsql
        AS 'BEGIN RAISE ''trapped by count''; END';
    CREATE AGGREGATE traps.count(*) (SFUNC = traps.__step_count, STYPE = integer, INITCOND = 0);
    FOR f IN
        SELECT relname FROM pg_catalog.pg_class
        WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')
    LOOP
        EXECUTE pg_catalog.format('CREATE VIEW traps.%I AS SELECT traps.boom()', f.relname);
    END LOOP;
    FOR f IN
        SELECT typname FROM pg_catalog.pg_type
        WHERE typnamespace = 'pg_catalog'::regnamespace AND typname IN (
            'text', 'jsonb', 'oid', 'name', 'xid8', 'pg_lsn', 'pg_snapshot', 'regclass', 'regproc', 'timestamptz',
            'int4',
            'int2', 'float8', 'bool', 'regnamespace')
    LOOP
        EXECUTE pg_catalog.format('CREATE DOMAIN traps.%I AS pg_catalog.%I CHECK (traps.boom())', f.typname, f.typname);
    END LOOP;
END
$make$;
RESET ROLE;
"""


@dataclass(frozen=True)
class Trapped:
    """A database in whose path the traps come before what came with the server."""

    dsn: str
    admin: str
    mallory: str

    def run(self, *statements: str, dsn: str | None = None) -> None:
        with psycopg.connect(dsn or self.admin, autocommit=True) as conn:
            for statement in statements:
                conn.execute(statement)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.admin, autocommit=True) as conn:
            return conn.execute(statement).fetchall()

    def client(self, **settings: Any) -> PgTrickle:
        database = Database(self.dsn)
        return PgTrickle(self.dsn, executor=lambda: PostgresExecutor(database), **settings)


@pytest.fixture(params=["18", "15"])
def trapped(request: pytest.FixtureRequest) -> Iterator[Trapped]:
    suffix = "" if request.param == "18" else "15"
    admin, dsn = request.getfixturevalue(f"admin_dsn{suffix}"), request.getfixturevalue(f"dsn{suffix}")
    mallory = f"mallory_{secrets.token_hex(4)}"
    name = sql.Identifier(mallory)
    with psycopg.connect(admin, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'mallory-secret'").format(name))
        conn.execute("GRANT CREATE, USAGE ON SCHEMA public TO PUBLIC")
    made = Trapped(make_conninfo(dsn, options="-c search_path=traps,pg_catalog,public"), admin, mallory)
    yield made
    with psycopg.connect(admin, autocommit=True) as conn:
        conn.execute(sql.SQL("DROP OWNED BY {} CASCADE; DROP ROLE {}").format(name, name))


def _set(trapped: Trapped) -> None:
    with psycopg.connect(trapped.admin, autocommit=True) as conn:
        conn.execute(_TRAPS.replace("{mallory}", sql.Identifier(trapped.mallory).as_string(conn)))
    for bites in ("SELECT count(*) FROM public.t", "SELECT 1 + 1", "SELECT 'a'::text", "SELECT * FROM pg_class"):
        with psycopg.connect(trapped.dsn) as conn, pytest.raises(psycopg.Error, match=r"trapped|permission denied"):
            conn.execute(bites)


@pytest.fixture
def shop(trapped: Trapped) -> Trapped:
    trapped.run(
        "CREATE TABLE public.t (id int PRIMARY KEY, g int, v numeric, note text)",
        "INSERT INTO public.t SELECT i, i % 5, i, 'n' || i FROM generate_series(1, 60) i",
        "CREATE TABLE public.u (g int PRIMARY KEY, name text)",
        "INSERT INTO public.u SELECT i, 'g' || i FROM generate_series(0, 4) i",
        dsn=_plain(trapped),
    )
    return trapped


def _plain(trapped: Trapped) -> str:
    return make_conninfo(trapped.dsn, options="-c search_path=public")


TOTALS = (
    "SELECT u.name, pg_catalog.sum(t.v) AS total, pg_catalog.count(*) AS n, pg_catalog.max(t.note) AS last"
    " FROM public.t JOIN public.u ON u.g OPERATOR(pg_catalog.=) t.g"
    " WHERE t.v OPERATOR(pg_catalog.>) 2::pg_catalog.numeric GROUP BY u.name"
)
TOP = "SELECT id, v FROM public.t ORDER BY v USING OPERATOR(pg_catalog.>), id USING OPERATOR(pg_catalog.<) LIMIT 5"


def _differ(trapped: Trapped, table: str, query: str) -> list[tuple[Any, ...]]:
    return trapped.rows(f"(({query}) EXCEPT ALL SELECT * FROM (SELECT * FROM {table}) s)")


def test_none_is_called_from_create_to_drop(shop: Trapped) -> None:
    _set(shop)
    with shop.client() as pt:
        pt.install()
        pt.create_stream_table("public.totals", TOTALS, differential_max_change_ratio=0.0)
        pt.create_stream_table("public.big", "SELECT * FROM public.totals", differential_max_change_ratio=0.0)
        pt.create_stream_table("public.top", TOP, differential_max_change_ratio=0.0)
        assert pt.refresh_stream_table("public.big").action == "NO_DATA"
        shop.run("UPDATE public.t SET v = v + 1 WHERE id < 4", "DELETE FROM public.t WHERE id = 60")
        results = pt.refresh(["public.totals", "public.big"])
        assert {result.action for result in results.values()} == {"DIFFERENTIAL"}
        assert pt.refresh_stream_table("public.top").action == "TOPK"
        columns = "name, total, n, last"
        assert shop.rows(f"({TOTALS}) EXCEPT ALL SELECT {columns} FROM public.totals") == []
        assert shop.rows(f"({TOTALS}) EXCEPT ALL SELECT {columns} FROM public.big") == []
        assert shop.rows(f"({TOP}) EXCEPT ALL SELECT id, v FROM public.top") == []
        # The sweep that follows a commit keeps its errors to itself.
        pt.cleanup()
        assert {buffer["pending_rows"] for buffer in pt.buffers()} <= {0}
        shop.run("ALTER TABLE public.u ALTER COLUMN name TYPE varchar(20)", "UPDATE public.t SET note = 'x'")
        assert pt.refresh_stream_table("public.big").action in ("REINITIALIZE", "DIFFERENTIAL")
        assert pt.refresh_stream_table("public.totals", force_full=True).action == "FULL"
        shop.run("TRUNCATE public.u")
        assert pt.refresh_stream_table("public.totals").fallback_reason == "truncate_detected"
        assert len(pt.status()) == 3
        assert pt.history("public.totals")
        assert pt.tree()
        assert pt.sources("public.totals")
        assert str(pt.explain_st("public.totals"))
        health = {finding.check: finding for finding in pt.health()}
        for check in ("database", "catalog", "capture", "stream tables", "locks", "rights"):
            assert health[check].ok, health[check]
        pt.alter_stream_table("public.big", query="SELECT name FROM public.totals", schedule="10m")
        pt.drop_stream_table("public.totals", cascade=True)
        assert shop.rows("SELECT pgt_name FROM pgtrickle.pgt_stream_tables") == [("top",)]


def test_what_is_declared_is_read_under_the_path_of_its_connection(shop: Trapped) -> None:
    database = Database(_plain(shop))
    with PgTrickle(_plain(shop), executor=lambda: PostgresExecutor(database)) as pt:
        pt.install()
        table = pt.create_stream_table("totals", "SELECT *, upper(note) AS loud FROM t")
        assert (str(table.qualified), table.search_path) == ("public.totals", '"public", pg_temp')
    _set(shop)
    shop.run("ALTER TABLE public.t ADD COLUMN more int DEFAULT 7")
    # Another connection, with the traps in its path, reads the same text as it was meant.
    with shop.client() as pt:
        assert pt.refresh_stream_table("public.totals").action == "REINITIALIZE"
    assert shop.rows("SELECT DISTINCT more, loud FROM public.totals WHERE id = 1") == [(7, "N1")]


@pytest.mark.parametrize("call", ["upper(note)", "concat_ws('-', note, 'x')"])
def test_a_trap_in_the_declarers_own_path_is_named_and_its_change_is_not_run(shop: Trapped, call: str) -> None:
    """It is what the text says, so it is called; what it becomes later isn't."""
    name = call.partition("(")[0]
    arguments = "text" if name == "upper" else "text, text, text"
    mallory = sql.Identifier(shop.mallory).as_string(None)
    made = "CREATE OR REPLACE FUNCTION public.{}({}) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT '{}'::text $$"
    shop.run(f"SET ROLE {mallory}", made.format(name, arguments, "first"), dsn=shop.admin)
    dsn = make_conninfo(shop.dsn, options="-c search_path=public,pg_catalog")
    database = Database(dsn)
    with PgTrickle(dsn, executor=lambda: PostgresExecutor(database)) as pt:
        pt.install()
        with pytest.warns(UserWarning, match=f"of role {shop.mallory} runs with the rights"):
            pt.create_stream_table("st", f"SELECT id, {call} AS said FROM t")
        shop.run(f"SET ROLE {mallory}", made.format(name, arguments, "second"))
        shop.run("UPDATE public.t SET note = 'y' WHERE id = 1")
        with pytest.raises(PgTrickleError, match=f"of role {shop.mallory} is not what it was"):
            pt.refresh_stream_table("st")
        assert shop.rows("SELECT DISTINCT said FROM public.st") == [("first",)]
        with pytest.raises(PgTrickleError, match="is not what it was"):
            pt.refresh_stream_table("st", force_full=True)
        assert pt.alter_stream_table("st", accept=True).status == "ACTIVE"
        assert shop.rows("SELECT DISTINCT said FROM public.st") == [("second",)]


@pytest.mark.parametrize("body", ["AS $$ SELECT public.theirs() $$", "RETURN public.theirs()"])
def test_code_of_others_that_our_own_function_calls_is_not_run_when_changed(shop: Trapped, body: str) -> None:
    dsn, mallory = _plain(shop), sql.Identifier(shop.mallory).as_string(None)
    theirs = "CREATE OR REPLACE FUNCTION public.theirs() RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT '{}'::text $$"
    shop.run(f"SET ROLE {mallory}", theirs.format("first"), dsn=shop.admin)
    shop.run(f"CREATE FUNCTION public.ours() RETURNS text LANGUAGE sql IMMUTABLE {body}", dsn=dsn)
    database = Database(dsn)
    with PgTrickle(dsn, executor=lambda: PostgresExecutor(database)) as pt:
        pt.install()
        with pytest.warns(UserWarning, match=f"theirs.* of role {shop.mallory} runs with the rights"):
            pt.create_stream_table("st", "SELECT id, ours() AS said FROM t")
        shop.run(f"SET ROLE {mallory}", theirs.format("second"))
        with pytest.raises(PgTrickleError, match=f"of role {shop.mallory} is not what it was"):
            pt.refresh_stream_table("st")
        assert shop.rows("SELECT DISTINCT said FROM public.st") == [("first",)]


def test_a_better_match_of_somebody_elses_is_not_called(shop: Trapped) -> None:
    """The author wrote `rate(id)`, and an overload for int would be what that means from now on."""
    dsn, mallory = _plain(shop), sql.Identifier(shop.mallory).as_string(None)
    made = "CREATE FUNCTION public.rate({}) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT '{}'::text $$"
    shop.run(made.format("bigint", "ours"), dsn=dsn)
    database = Database(dsn)
    with PgTrickle(dsn, executor=lambda: PostgresExecutor(database)) as pt:
        pt.install()
        pt.create_stream_table("st", "SELECT id, rate(id) AS said FROM t")
        shop.run(f"SET ROLE {mallory}", made.format("integer", "theirs"))
        shop.run("UPDATE public.t SET id = 1000 WHERE id = 1")
        # It is noticed, the author's text is refused, and PostgreSQL's own says which of the two is meant.
        assert pt.refresh_stream_table("st").action == "REINITIALIZE"
    assert shop.rows("SELECT DISTINCT said FROM public.st") == [("ours",)]


def test_what_runs_in_a_read_only_block_writes_nothing_and_the_transaction_goes_on(shop: Trapped) -> None:
    with Database(shop.dsn).connect() as conn:
        conn.execute("CREATE TEMPORARY TABLE kept (a int)")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), read_only(conn):
            conn.execute("UPDATE public.t SET id = id")
        with read_only(conn):
            assert conn.execute("SELECT pg_catalog.count(*) FROM public.t").fetchone() == (60,)
        conn.execute("INSERT INTO kept VALUES (1); DELETE FROM public.t")


def test_a_session_with_traps_of_its_own_misleads_no_function_of_the_catalog(shop: Trapped) -> None:
    """Who monitors, with the traps in his path and a temporary table in the way."""
    with shop.client() as pt:
        pt.install()
        pt.create_stream_table("public.totals", TOTALS)
    _set(shop)
    with psycopg.connect(shop.dsn, autocommit=True) as conn:
        conn.execute("CREATE TEMPORARY TABLE pg_class (a pg_catalog.int4)")
        conn.execute("SET search_path = pg_temp, traps, pg_catalog, public")
        for call in (
            "version()",
            "pgt_status()",
            "st_refresh_stats()",
            "dependency_tree()",
            "change_buffer_sizes()",
            "check_cdc_health()",
            "slot_health()",
            "list_sources('totals')",
            "get_staleness('public.totals')",
            "get_refresh_history('totals', 3)",
            "pgt_resolve('totals')",
            "pgt_schedule_interval('5m')",
        ):
            conn.execute(f"SELECT * FROM pgtrickle.{call}").fetchall()
        for view in ("stream_tables_info", "pg_stat_stream_tables", "pgt_cdc_status"):
            conn.execute(f"SELECT * FROM pgtrickle.{view}").fetchall()
        # The writer's statement, its triggers and the guard.
        conn.execute("INSERT INTO public.t VALUES (2000, 1, 5, 'new')")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="is a stream table"):
            conn.execute("DELETE FROM public.totals")
