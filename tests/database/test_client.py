"""`PgTrickle` as a user's script calls it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import ConnectionFault, QueryError, UnknownStreamTable, UsageError
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor

TOTALS = "SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id"


@pytest.fixture
def conn(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as session:
        yield session


@pytest.fixture
def pt(dsn: str, conn: psycopg.Connection[Any]) -> Iterator[PgTrickle]:
    database = Database(dsn)
    with PgTrickle(dsn, executor=lambda: PostgresExecutor(database)) as client:
        client.install()
        conn.execute(
            "CREATE TABLE orders (id int PRIMARY KEY, customer_id int, amount int);"
            " INSERT INTO orders SELECT i, i % 5, i FROM generate_series(1, 100) i"
        )
        yield client


@pytest.fixture
def chain(pt: PgTrickle) -> None:
    pt.create_stream_table("totals", TOTALS, schedule="5m")
    pt.create_stream_table("big", "SELECT customer_id, total FROM totals WHERE total > 1000")


def test_what_a_client_is_asked_for_runs_in_one_session(pt: PgTrickle, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    connect = Database.connect

    def counted(self: Database, *values: Any, **named: Any) -> Any:
        opened.append(named.get("application_name", ""))
        return connect(self, *values, **named)

    monkeypatch.setattr(Database, "connect", counted)
    assert pt.validate_query(TOTALS).differentiable
    pt.create_stream_table("totals", TOTALS, initialize=False)
    pt.alter_stream_table("totals", schedule="5m")
    assert [row["name"] for row in pt.history("totals")] == []
    pt.drop_stream_table("totals")
    assert opened == ["pgtrickle refresh"]


def test_users_queries_are_planned_as_anywhere_else(pt: PgTrickle) -> None:
    for _ in range(2):
        with pt._transaction() as conn:
            assert conn.execute("SHOW plan_cache_mode").fetchone() == ("auto",)
    with pt.database.session() as session:
        assert session.execute("SHOW plan_cache_mode").fetchone() == ("force_generic_plan",)


def test_installing_twice_does_nothing_the_second_time(pt: PgTrickle) -> None:
    assert pt.install() == []


@pytest.mark.usefixtures("chain")
def test_a_refresh_brings_what_it_reads_up_to_date_first(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    conn.execute("INSERT INTO orders VALUES (101, 77, 5000)")
    result = pt.refresh_stream_table("big")
    assert (result.name, result.rows_inserted) == ("public.big", 1)
    assert conn.execute("SELECT total FROM big WHERE customer_id = 77").fetchone() == (5000,)


@pytest.mark.usefixtures("chain")
def test_without_changes_nothing_is_computed(dsn: str) -> None:
    def never() -> Any:
        raise AssertionError("computed")

    with PgTrickle(dsn, executor=never) as client:
        assert client.refresh_stream_table("big").action == "NO_DATA"


@pytest.mark.usefixtures("chain")
def test_a_unit_is_one_commit_whatever_the_order_of_its_names(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    conn.execute("INSERT INTO orders VALUES (101, 77, 5000)")
    results = pt.refresh(["big", "public.totals"])
    assert list(results) == ["big", "public.totals"]
    assert len({result.data_timestamp for result in results.values()}) == 1
    assert conn.execute("SELECT count(DISTINCT xmin::text) FROM big WHERE customer_id = 77").fetchone() == (1,)
    written = conn.execute(
        "SELECT count(DISTINCT x) FROM (SELECT xmin::text AS x FROM big WHERE customer_id = 77"
        " UNION ALL SELECT xmin::text FROM totals WHERE customer_id = 77) w"
    ).fetchone()
    assert written == (1,)


@pytest.mark.usefixtures("chain")
def test_full_is_asked_for_by_name_only(pt: PgTrickle) -> None:
    assert pt.refresh_stream_table("totals", force_full=True).action == "FULL"
    assert [row["action"] for row in pt.history("totals", 1)] == ["FULL"]


@pytest.mark.usefixtures("chain")
def test_a_gated_table_is_not_refreshed(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.gate("totals", "loading")
    conn.execute("INSERT INTO orders VALUES (101, 77, 5000)")
    assert pt.refresh_stream_table("totals").action == "SKIP"
    pt.ungate("totals")
    assert pt.refresh_stream_table("totals").rows_inserted == 1


@pytest.mark.usefixtures("chain")
def test_what_there_is_can_be_looked_at(pt: PgTrickle) -> None:
    assert [row["pgt_name"] for row in pt.status()] == ["big", "totals"]
    assert {row["action"] for row in pt.history("totals")} == {"FULL"}
    assert any("orders" in node["tree_line"] for node in pt.tree())
    assert [row["source_table"] for row in pt.sources("totals")] != []
    assert {row["stream_table"] for row in pt.buffers()} != set()
    assert {finding.check: finding.ok for finding in pt.health()}["catalog"]


@pytest.mark.usefixtures("chain")
def test_explain_is_readable(pt: PgTrickle) -> None:
    assert "orders" in str(pt.explain_st("totals"))
    assert "orders" in str(pt.validate_query("SELECT id FROM orders"))


def test_validate_creates_nothing(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    pt.validate_query(TOTALS)
    with pytest.raises(QueryError, match="line 1"):
        pt.validate_query("SELECT nothing FROM orders")
    assert pt.status() == []
    assert conn.execute("SELECT count(*) FROM pg_class WHERE relname LIKE '\\_\\_pgt%'").fetchone() == (0,)


@pytest.mark.usefixtures("chain")
def test_consumed_changes_can_be_cleaned_up(pt: PgTrickle, conn: psycopg.Connection[Any]) -> None:
    conn.execute("INSERT INTO orders VALUES (101, 77, 5000)")
    pt.refresh_stream_table("big")
    pt.cleanup()
    assert all(row["pending_rows"] == 0 for row in pt.buffers())


@pytest.mark.parametrize(
    "call",
    [
        lambda pt: pt.refresh_stream_table("nothing"),
        lambda pt: pt.refresh(["nothing"]),
        lambda pt: pt.explain_st("nothing"),
        lambda pt: pt.history("nothing"),
        lambda pt: pt.sources("nothing"),
        lambda pt: pt.gate("nothing"),
        lambda pt: pt.alter_stream_table("nothing", schedule="5m"),
    ],
)
def test_a_stream_table_that_is_not_there_is_named(pt: PgTrickle, call: Any) -> None:
    with pytest.raises(UnknownStreamTable, match=r"public\.nothing"):
        call(pt)


def test_one_name_is_no_list_of_names(pt: PgTrickle) -> None:
    with pytest.raises(UsageError, match="list of names"):
        pt.refresh("totals")


def test_a_wrong_setting_or_password_is_said_without_the_password(dsn: str) -> None:
    with pytest.raises(UsageError, match="no setting named 'colour'"):
        PgTrickle(dsn, colour="red")
    with PgTrickle(dsn.replace(":app-secret@", ":s3cret@")) as client, pytest.raises(ConnectionFault) as refused:
        client.status()
    assert "s3cret" not in str(refused.value)


def test_cleanup_forgets_history_that_is_too_old_but_never_the_last(
    pt: PgTrickle, conn: psycopg.Connection[Any]
) -> None:
    pt.create_stream_table("totals", TOTALS)
    for _ in range(3):
        pt.refresh_stream_table("totals")
    conn.execute("UPDATE pgtrickle.pgt_refresh_history SET start_time = start_time - interval '31 days'")
    pt.cleanup()
    assert [row["action"] for row in pt.history("totals")] == ["NO_DATA"]
