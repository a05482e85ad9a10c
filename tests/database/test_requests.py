"""What a psql user asks for is carried out, and answered once, whatever happens to who serves."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog import requests
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.requests import Served, serve

TOTALS = "SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id"


@dataclass
class Shop:
    """A database with orders and one stream table, a psql session and who serves."""

    dsn: str
    psql: psycopg.Connection[Any]
    client: PgTrickle

    def ask(self, statement: str, *values: Any) -> Any:
        row = self.psql.execute(statement, values or None).fetchone()
        assert row is not None
        return row[0]

    def serve(self) -> list[Served]:
        return list(serve(self.client))

    def request(self, number: int) -> dict[str, Any]:
        with self.psql.cursor(row_factory=dict_row) as cursor:
            row = cursor.execute("SELECT * FROM pgtrickle.pgt_requests WHERE request_id = %s", [number]).fetchone()
        assert row is not None
        return row

    def totals(self) -> list[tuple[Any, ...]]:
        return self.psql.execute("SELECT customer_id, total FROM totals ORDER BY 1").fetchall()

    def is_right(self) -> bool:
        return self.totals() == self.psql.execute(f"{TOTALS} ORDER BY 1").fetchall()


@contextmanager
def _shop(dsn: str) -> Iterator[Shop]:
    with (
        psycopg.connect(dsn, autocommit=True) as psql,
        PgTrickle(dsn, executor=lambda: PostgresExecutor(Database(dsn))) as client,
    ):
        psql.execute(
            "CREATE TABLE orders (id int PRIMARY KEY, customer_id int, amount int);"
            "INSERT INTO orders SELECT i, i % 5, i FROM generate_series(1, 100) i"
        )
        client.install()
        client.create_stream_table("totals", TOTALS, schedule="5m")
        yield Shop(dsn, psql, client)


@pytest.fixture
def shop(dsn: str) -> Iterator[Shop]:
    with _shop(dsn) as made:
        yield made


@pytest.fixture
def any_shop(any_dsn: str) -> Iterator[Shop]:
    """The shop on each server in turn, for what the SQL functions do."""
    with _shop(any_dsn) as made:
        yield made


@pytest.fixture
def stranger(shop: Shop, admin_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """A session of a role that may see the catalog, and no more."""
    role, password = f"stranger_{secrets.token_hex(4)}", secrets.token_hex(8)
    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(role), password))
        for grant in (
            "GRANT CONNECT ON DATABASE {database} TO {role}",
            "GRANT USAGE ON SCHEMA pgtrickle TO {role}",
            "GRANT SELECT ON ALL TABLES IN SCHEMA pgtrickle TO {role}",
        ):
            names = {"role": sql.Identifier(role), "database": sql.Identifier(admin.info.dbname)}
            admin.execute(sql.SQL(grant).format(**names))
        with psycopg.connect(make_conninfo(admin_dsn, user=role, password=password), autocommit=True) as session:
            yield session
        admin.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(role)))


def test_a_refresh_is_carried_out_and_answered(any_shop: Shop) -> None:
    any_shop.psql.execute("UPDATE orders SET amount = 1000 WHERE id = 1")
    number = any_shop.ask("SELECT pgtrickle.request_refresh('totals')")
    assert any_shop.request(number)["status"] == "PENDING"
    (served,) = any_shop.serve()
    assert any_shop.is_right()
    answered = any_shop.request(number)
    assert (answered["status"], answered["begun"], answered["error"]) == ("DONE", 1, None)
    assert answered["answer"]["action"] == "DIFFERENTIAL"
    assert answered["answer"]["rows_updated"] == 1
    assert answered["answer"] == served.answer
    assert any_shop.serve() == []
    assert any_shop.psql.execute("SELECT * FROM pgtrickle.wait_for_request(%s)", [number]).fetchone() == (
        "DONE",
        answered["answer"],
        None,
    )


def test_a_full_refresh_resumes_a_halted_table(shop: Shop) -> None:
    shop.psql.execute("UPDATE pgtrickle.pgt_stream_tables SET status = 'SUSPENDED', consecutive_errors = 3")
    refused = shop.ask("SELECT pgtrickle.request_refresh('totals')")
    wanted = shop.ask("SELECT pgtrickle.request_refresh('public.totals', true)")
    shop.serve()
    assert shop.request(refused)["status"] == "FAILED"
    assert "suspended" in shop.request(refused)["error"]
    assert shop.request(wanted)["answer"]["action"] == "FULL"
    assert shop.ask("SELECT status FROM pgtrickle.pgt_stream_tables") == "ACTIVE"


@pytest.mark.parametrize("full", ["false", "true"])
def test_a_member_that_holds_a_unit_back_is_named(shop: Shop, full: str) -> None:
    """In full means the table that is named, and brings no other one back."""
    counts = "SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id"
    shop.client.create_stream_table("counts", counts, schedule="5m", unit="ledger")
    shop.client.alter_stream_table("totals", unit="ledger")
    shop.psql.execute("UPDATE pgtrickle.pgt_stream_tables SET status = 'ERROR' WHERE pgt_name = 'counts'")
    number = shop.ask(f"SELECT pgtrickle.request_refresh('totals', {full})")
    shop.serve()
    assert shop.request(number)["status"] == "FAILED"
    assert shop.request(number)["error"] == (
        "public.totals: It was not refreshed, because public.counts is refreshed together with it"
        " (error: public.counts). End what holds it back, then ask again."
    )
    number = shop.ask("SELECT pgtrickle.request_refresh('counts', true)")
    shop.serve()
    assert shop.request(number)["answer"]["action"] == "FULL"
    assert shop.ask("SELECT DISTINCT status FROM pgtrickle.pgt_stream_tables") == "ACTIVE"


@pytest.mark.parametrize(
    ("call", "verb", "instead"),
    [
        (
            "create_stream_table('t', 'SELECT ''x'' AS a', '5m', append_only => true)", "creates",
            """request_declare('t', 'SELECT ''x'' AS a', '{"schedule": "5m", "append_only": true}')""",
        ),
        (
            "create_stream_table(name => 't', query => 'SELECT 1 AS a', initialize => false)", "creates",
            "request_declare('t', 'SELECT 1 AS a', '{}', initialize => false)",
        ),
        (
            "alter_stream_table('totals', schedule => '10m', status => 'SUSPENDED')", "alters",
            """request_alter('totals', '{"status": "SUSPENDED", "schedule": "10m"}')""",
        ),
        ("drop_stream_table('totals')", "drops", "request_drop('totals')"),
        ("drop_stream_table('totals', cascade => true)", "drops", "request_drop('totals', and_readers => true)"),
        ("refresh_stream_table('totals')", "refreshes", "request_refresh('totals')"),
    ],
)  # fmt: skip
def test_the_originals_verbs_say_what_to_ask_for(any_shop: Shop, call: str, verb: str, instead: str) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported) as raised:
        any_shop.psql.execute(f"SELECT pgtrickle.{call}".encode())
    assert raised.value.diag.message_primary == f"the database by itself {verb} no stream table"
    hint = raised.value.diag.message_hint or ""
    assert hint == f"Ask for it: SELECT pgtrickle.{instead}; a DAG or `pgtrickle serve-requests` carries it out."
    row = any_shop.psql.execute(f"SELECT pgtrickle.{instead}".encode()).fetchone()
    assert row is not None
    assert any_shop.request(row[0])["status"] == "PENDING"


def test_a_gate_holds_requests_back_and_an_ungate_lets_them_through(any_shop: Shop) -> None:
    any_shop.psql.execute("SELECT pgtrickle.gate('totals', 'orders are being loaded')")
    assert any_shop.client.status()[0]["gated_reason"] == "orders are being loaded"
    held = any_shop.ask("SELECT pgtrickle.request_refresh('totals')")
    any_shop.serve()
    assert "orders are being loaded" in any_shop.request(held)["error"]
    any_shop.psql.execute("SELECT pgtrickle.ungate('totals')")
    free = any_shop.ask("SELECT pgtrickle.request_refresh('totals')")
    any_shop.serve()
    assert any_shop.request(free)["answer"]["action"] == "NO_DATA"


def test_a_declaration_creates_and_replaces_under_the_askers_path(any_shop: Shop) -> None:
    any_shop.psql.execute('CREATE SCHEMA "the shop"; CREATE TABLE "the shop".orders (id int PRIMARY KEY, price int)')
    any_shop.psql.execute('INSERT INTO "the shop".orders VALUES (1, 7); SET search_path = "the shop", public')
    first = any_shop.ask("SELECT pgtrickle.request_declare('prices', 'SELECT id, price FROM orders')")
    any_shop.serve()
    answered = any_shop.request(first)
    assert answered["error"] is None
    assert answered["answer"]["stream_table"] == "the shop.prices"
    assert answered["answer"]["is_populated"]
    assert any_shop.psql.execute('SELECT id, price FROM "the shop".prices').fetchall() == [(1, 7)]
    again = any_shop.ask(
        "SELECT pgtrickle.request_declare('prices', 'SELECT id, price * 2 AS price FROM orders', %s)",
        json.dumps({"schedule": "10m", "refresh_mode": "FULL"}),
    )
    any_shop.serve()
    assert any_shop.request(again)["answer"]["refresh_mode"] == "FULL"
    assert any_shop.psql.execute('SELECT id, price FROM "the shop".prices').fetchall() == [(1, 14)]


def test_an_unfilled_declaration_is_filled_by_the_next_refresh(shop: Shop) -> None:
    number = shop.ask("SELECT pgtrickle.request_declare('counts', 'SELECT count(*) FROM orders', '{}', false)")
    shop.serve()
    assert not shop.request(number)["answer"]["is_populated"]
    assert shop.ask("SELECT count(*) FROM counts") == 0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("request_declare('t', 'SELECT * FROM nowhere')", "nowhere"),
        ("request_declare('t', 'SELECT 1', '{\"shedule\": \"5m\"}')", "no option named 'shedule'"),
        ("request_declare('t', 'DELETE FROM orders')", "DELETE"),
        ("request_declare('orders', 'SELECT 1 AS a')", "A relation of that name is there already"),
    ],
)
def test_what_can_not_be_declared_is_answered_with_the_reason(shop: Shop, call: str, sentence: str) -> None:
    number = shop.ask("SELECT pgtrickle." + call)
    shop.serve()
    answered = shop.request(number)
    assert answered["status"] == "FAILED"
    assert sentence in answered["error"]
    assert answered["error"].count("\n") <= 3


def test_who_dies_leaves_the_request_to_the_next(shop: Shop) -> None:
    number = shop.ask("SELECT pgtrickle.request_refresh('totals')")
    for begun in (1, 2):
        with Database(shop.dsn).connect(autocommit=True) as dying:
            taken = requests.take(dying)
            assert taken is not None
            assert taken.request_id == number
            # While it lives nobody else begins it.
            assert shop.serve() == []
            assert (shop.request(number)["status"], shop.request(number)["begun"]) == ("RUNNING", begun)
            assert shop.ask("SELECT pg_terminate_backend(%s, 5000)", dying.info.backend_pid)
    shop.serve()
    assert (shop.request(number)["status"], shop.request(number)["begun"]) == ("DONE", 3)


def test_a_request_that_ends_its_processes_fails_in_the_end(shop: Shop) -> None:
    number = shop.ask("SELECT pgtrickle.request_refresh('totals')")
    for _ in range(requests.MOST_BEGUN):
        with Database(shop.dsn).connect(autocommit=True) as dying:
            assert requests.take(dying) is not None
    (served,) = shop.serve()
    assert "3 times" in str(served.error)
    assert shop.request(number)["error"] == served.error


def test_a_stranger_who_takes_the_lock_is_overlooked(shop: Shop, stranger: psycopg.Connection[Any]) -> None:
    number = shop.ask("SELECT pgtrickle.request_refresh('totals')")
    stranger.execute("SELECT pg_advisory_lock(%s, %s::int)", [int.from_bytes(b"pgrq"), number])
    shop.serve()
    assert shop.request(number)["status"] == "DONE"


def test_a_refresh_that_began_after_the_request_was_seen_is_its_answer(shop: Shop) -> None:
    shop.client.refresh_stream_table("totals", force_full=True)
    plain = shop.ask("SELECT pgtrickle.request_refresh('totals')")
    full = shop.ask("SELECT pgtrickle.request_refresh('totals', true)")
    with Database(shop.dsn).connect(autocommit=True) as conn:
        assert requests.asked(conn, ["public.totals", "public.others"]) == {"public.totals": True}
        assert requests.settle(conn) == []
        shop.client.refresh_stream_table("totals")
        assert requests.settle(conn, ["public.others"]) == []
        assert requests.settle(conn, ["public.totals"]) == [plain]
        shop.client.refresh_stream_table("totals", force_full=True)
        assert requests.settle(conn) == [full]
        assert requests.settle(conn) == []
    assert shop.request(plain)["answer"]["action"] == "NO_DATA"
    assert shop.request(full)["answer"]["action"] == "FULL"


def test_a_refresh_between_the_asking_and_its_commit_is_no_answer(shop: Shop) -> None:
    with psycopg.connect(shop.dsn) as asking, Database(shop.dsn).connect(autocommit=True) as conn:
        asking.execute("UPDATE orders SET amount = 1000 WHERE id = 1")
        asking.execute("SELECT pgtrickle.request_refresh('totals')")
        requests.see(conn)
        shop.client.refresh_stream_table("totals")
        asking.commit()
        assert requests.settle(conn) == []
        requests.see(conn)
        assert requests.settle(conn) == []
        shop.client.refresh_stream_table("totals")
        assert len(requests.settle(conn)) == 1
    assert shop.is_right()


def test_of_several_servers_one_carries_a_request_out(shop: Shop) -> None:
    numbers = [shop.ask("SELECT pgtrickle.request_refresh('totals')") for _ in range(6)]
    names = [f"t{i}" for i in range(6)]
    numbers += [shop.ask("SELECT pgtrickle.request_declare(%s, 'SELECT 1 AS a', '{}', false)", n) for n in names]
    with ThreadPoolExecutor(3) as servers:
        served = [one for all_of_his in servers.map(lambda _: _served_by_another(shop), range(3)) for one in all_of_his]
    # One who found the table held by another puts his request back for later.
    shop.serve()
    done = [one.request.request_id for one in served if one.answer is not None]
    assert len(done) == len(set(done))
    assert {shop.request(number)["status"] for number in numbers} == {"DONE"}


def _served_by_another(shop: Shop) -> list[Served]:
    with PgTrickle(shop.dsn, executor=lambda: PostgresExecutor(Database(shop.dsn))) as another:
        return list(serve(another))


def test_an_answer_is_given_once(shop: Shop) -> None:
    number = shop.ask("SELECT pgtrickle.request_refresh('totals')")
    with Database(shop.dsn).connect(autocommit=True) as conn:
        assert requests.answer(conn, number, {"action": "FULL"})
        assert not requests.refuse(conn, number, "too late")
    assert shop.request(number)["status"] == "DONE"


def test_a_request_waits_for_a_refresh_that_runs_elsewhere(shop: Shop) -> None:
    number = shop.ask("SELECT pgtrickle.request_refresh('totals')")
    space, st = int.from_bytes(b"pgtr"), shop.ask("SELECT pgt_id FROM pgtrickle.pgt_stream_tables")
    with psycopg.connect(shop.dsn) as elsewhere:
        elsewhere.execute("SELECT pg_advisory_lock(%s, %s::int)", [space, st])
        (served,) = shop.serve()
        assert (served.answer, served.error) == (None, None)
        assert (shop.request(number)["status"], shop.request(number)["begun"]) == ("PENDING", 0)
    shop.serve()
    assert shop.request(number)["status"] == "DONE"


def test_a_notification_tells_of_each_request(any_shop: Shop) -> None:
    any_shop.psql.execute("LISTEN pg_trickle_alert")
    number = any_shop.ask("SELECT pgtrickle.request_refresh('totals')")
    (notice,) = any_shop.psql.notifies(timeout=10, stop_after=1)
    assert json.loads(notice.payload) == {
        "event": "requested",
        "stream_table": "public.totals",
        "request_id": number,
        "kind": "REFRESH",
    }


def test_a_drop_is_carried_out_and_answered(any_shop: Shop) -> None:
    number = any_shop.ask("SELECT pgtrickle.request_drop('totals')")
    (served,) = any_shop.serve()
    assert served.answer == {"dropped": ["public.totals"]}
    assert any_shop.request(number)["status"] == "DONE"
    assert any_shop.ask("SELECT to_regclass('totals') IS NULL AND to_regclass('orders') IS NOT NULL")
    assert any_shop.ask("SELECT count(*) FROM pg_trigger WHERE tgrelid = 'orders'::regclass AND NOT tgisinternal") == 0


def test_a_drop_goes_no_further_than_it_was_asked_to(shop: Shop) -> None:
    shop.client.create_stream_table("big", "SELECT * FROM totals WHERE total > 100")
    shop.ask("SELECT pgtrickle.request_drop('totals')")
    (refused,) = shop.serve()
    assert refused.error is not None
    assert "public.big reads it" in refused.error
    shop.ask("SELECT pgtrickle.request_drop('totals', and_readers => true)")
    (served,) = shop.serve()
    assert served.answer == {"dropped": ["public.big", "public.totals"]}


def test_a_drop_that_was_begun_twice_spares_the_next_table_of_that_name(shop: Shop) -> None:
    shop.ask("SELECT pgtrickle.request_drop('totals')")
    # As whoever carried it out and died before the answer leaves it, and somebody declares it anew.
    shop.client.drop_stream_table("totals")
    shop.client.create_stream_table("totals", TOTALS)
    (served,) = shop.serve()
    assert served.answer == {"dropped": []}
    assert shop.is_right()


def test_who_may_not_alter_may_not_ask_for_a_drop(shop: Shop, stranger: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="may not ask for drops"):
        stranger.execute("SELECT pgtrickle.request_drop('totals')")
    assert shop.is_right()


def test_the_explanation_is_that_of_the_declaration(shop: Shop) -> None:
    def explained() -> str:
        # What refreshes took is not the declaration's.
        return str(replace(shop.client.explain_st("totals"), ways=()))

    assert shop.ask("SELECT pgtrickle.explain_st('totals', true)") == explained()
    shop.client.alter_stream_table("totals", query=f"{TOTALS} HAVING sum(amount) > 100")
    assert shop.ask("SELECT pgtrickle.explain_st('totals', true)") == explained()


def test_the_explanation_is_short_unless_the_whole_is_asked_for(any_shop: Shop) -> None:
    told = any_shop.ask("SELECT pgtrickle.explain_st('totals')")
    assert told == any_shop.client.explain_st("totals").short
    assert told.startswith("differentiable:")
    assert "the changes of public.orders" in told
    assert len(told.splitlines()) < 8
    any_shop.client.alter_stream_table("totals", query=TOTALS.replace("sum(", "max("))
    assert any_shop.ask("SELECT pgtrickle.explain_st('totals')") == any_shop.client.explain_st("totals").short != told


def test_a_table_of_an_older_version_has_its_whole_explanation(shop: Shop) -> None:
    shop.psql.execute("UPDATE pgtrickle.pgt_stream_tables SET summary = NULL")
    assert shop.ask("SELECT pgtrickle.explain_st('totals')") == shop.ask("SELECT pgtrickle.explain_st('totals', true)")


def test_the_explanation_of_parts_follows(shop: Shop) -> None:
    shop.client.create_stream_table("ranks", f"SELECT t.*, rank() OVER (ORDER BY t.total) FROM ({TOTALS}) t")
    assert "__part_" in shop.ask("SELECT pgtrickle.explain_st('ranks')")
    told = shop.ask("SELECT pgtrickle.explain_st('ranks', true)")
    whole = shop.client.explain_st("ranks")
    ((name, _, part),) = whole.parts
    assert told.startswith(str(replace(whole, parts=(), ways=())))
    assert f"kept by itself as {name}:" in told
    assert told.endswith("\n".join(f"  {line}".rstrip() for line in str(part).splitlines()))


def test_who_is_killed_in_the_middle_leaves_the_request_to_the_next(shop: Shop) -> None:
    number = shop.ask("SELECT pgtrickle.request_refresh('totals')")
    shop.psql.execute("UPDATE orders SET amount = 1000 WHERE id = 1")
    with psycopg.connect(shop.dsn) as blocking:
        blocking.execute("LOCK TABLE totals IN SHARE MODE")
        dying = subprocess.Popen([sys.executable, "-c", _SERVER, shop.dsn])
        while shop.ask("SELECT status FROM pgtrickle.wait_for_request(%s, 0.1)", number) != "RUNNING":
            assert dying.poll() is None
        dying.kill()
        dying.wait(30)
    # His session in the database may be at work for a moment yet, and the table is his until it ends.
    while (answered := shop.request(number))["status"] in ("PENDING", "RUNNING"):
        shop.serve()
    assert (answered["status"], answered["error"]) == ("DONE", None)
    assert shop.is_right()


#: Who serves as a process of its own.
_SERVER = """
import sys
from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.requests import serve

