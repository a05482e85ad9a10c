"""`plan`: what is declared is there afterwards, and what has nothing to do never reaches Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph
from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.operators import StreamTablePlanOperator
from tests.answers import only


def tables(**options: Any) -> list[StreamTable]:
    return [
        StreamTable("totals", "SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id", **options),
        StreamTable("big", "SELECT customer_id, total FROM totals WHERE total > 400", schedule="1h"),
    ]


def plan(declared: list[StreamTable]) -> StreamTablePlanOperator:
    (dag,) = StreamTableGraph("g", declared, "shop_pg").dags()
    operator = dag.get_task("plan")
    assert isinstance(operator, StreamTablePlanOperator)
    return operator


@pytest.fixture
def refresh(dsn: str) -> Callable[..., None]:
    """Refresh as a task does, computed by PostgreSQL itself."""

    def run(*names: str) -> None:
        with PgTrickle(dsn) as client:
            database = client.database
        with PgTrickle(dsn, executor=lambda: PostgresExecutor(database)) as client:
            client.refresh(list(names))

    return run


def test_the_first_plan_installs_the_catalog_and_declares_everything(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any]
) -> None:
    run = execute(plan(tables()))
    assert run.state == "success"
    assert run.value["units"] == ["totals", "big"]
    declared = shop.execute("SELECT pgt_name, is_populated FROM pgtrickle.pgt_stream_tables ORDER BY 1").fetchall()
    assert declared == [("big", False), ("totals", False)]


def test_what_has_no_change_is_skipped_and_brought_to_this_instant(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], refresh: Callable[..., None]
) -> None:
    execute(plan(tables()))
    refresh("totals")
    refresh("big")
    instant = "SELECT min(data_timestamp) FROM pgtrickle.pgt_stream_tables"
    (before,) = only(shop.execute(instant))

    run = execute(plan(tables()))

    assert run.skipped == ["big", "totals"]
    assert run.value["skipped"] == {"no change": 2}
    assert only(shop.execute(instant))[0] > before


def test_a_change_upstream_lets_everything_below_run(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], refresh: Callable[..., None]
) -> None:
    execute(plan(tables()))
    refresh("totals")
    refresh("big")
    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id = 1")
    run = execute(plan(tables()))
    assert (run.value["units"], run.skipped) == (["totals", "big"], [])


def test_a_change_that_only_a_part_reads_lets_its_owner_run(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], refresh: Callable[..., None]
) -> None:
    ranks = "SELECT customer_id, rank() OVER (ORDER BY sum(amount)) AS place FROM orders GROUP BY customer_id"
    declared = [StreamTable("ranks", ranks, schedule="1h")]
    execute(plan(declared))
    refresh("ranks")
    assert shop.execute("SELECT count(*) FROM pgtrickle.pgt_stream_tables WHERE is_hidden").fetchone() == (1,)
    assert execute(plan(declared)).skipped == ["ranks"]
    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id = 1")
    assert execute(plan(declared)).value["units"] == ["ranks"]
    refresh("ranks")
    assert execute(plan(declared)).skipped == ["ranks"]


def test_on_schedule_a_table_waits_until_it_is_due(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], refresh: Callable[..., None]
) -> None:
    declared = tables(schedule="1w")
    execute(plan(declared))
    refresh("totals")
    refresh("big")
    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id = 1")
    assert execute(plan(declared), run_type="scheduled").value["skipped"] == {"not due": 2}
    assert execute(plan(declared), run_type="manual").value["units"] == ["totals", "big"]


@pytest.mark.parametrize(
    ("hold", "reason"),
    [
        ("is_gated = true, gated_reason = 'nightly load'", "held"),
        ("tier = 'frozen'", "held"),
    ],
)
def test_a_table_that_is_held_is_skipped(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], hold: str, reason: str
) -> None:
    declared = tables(tier="frozen") if "tier" in hold else tables()
    execute(plan(declared))
    shop.execute(f"UPDATE pgtrickle.pgt_stream_tables SET {hold} WHERE pgt_name = 'totals'")
    run = execute(plan(declared))
    assert run.skipped == ["totals"]
    assert run.value["skipped"] == {reason: 1}


def test_a_halted_table_is_warned_of_and_given_to_its_task_which_fails(
    shop: psycopg.Connection,
    shop_connection: str,
    execute: Callable[..., Any],
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    declared = tables()
    execute(plan(declared))
    shop.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET status = 'SUSPENDED', last_error = 'no such column' "
        "WHERE pgt_name = 'totals'"
    )
    run = execute(plan(declared))
    assert "totals" in run.value["units"]
    assert (
        "public.totals is in status SUSPENDED: no such column. Mend the cause" in caplog.text + capsys.readouterr().out
    )


def test_a_halted_table_is_only_warned_of_where_the_setting_says_so(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = tables()
    execute(plan(declared))
    shop.execute("UPDATE pgtrickle.pgt_stream_tables SET status = 'SUSPENDED' WHERE pgt_name = 'totals'")
    monkeypatch.setenv("PGTRICKLE_HALTED", "warn")
    run = execute(plan(declared))
    assert run.skipped == ["totals"]
    assert run.value["skipped"] == {"halted": 1}


def test_a_changed_declaration_is_carried_out(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any]
) -> None:
    execute(plan(tables()))
    execute(plan(tables(schedule="10m")))
    row = shop.execute("SELECT schedule FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'totals'").fetchone()
    assert row == ("10m",)


def test_an_unchanged_declaration_is_not_declared_again(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any]
) -> None:
    versions = "SELECT pgt_name, updated_at FROM pgtrickle.pgt_stream_tables ORDER BY 1"
    execute(plan(tables()))
    before = shop.execute(versions).fetchall()
    execute(plan(tables()))
    assert shop.execute(versions).fetchall() == before


def test_a_view_altered_under_a_table_is_noticed_without_any_row_changing(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], refresh: Callable[..., None]
) -> None:
    shop.execute("CREATE VIEW northern AS SELECT * FROM customers WHERE region = 'north'")
    declared = [StreamTable("north", "SELECT id, name FROM northern")]
    execute(plan(declared))
    refresh("north")
    assert execute(plan(declared)).skipped == ["north"]
    shop.execute("CREATE OR REPLACE VIEW northern AS SELECT * FROM customers WHERE region = 'south'")
    assert execute(plan(declared)).value["units"] == ["north"]


def test_an_edge_hidden_in_a_view_is_told(
    shop: psycopg.Connection,
    shop_connection: str,
    execute: Callable[..., Any],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    execute(plan(tables()[:1]))
    shop.execute("CREATE VIEW totals_view AS SELECT customer_id, total FROM totals")
    declared = [*tables()[:1], StreamTable("big", "SELECT customer_id FROM totals_view WHERE total > 400")]

    def told(*tables: StreamTable) -> bool:
        for dag in StreamTableGraph("g", tables, "shop_pg").dags():
            execute(dag.get_task("plan"))
        logged = caplog.text + capsys.readouterr().out
        caplog.clear()
        return "depends_on=['public.totals']" in logged

    # By their texts they are two DAGs; a third that reads both makes them one.
    assert told(*declared)
    assert told(*declared, StreamTable("both", "SELECT total FROM totals JOIN big USING (customer_id)"))
    assert not told(*tables())
    assert not told(declared[0], replace(declared[1], depends_on=("totals",)))


def test_a_query_that_postgres_refuses_fails_at_once_with_its_place(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any]
) -> None:
    with pytest.raises(AirflowFailException, match=r"line 1, column"):
        execute(plan([StreamTable("bad", "SELECT nothing FROM orders")]))


def test_a_missing_connection_says_how_to_add_it(execute: Callable[..., Any]) -> None:
    with pytest.raises(AirflowFailException, match="airflow connections add shop_pg"):
        execute(plan(tables()))


def test_a_table_that_fell_behind_is_announced_by_the_plan(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], refresh: Callable[..., None]
) -> None:
    declared = tables()
    execute(plan(declared))
    refresh("totals")
    refresh("big")
    shop.execute("UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = now() - interval '3 hours'")
    shop.execute("LISTEN pg_trickle_alert")
    execute(plan(declared))
    told = [json.loads(notice.payload) for notice in shop.notifies(timeout=0)]
    assert [(t["event"], t["stream_table"]) for t in told if t["event"] == "stale_data"] == [
        ("stale_data", "public.big"),
        # It has the schedule of what reads it.
        ("stale_data", "public.totals"),
    ]
