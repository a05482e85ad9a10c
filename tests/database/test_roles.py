"""docs/how-to/roles.md grants enough and no more: its statements are run, and then each role does its work."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog import requests
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.catalog.records import STATE
from airflow_provider_pgtrickle.engine.errors import PermissionFault
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.requests import serve

pytestmark = pytest.mark.empty

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "roles.md"
LOGINS = ("shop_app", "pgtrickle", "runner", "dashboard", "monitor")
_BLOCK = re.compile(r"<!-- runs as (?P<who>[^>]+) -->\n```sql\n(?P<text>.*?)```", re.DOTALL)
_TOTALS = "SELECT customer_id, sum(amount) AS total FROM sales.orders GROUP BY customer_id"


@dataclass(frozen=True)
class Shop:
    """A database whose roles are the page's, under names of this test's own: roles belong to the whole server."""

    admin: str
    suffix: str
    password: str

    def named(self, statement: str) -> str:
        database = conninfo_to_dict(self.admin)["dbname"]
        text = re.sub(rf"\b({'|'.join(('shop_owner', *LOGINS))})\b(?=[;,\s]|$)", rf"\1_{self.suffix}", statement)
        text = re.sub(rf"(SCHEMA(?: \w+,)*? ?)\bpgtrickle_{self.suffix}\b", r"\1pgtrickle", text)
        return text.replace("DATABASE shop", f"DATABASE {database}")

    def dsn(self, role: str) -> str:
        return make_conninfo(self.admin, user=f"{role}_{self.suffix}", password=self.password)

    @contextmanager
    def session(self, role: str) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.admin if role == "admin" else self.dsn(role), autocommit=True) as conn:
            yield conn

    def client(self, role: str) -> PgTrickle:
        database = Database(self.dsn(role))
        return PgTrickle(self.dsn(role), executor=lambda: PostgresExecutor(database))

    def run(self, who: str) -> None:
        """The page's blocks for one reader, in order."""
        for block in _BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
            if block["who"] == who:
                with self.session(who.split()[0]) as conn:
                    conn.execute(self.named(block["text"]))


@pytest.fixture(params=["18", "15"])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    admin = str(request.getfixturevalue("admin_dsn" if request.param == "18" else "admin_dsn15"))
    made = Shop(admin, secrets.token_hex(4), secrets.token_hex(8))
    roles = ["shop_owner", *LOGINS]
    with made.session("admin") as conn:
        for role in roles:
            login = sql.SQL("LOGIN PASSWORD {}").format(made.password) if role in LOGINS else sql.SQL("NOLOGIN")
            conn.execute(sql.SQL("CREATE ROLE {} {}").format(sql.Identifier(f"{role}_{made.suffix}"), login))
        conn.execute(made.named("REVOKE ALL ON DATABASE shop FROM PUBLIC"))
        conn.execute(made.named("GRANT CONNECT ON DATABASE shop TO shop_app, runner, dashboard, monitor"))
        conn.execute(made.named("CREATE SCHEMA sales AUTHORIZATION shop_owner"))
        conn.execute(made.named("SET ROLE shop_owner"))
        conn.execute(
            "CREATE TABLE sales.orders (id int PRIMARY KEY, customer_id int, amount numeric(10,2));"
            "INSERT INTO sales.orders SELECT i, i % 5, i FROM generate_series(1, 100) i"
        )
        conn.execute(made.named("GRANT USAGE ON SCHEMA sales TO shop_app;"))
        conn.execute(made.named("GRANT SELECT, INSERT, UPDATE, DELETE ON sales.orders TO shop_app"))
    yield made
    with made.session("admin") as conn:
        for role in roles:
            name = sql.Identifier(f"{role}_{made.suffix}")
            conn.execute(sql.SQL("DROP OWNED BY {} CASCADE; DROP ROLE {}").format(name, name))


@pytest.fixture
def declared(shop: Shop) -> Shop:
    """The first block run, the catalog installed, CREATE revoked again, two stream tables declared and filled."""
    shop.run("admin")
    with shop.client("pgtrickle") as pt:
        pt.install()
        shop.run("admin after install")
        assert pt.install() == []
        pt.create_stream_table("reports.totals", _TOTALS, differential_max_change_ratio=0.0)
        pt.create_stream_table(
            "reports.big", "SELECT * FROM reports.totals WHERE total > 900", differential_max_change_ratio=0.0
        )
    return shop