dsn = sys.argv[1]
with PgTrickle(dsn, executor=lambda: PostgresExecutor(Database(dsn))) as client:
    list(serve(client))
"""


@pytest.mark.parametrize(
    "call",
    [
        "gate('totals')",
        "ungate('totals')",
        "resume('totals')",
        "request_refresh('totals')",
        "request_alter('totals', '{\"tier\": \"cold\"}')",
        "request_declare('t', 'SELECT 1 AS a')",
    ],
)
def test_who_may_not_alter_a_stream_table_may_not_ask(shop: Shop, stranger: psycopg.Connection[Any], call: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
        stranger.execute("SELECT pgtrickle." + call)
    assert "may not" in str(refused.value)
    assert "GRANT app TO" in str(refused.value.diag.message_hint)
    assert shop.ask("SELECT count(*) FROM pgtrickle.pgt_requests") == 0


def test_names_that_mean_nothing_are_errors_at_once(any_shop: Shop) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable):
        any_shop.psql.execute("SELECT pgtrickle.request_refresh('nowhere')")
    with pytest.raises(psycopg.errors.NoDataFound):
        any_shop.psql.execute("SELECT pgtrickle.wait_for_request(4711)")


def test_waiting_ends_with_the_time(any_shop: Shop) -> None:
    number = any_shop.ask("SELECT pgtrickle.request_refresh('totals')")
    assert any_shop.ask("SELECT status FROM pgtrickle.wait_for_request(%s, 0)", number) == "PENDING"


def test_no_function_has_rights_of_its_own(any_shop: Shop) -> None:
    # But for the one that counts what the log holds: whoever reads the status may not replicate.
    named = "SELECT string_agg(proname, ',') FROM pg_proc WHERE pronamespace = 'pgtrickle'::regnamespace AND prosecdef"
    assert any_shop.ask(named) == "pgt_wal_pending"


def test_what_the_page_shows_runs(shop: Shop) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "requests.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"<!-- runs as a psql user -->\n```sql\n(.*?)```", page, re.DOTALL)
    shop.psql.execute(block)
    *others, dropped = shop.serve()
    assert [served.error for served in others] == [None, None, None, None]
    assert dropped.answer == {"dropped": ["public.big", "public.totals"]}


def test_an_alteration_is_carried_out_and_answered(any_shop: Shop) -> None:
    number = any_shop.ask(
        "SELECT pgtrickle.request_alter('totals', %s)", json.dumps({"schedule": "10m", "tier": "warm"})
    )
    assert any_shop.ask("SELECT schedule FROM pgtrickle.pgt_stream_tables") == "5m"
    any_shop.serve()
    answered = any_shop.request(number)
    assert (answered["status"], answered["error"]) == ("DONE", None)
    assert answered["answer"]["altered"] == ["schedule", "tier"]
    (row,) = any_shop.psql.execute("SELECT schedule, tier FROM pgtrickle.pgt_stream_tables").fetchall()
    assert row == ("10m", "warm")


def test_an_altered_query_has_the_askers_names(any_shop: Shop) -> None:
    any_shop.psql.execute("CREATE SCHEMA other; CREATE TABLE other.orders (id int, customer_id int, amount int)")
    any_shop.psql.execute("INSERT INTO other.orders VALUES (1, 7, 70); SET search_path = other, public")
    number = any_shop.ask("SELECT pgtrickle.request_alter('public.totals', %s)", json.dumps({"query": TOTALS}))
    any_shop.serve()
    assert any_shop.request(number)["error"] is None
    assert any_shop.psql.execute("SELECT customer_id, total FROM public.totals").fetchall() == [(7, 70)]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"shedule": "10m"}, "no option named 'shedule'"),
        ({"name": "sums"}, "no option named 'name'"),
        ({"schedule": "often"}, "often"),
        ({"status": "PAUSED"}, "status can't be 'PAUSED'"),
        ({"query": "SELECT * FROM nowhere"}, "nowhere"),
    ],
)
def test_what_can_not_be_altered_is_answered_with_the_reason(
    shop: Shop, changes: dict[str, Any], sentence: str
) -> None:
    number = shop.ask("SELECT pgtrickle.request_alter('totals', %s)", json.dumps(changes))
    shop.serve()
    assert shop.request(number)["status"] == "FAILED"
    assert sentence in shop.request(number)["error"]
    assert shop.is_right()


def test_an_alteration_means_the_table_that_was_there(shop: Shop) -> None:
    number = shop.ask("SELECT pgtrickle.request_alter('totals', '{\"schedule\": \"10m\"}')")
    shop.client.drop_stream_table("totals")
    shop.client.create_stream_table("totals", TOTALS, schedule="5m")
    shop.serve()
    assert "is gone" in shop.request(number)["error"]
    assert shop.ask("SELECT schedule FROM pgtrickle.pgt_stream_tables") == "5m"


def test_what_a_file_declares_is_changed_there_but_for_its_status(shop: Shop) -> None:
    shop.psql.execute(
        "INSERT INTO pgtrickle.pgt_owners SELECT pgt_id, '', '/dags/shop.py', 'shop' FROM pgtrickle.pgt_stream_tables"
    )
    refused = shop.ask("SELECT pgtrickle.request_alter('totals', '{\"schedule\": \"10m\"}')")
    paused = shop.ask("SELECT pgtrickle.request_alter('totals', '{\"status\": \"SUSPENDED\"}')")
    shop.serve()
    assert "declared by shop in /dags/shop.py" in shop.request(refused)["error"]
    assert shop.request(paused)["answer"]["status"] == "SUSPENDED"


def test_resuming_in_sql_is_what_altering_the_status_is(any_shop: Shop) -> None:
    halt = "UPDATE pgtrickle.pgt_stream_tables SET status = 'ERROR', consecutive_errors = 3, last_error = '7 / 0'"
    state = "SELECT status, consecutive_errors, last_error, needs_reinit FROM pgtrickle.pgt_stream_tables"
    with psycopg.connect(any_shop.dsn, autocommit=True) as listening:
        listening.execute("LISTEN pg_trickle_alert")
        left, told = [], []
        for resume in (
            lambda: any_shop.client.alter_stream_table("totals", status="ACTIVE"),
            lambda: any_shop.psql.execute("SELECT pgtrickle.resume('totals')"),
        ):
            any_shop.psql.execute(halt)
            resume()
            left.append(any_shop.psql.execute(state).fetchall())
            told.append([json.loads(n.payload) for n in listening.notifies(timeout=5, stop_after=1)])
    assert left[0] == left[1] == [("ACTIVE", 0, None, False)]
    assert told[0] == told[1] == [{"event": "resumed", "stream_table": "public.totals", "was": "ERROR"}]
    any_shop.psql.execute("UPDATE orders SET amount = 1000 WHERE id = 1")
    number = any_shop.ask("SELECT pgtrickle.request_refresh('totals')")
    any_shop.serve()
    assert any_shop.request(number)["answer"]["action"] == "DIFFERENTIAL"
    assert any_shop.is_right()


@pytest.mark.parametrize("changes", ["{}", "[]", "7", '{"query": 7}', '{"query": null}'])
def test_changes_that_say_nothing_are_errors_at_once(shop: Shop, changes: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        shop.ask("SELECT pgtrickle.request_alter('totals', %s)", changes)
