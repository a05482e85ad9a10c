"""`plan`: what is declared is there afterwards, and what has nothing to do never reaches Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph, StreamTableGroup
from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.hooks.pgtrickle import PgTrickleHook
from airflow_provider_pgtrickle.operators import StreamTableCreateOperator, StreamTablePlanOperator
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
) -> None:
    declared = tables()
    execute(plan(declared))
    shop.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET status = 'SUSPENDED', last_error = 'no such column' "
        "WHERE pgt_name = 'totals'"
    )
    run = execute(plan(declared))
    assert "totals" in run.value["units"]
    assert "public.totals is in status SUSPENDED: no such column. Mend the cause" in run.log


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
) -> None:
    execute(plan(tables()[:1]))
    shop.execute("CREATE VIEW totals_view AS SELECT customer_id, total FROM totals")
    declared = [*tables()[:1], StreamTable("big", "SELECT customer_id FROM totals_view WHERE total > 400")]

    def told(*tables: StreamTable) -> bool:
        return "depends_on=['public.totals']" in execute(plan(list(tables))).log

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


def test_a_person_can_select_tables_and_ask_for_a_full_refresh(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], refresh: Callable[..., None]
) -> None:
    execute(plan(tables()))
    refresh("totals")
    refresh("big")
    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id = 1")
    only_one = execute(plan(tables()), params={"tables": "totals"})
    assert (only_one.value["units"], only_one.value["skipped"]) == (["totals"], {"not selected": 1})
    assert execute(plan(tables()), params={"tables": "totals+"}).value["units"] == ["totals", "big"]
    refresh("totals")
    refresh("big")
    assert execute(plan(tables())).skipped == ["big", "totals"]
    assert execute(plan(tables()), params={"full_refresh": True}).value["units"] == ["totals", "big"]
    assert execute(plan(tables()), params={"full_refresh": "true", "tables": "big"}).value["units"] == ["big"]
    with pytest.raises(AirflowFailException, match=r"is called 'total'. Did you mean totals\?"):
        execute(plan(tables()), params={"tables": "total"})


def test_of_two_groups_in_a_dag_only_the_one_that_is_meant_refreshes(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any]
) -> None:
    with DAG("nightly", schedule=None) as dag:
        StreamTableGroup(StreamTableGraph("g", tables(), "shop_pg"))
        other = StreamTable("regions", "SELECT region, count(*) AS n FROM customers GROUP BY region", schedule="1h")
        StreamTableGroup(StreamTableGraph("h", [other], "shop_pg"))
    asked = {"tables": "totals", "full_refresh": True}
    assert execute(dag.get_task("g.plan"), params=asked).value["units"] == ["g.totals"]
    beside = execute(dag.get_task("h.plan"), params=asked)
    assert (beside.value["units"], beside.value["skipped"]) == ([], {"not selected": 1})
    assert "h.regions: not selected" in beside.log
    # Of what is written wrongly there is no other meaning.
    with pytest.raises(AirflowFailException, match="can't be read"):
        execute(dag.get_task("h.plan"), params={"tables": "++"})


def test_in_a_group_everything_is_due_unless_it_says_due_only(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], refresh: Callable[..., None]
) -> None:
    def grouped(**options: Any) -> Any:
        with DAG("nightly", schedule=None) as dag:
            StreamTableGroup(StreamTableGraph("g", tables(schedule="1w"), "shop_pg"), **options)
        return dag.get_task("g.plan")

    execute(grouped())
    refresh("totals")
    refresh("big")
    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id = 1")
    assert execute(grouped(), run_type="scheduled").value["units"] == ["g.totals", "g.big"]
    waits = execute(grouped(due_only=True), run_type="asset_triggered")
    assert (waits.skipped, waits.value["skipped"]) == (["g.big", "g.totals"], {"not due": 2})
    assert execute(grouped(due_only=True), run_type="manual").value["units"] == ["g.totals", "g.big"]


def test_the_log_says_what_a_changed_file_will_do_and_its_task_does_it(
    shop: psycopg.Connection,
    shop_connection: str,
    execute: Callable[..., Any],
    refresh: Callable[..., None],
) -> None:
    assert "public.totals is new: it is created now and filled by its task" in execute(plan(tables())).log
    refresh("totals")
    refresh("big")
    totals, big = tables(schedule="10m")
    changed = replace(totals, query=f"{totals.query}\nHAVING sum(amount) > 500")
    run = execute(plan([changed, big]))
    told = run.log
    assert "public.totals: schedule changes from None to 10m" in told
    assert "public.totals: its query changes; readers see the old content until its task has computed" in told
    assert "+HAVING sum(amount) > 500" in told
    assert "public.totals: filter narrowed: its content follows from what is stored" in told
    assert run.value["units"] == ["totals", "big"]
    # The plan itself computes nothing: that is its task's work.
    assert shop.execute("SELECT count(*) FROM totals").fetchone() == (10,)
    refresh("totals")
    assert shop.execute("SELECT count(*) FROM totals").fetchone() == (5,)
    spelled = execute(plan([replace(changed, query=changed.query.lower()), big]))
    assert "public.totals is written otherwise and means the same" in spelled.log
    assert "written otherwise" not in execute(plan([replace(changed, query=changed.query.lower()), big])).log


def test_two_tables_that_change_together_are_declared_in_one_plan(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], refresh: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch, dsn: str,
) -> None:  # fmt: skip
    execute(plan(tables()))
    refresh("totals")
    refresh("big")
    database = Database(dsn)
    monkeypatch.setattr(
        PgTrickleHook, "get_client", lambda self: PgTrickle(dsn, executor=lambda: PostgresExecutor(database))
    )
    totals, big = tables()
    wider = replace(totals, query=totals.query.replace("AS total", "AS total, count(*) AS orders"))
    reader = replace(big, query="SELECT customer_id, total, orders FROM totals WHERE total > 400")
    assert execute(plan([wider, reader])).value["units"] == ["big"]
    refresh("big")
    assert shop.execute("SELECT DISTINCT orders FROM big").fetchall() == [(10,)]


def bundle(root: Path, name: str = "dags") -> Any:
    return SimpleNamespace(name=name, path=root)


def in_file(file: Path, declared: list[StreamTable], graph: str = "g", **options: Any) -> StreamTablePlanOperator:
    """The plan of a graph that a file declares."""
    file.parent.mkdir(exist_ok=True)
    file.touch()
    made = StreamTableGraph(graph, declared, "shop_pg", **options)
    made.file = str(file)
    operator = made.dags()[0].get_task("plan")
    assert isinstance(operator, StreamTablePlanOperator)
    return operator


def owners_of(shop: psycopg.Connection) -> dict[str, str]:
    return dict(
        shop.execute(
            "SELECT pgt_name, concat_ws(':', bundle, file, graph, 'gone at ' || removed_at)"
            " FROM pgtrickle.pgt_owners JOIN pgtrickle.pgt_stream_tables USING (pgt_id)"
        ).fetchall()
    )


def test_a_second_declarer_is_refused_with_both_places(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], tmp_path: Path
) -> None:
    place = {"bundle_instance": bundle(tmp_path)}
    execute(in_file(tmp_path / "shop.py", tables()), **place)
    assert owners_of(shop) == {"totals": "dags:shop.py:g", "big": "dags:shop.py:g"}
    other = [StreamTable("totals", "SELECT customer_id, max(amount) AS total FROM orders GROUP BY customer_id")]
    both = (
        r"public\.totals: It is declared twice: by g in shop\.py of bundle dags, and by h in b/more\.py of bundle dags"
    )
    with pytest.raises(AirflowFailException, match=both):
        execute(in_file(tmp_path / "b" / "more.py", other, "h"), **place)
    with pytest.raises(AirflowFailException, match="declared twice"):
        execute(in_file(tmp_path / "shop.py", tables()), bundle_instance=bundle(tmp_path, "other"))
    with pytest.raises(AirflowFailException, match="declared twice"):
        execute(StreamTableCreateOperator(task_id="t", name="totals", query=other[0].query, postgres_conn_id="shop_pg",
                                          dag=DAG("by_hand", schedule=None)), **place)  # fmt: skip
    (query,) = only(shop.execute("SELECT original_query FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'totals'"))
    assert "sum" in query
    # The same file, run by hand outside of any bundle, is no second one.
    execute(in_file(tmp_path / "shop.py", tables()))
    assert owners_of(shop) == {"totals": "dags:shop.py:g", "big": "dags:shop.py:g"}


def test_a_declaration_can_be_moved(
    shop: psycopg.Connection,
    shop_connection: str,
    execute: Callable[..., Any],
    tmp_path: Path,
) -> None:
    place = {"bundle_instance": bundle(tmp_path)}
    execute(in_file(tmp_path / "shop.py", tables()), **place)
    # The file is there no more, and its graph stands in another one.
    (tmp_path / "shop.py").unlink()
    moved = execute(in_file(tmp_path / "team" / "shop.py", tables()), **place)
    assert "public.totals is declared by g in team/shop.py of bundle dags from now on" in moved.log
    assert set(owners_of(shop).values()) == {"dags:team/shop.py:g"}
    # Another graph says whose tables it takes over.
    with pytest.raises(AirflowFailException, match=r"moved_from='team/shop.py'"):
        execute(in_file(tmp_path / "new.py", tables(), "h"), **place)
    execute(in_file(tmp_path / "new.py", tables(), "h", moved_from="g"), **place)
    assert set(owners_of(shop).values()) == {"dags:new.py:h"}


@pytest.mark.parametrize("on_removed", ["keep", "gate", "drop"])
def test_a_table_that_no_file_declares_any_more_is_told_and_handled(
    shop: psycopg.Connection,
    shop_connection: str,
    execute: Callable[..., Any],
    tmp_path: Path,
    on_removed: str,
) -> None:
    place = {"bundle_instance": bundle(tmp_path)}
    file = tmp_path / "shop.py"
    execute(in_file(file, tables()), **place)
    for number in range(2):
        told = execute(in_file(file, tables()[:1], on_removed=on_removed), **place).log
        # It is told in each plan for as long as it is there.
        assert ("public.big is declared by no file any more" in told) == (on_removed != "drop" or number == 0)
    there = shop.execute("SELECT is_gated, gated_reason FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'big'")
    expected = {"keep": [(False, None)], "gate": [(True, "no file declares it any more")], "drop": []}
    assert there.fetchall() == expected[on_removed]
    # Declared again, by this file or by another one, it is as before.
    execute(in_file(tmp_path / "other.py", [StreamTable("big", tables()[1].query)], "h"), **place)
    assert owners_of(shop) == {"totals": "dags:shop.py:g", "big": "dags:other.py:h"}
    assert shop.execute("SELECT bool_or(is_gated) FROM pgtrickle.pgt_stream_tables").fetchone() == (False,)


def test_what_is_read_by_others_is_not_dropped_with_its_declaration(
    shop: psycopg.Connection,
    shop_connection: str,
    execute: Callable[..., Any],
    tmp_path: Path,
) -> None:
    place = {"bundle_instance": bundle(tmp_path)}
    execute(in_file(tmp_path / "shop.py", [*tables(), StreamTable("n", "SELECT count(*) AS n FROM orders")]), **place)
    shop.execute("CREATE VIEW report AS SELECT customer_id FROM big")
    rest = [StreamTable("n", "SELECT count(*) AS n FROM orders")]
    told = execute(in_file(tmp_path / "shop.py", rest, on_removed="drop"), **place).log
    assert "public.big is declared by no file any more, and stays" in told
    shop.execute("DROP VIEW report")
    execute(in_file(tmp_path / "shop.py", rest, on_removed="drop"), **place)
    assert set(owners_of(shop)) == {"n"}


def test_a_declared_edge_to_what_is_no_stream_table_is_refused(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any]
) -> None:
    totals, big = tables()
    with pytest.raises(
        AirflowFailException, match=r"big: depends_on names public.total, .* Did you mean public.totals\?"
    ):
        execute(plan([totals, replace(big, depends_on=("total",))]))


def test_a_table_whose_refresh_takes_longer_than_its_schedule_is_told_and_backs_off_if_that_is_wanted(
    shop: psycopg.Connection,
    shop_connection: str,
    execute: Callable[..., Any],
    refresh: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declared = tables(schedule="5m")
    execute(plan(declared))
    refresh("totals")
    refresh("big")
    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id = 1")
    shop.execute("UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = now() - interval '11 minutes'")
    shop.execute("UPDATE pgtrickle.pgt_refresh_history SET duration_ms = 1000000000 WHERE pgt_id = 1")
    run = execute(plan(declared), run_type="scheduled")
    # Whether `big` is due, too, is the hour's: eleven minutes may or may not cross a boundary of its period.
    assert "totals" in run.value["units"]
    assert "totals took 1000000 s, longer than its schedule (5m). Lengthen the schedule" in run.log
    monkeypatch.setenv("PGTRICKLE_AUTO_BACKOFF", "true")
    # Its canonical period is 18 days now.
    boundary = "to_timestamp(floor(extract(epoch FROM now()) / 1572864) * 1572864)"
    shop.execute(f"UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = {boundary}")
    run = execute(plan(declared), run_type="scheduled")
    assert run.value["skipped"]["not due"] >= 1
    assert "totals" not in run.value["units"]
    assert "refreshed 16384 times as rarely (auto_backoff)" in run.log
    shop.execute(f"UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = {boundary} - interval '1 second'")
    assert "totals" in execute(plan(declared), run_type="scheduled").value["units"]
    # What fits again follows its schedule again.
    shop.execute("UPDATE pgtrickle.pgt_refresh_history SET duration_ms = 200000 WHERE pgt_id = 1")
    shop.execute("UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = now() - interval '6 minutes'")
    run = execute(plan(declared), run_type="scheduled")
    assert "totals" in run.value["units"]
    assert "longer than its schedule" not in run.log


def test_a_table_that_nobody_reads_is_left_alone_until_somebody_does(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], refresh: Callable[..., None]
) -> None:
    declared = [StreamTable("totals", tables()[0].query, schedule="5m", tier="auto")]
    execute(plan(declared))
    refresh("totals")
    execute(plan(declared))
    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id = 1")
    shop.execute("UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = now() - interval '1 day'")
    shop.execute("UPDATE pgtrickle.pgt_use SET read_at = now() - interval '2 days'")
    assert execute(plan(declared), run_type="scheduled").value["skipped"] == {"not due": 1}
    shop.execute("SELECT * FROM totals")
    shop.execute("SELECT pg_stat_force_next_flush()")
    assert execute(plan(declared), run_type="scheduled").value["units"] == ["totals"]