def _written(shop: Shop) -> None:
    with shop.session("shop_app") as conn:
        conn.execute("UPDATE sales.orders SET amount = amount + 5 WHERE id = 3")
        conn.execute("DELETE FROM sales.orders WHERE id = 4")


def test_what_writes_the_sources_needs_nothing_new_and_sees_no_buffer(declared: Shop) -> None:
    _written(declared)
    with declared.client("pgtrickle") as pt:
        assert pt.refresh_stream_table("reports.big").action == "DIFFERENTIAL"
    with declared.session("shop_app") as conn, pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute("SELECT * FROM pgtrickle.pgt_stream_tables")
    with declared.session("shop_app") as conn, pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute("CREATE TABLE pgtrickle_changes.mine ()")


def test_without_being_a_member_of_the_owner_nothing_is_captured(declared: Shop) -> None:
    with declared.session("admin") as conn:
        conn.execute(declared.named("SET ROLE shop_owner"))
        conn.execute("CREATE TABLE sales.returns (id int PRIMARY KEY)")
        conn.execute(declared.named("GRANT USAGE ON SCHEMA sales TO pgtrickle;"))
        conn.execute(declared.named("GRANT SELECT, UPDATE, DELETE, TRUNCATE, TRIGGER ON sales.returns TO pgtrickle"))
        conn.execute("RESET ROLE")
        conn.execute(declared.named("REVOKE shop_owner FROM pgtrickle"))
    with declared.client("pgtrickle") as pt, pytest.raises(PermissionFault):
        pt.create_stream_table("reports.returned", "SELECT count(*) AS n FROM sales.returns")


def test_readers_read_stream_tables_present_and_to_come_and_nothing_else(declared: Shop) -> None:
    declared.run("pgtrickle")
    with declared.client("pgtrickle") as pt:
        pt.create_stream_table("reports.later", "SELECT count(*) AS n FROM sales.orders")
    with declared.session("dashboard") as conn:
        assert conn.execute("SELECT count(*) FROM reports.totals").fetchone() == (5,)
        assert conn.execute("SELECT n FROM reports.later").fetchone() == (100,)
        for refused in ("SELECT * FROM sales.orders", "DELETE FROM reports.totals", "SELECT pgtrickle.version()"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(refused)


def test_monitoring_sees_the_catalog(declared: Shop) -> None:
    declared.run("pgtrickle")
    with declared.session("monitor") as conn:
        for what in (
            "pgtrickle.pgt_status()",
            "pgtrickle.stream_tables_info",
            "pgtrickle.pg_stat_stream_tables",
            "pgtrickle.st_refresh_stats()",
            "pgtrickle.dependency_tree()",
            "pgtrickle.get_refresh_history('reports.totals')",
            "pgtrickle.list_sources('reports.totals')",
            "pgtrickle.change_buffer_sizes()",
            "pgtrickle.check_cdc_health()",
        ):
            assert conn.execute(f"SELECT * FROM {what}").fetchall()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute("SELECT * FROM reports.totals")


def test_a_role_that_only_refreshes_can_do_that_and_no_more(declared: Shop) -> None:
    declared.run("pgtrickle")
    declared.run("admin for the runner")
    _written(declared)
    with declared.client("runner") as pt:
        results = pt.refresh(["reports.totals", "reports.big"])
        assert {result.action for result in results.values()} == {"DIFFERENTIAL"}
        with pytest.raises(PermissionFault):
            pt.create_stream_table("reports.mine", _TOTALS)


@pytest.fixture
def refreshed_by_runner(declared: Shop) -> Shop:
    declared.run("pgtrickle")
    declared.run("admin for the runner")
    return declared


def test_a_role_that_only_refreshes_writes_into_partitions_and_makes_none(declared: Shop) -> None:
    with declared.client("pgtrickle") as pt:
        pt.create_stream_table(
            "reports.parted", "SELECT id, amount FROM sales.orders", partition_by="id", partition_every="1000"
        )
    declared.run("pgtrickle")
    declared.run("admin for the runner")
    _written(declared)
    with declared.client("runner") as pt:
        assert pt.refresh_stream_table("reports.parted").action == "DIFFERENTIAL"
        with declared.session("shop_app") as conn:
            conn.execute("UPDATE sales.orders SET id = 5000 WHERE id = 7")
        with pytest.raises(PermissionFault, match="may make none in a table of"):
            pt.refresh_stream_table("reports.parted")
    with declared.client("pgtrickle") as pt:
        pt.alter_stream_table("reports.parted", status="ACTIVE")
        assert pt.refresh_stream_table("reports.parted").action == "DIFFERENTIAL"
        assert pt.verify("reports.parted").differences == 0


def test_a_role_that_only_refreshes_answers_requests_and_makes_none(refreshed_by_runner: Shop) -> None:
    shop = refreshed_by_runner
    with shop.session("pgtrickle") as conn:
        conn.execute("SELECT pgtrickle.request_refresh('reports.totals'), pgtrickle.request_refresh('reports.big')")
    with shop.client("runner") as pt:
        with pt.database.transaction() as seeing:
            requests.see(seeing)
        pt.refresh_stream_table("reports.totals")
        # The other one was answered by that refresh.
        assert [str(served.request.table) for served in serve(pt)] == ["reports.big"]
    with shop.session("runner") as conn:
        assert conn.execute("SELECT DISTINCT status FROM pgtrickle.pgt_requests").fetchall() == [("DONE",)]
        for call in ("request_refresh('reports.totals')", "request_declare('reports.t', 'SELECT 1 AS a')"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(f"SELECT pgtrickle.{call}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute("UPDATE pgtrickle.pgt_requests SET query = 'SELECT 1'")


def test_a_role_that_only_refreshes_writes_nothing_that_becomes_sql(refreshed_by_runner: Shop) -> None:
    shop = refreshed_by_runner
    with shop.session("runner") as conn:
        columns = {
            name
            for (name,) in conn.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = 'pgtrickle.pgt_stream_tables'::regclass"
                " AND attnum > 0 AND NOT attisdropped"
            )
        }
        may = {
            name
            for name in columns
            if conn.execute(
                "SELECT has_column_privilege('pgtrickle.pgt_stream_tables', %s, 'UPDATE')", [name]
            ).fetchone()
            == (True,)
        }
        assert may == set(STATE)
        for refused in (
            "UPDATE pgtrickle.pgt_stream_tables SET defining_query = 'SELECT 1'",
            "INSERT INTO pgtrickle.pgt_stream_tables (pgt_schema, pgt_name) VALUES ('a', 'b')",
            "UPDATE pgtrickle.pgt_dependencies SET source_name = 'x'",
            "UPDATE pgtrickle.pgt_change_tracking SET buffer = 'x'",
            "CREATE TABLE pgtrickle_changes.changes_1 (a int)",
            "CREATE FUNCTION pgtrickle_changes.capture_1() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'",
            "CREATE FUNCTION pgtrickle.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "CREATE TRIGGER t BEFORE UPDATE ON pgtrickle.pgt_stream_tables EXECUTE FUNCTION pgtrickle.pgt_guard()",
            "ALTER TABLE pgtrickle_changes.changes_pgt_1 ADD COLUMN a int",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(refused)


def test_large_refreshes_of_it_are_staged_in_a_schema_of_its_own(refreshed_by_runner: Shop) -> None:
    shop = refreshed_by_runner
    _written(shop)
    with shop.client("runner") as pt:
        pt.settings = replace(pt.settings, collect_max_rows=1)
        result = pt.refresh_stream_table("reports.totals")
        assert (result.action, result.rows_updated) == ("DIFFERENTIAL", 2)
        pt.cleanup()
    with shop.session("admin") as conn:
        left = "SELECT relname FROM pg_class WHERE relname LIKE '%stage%' AND relkind = 'r' AND relpersistence = 'u'"
        assert conn.execute(left).fetchall() == []
        conn.execute(shop.named("DROP SCHEMA runner"))
    _written(shop)
    with shop.client("runner") as pt:
        pt.settings = replace(pt.settings, collect_max_rows=1)
        with pytest.raises(PermissionFault, match="CREATE SCHEMA AUTHORIZATION"):
            pt.refresh_stream_table("reports.totals", force_full=True)


def test_health_names_who_may_write_what_becomes_sql(refreshed_by_runner: Shop) -> None:
    shop = refreshed_by_runner

    def rights() -> tuple[bool, str]:
        with shop.client("pgtrickle") as pt:
            found = next(finding for finding in pt.health() if finding.check == "rights")
        return found.ok, found.detail

    assert rights()[0], rights()
    with shop.session("pgtrickle") as conn:
        conn.execute(shop.named("GRANT CREATE ON SCHEMA pgtrickle_changes TO runner;"))
        conn.execute(shop.named("GRANT UPDATE ON ALL TABLES IN SCHEMA pgtrickle TO runner;"))
    ok, told = rights()
    assert not ok
    assert "create objects in pgtrickle_changes" in told
    assert "change the definitions in pgt_stream_tables" in told
    shop.run("pgtrickle after an upgrade")
    shop.run("pgtrickle")
    assert rights()[0], rights()


def test_a_frontier_can_be_forged_into_no_statement(refreshed_by_runner: Shop) -> None:
    shop = refreshed_by_runner
    bait = "1:1:')); SELECT pg_sleep(1); --"
    for value in (
        {"snapshot": bait, "lsn": "0/0", "ts": "2026-01-01", "buffer": 1},
        {"snapshot": "1:1:", "lsn": bait, "ts": bait, "also": [bait], "buffer": bait},
    ):
        with shop.session("runner") as conn:
            conn.execute(
                "UPDATE pgtrickle.pgt_stream_tables SET frontier = jsonb_build_object('sources',"
                " (SELECT jsonb_object_agg(key, %s::jsonb) FROM jsonb_object_keys(frontier -> 'sources') key))",
                [json.dumps(value)],
            )
        with shop.client("pgtrickle") as pt:
            result = pt.refresh_stream_table("reports.totals")
            assert (result.action, result.fallback_reason) == ("FULL", "buffer_lost")
        with shop.session("admin") as conn:
            wrong = f"({_TOTALS}) EXCEPT ALL SELECT customer_id, total FROM reports.totals"
            assert conn.execute(wrong).fetchall() == []


def test_what_the_owner_of_a_view_makes_of_it_later_is_not_run(refreshed_by_runner: Shop) -> None:
    """The role of the DAGs may read salaries, the owner of the sources may not."""
    shop = refreshed_by_runner
    with shop.session("admin") as conn:
        conn.execute("CREATE TABLE public.salaries AS SELECT 1 AS id, 9999 AS salary")
        conn.execute(shop.named("GRANT SELECT ON public.salaries TO pgtrickle;"))
        conn.execute(shop.named("SET ROLE shop_owner"))
        conn.execute("CREATE FUNCTION sales.rate(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT 1'")
        conn.execute("CREATE VIEW sales.rated AS SELECT id, sales.rate(id) AS rate FROM sales.orders")
    with shop.client("pgtrickle") as pt:
        with pytest.warns(UserWarning, match=r"sales\.rated of role shop_owner"):
            pt.create_stream_table("reports.rated", "SELECT id, rate FROM sales.rated")
        with shop.session("admin") as conn:
            conn.execute(shop.named("SET ROLE shop_owner"))
            conn.execute(
                "CREATE OR REPLACE FUNCTION sales.rate(int) RETURNS int LANGUAGE sql STABLE"
                " AS 'SELECT salary FROM public.salaries'"
            )
        for _ in range(2):
            with pytest.raises(PermissionFault, match=r"sales\.rate\(integer\) of role shop_owner\w* is not what"):
                pt.refresh_stream_table("reports.rated", force_full=True)
    with shop.session("admin") as conn:
        assert conn.execute("SELECT DISTINCT rate FROM reports.rated").fetchall() == [(1,)]
