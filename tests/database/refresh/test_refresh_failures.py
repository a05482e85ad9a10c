"""Failures: tried again, counted, suspended, stopped; and what is announced of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.catalog import alerts
from airflow_provider_pgtrickle.engine.errors import (
    PermissionFault,
    RefreshError,
    SyntaxFault,
    TransientFault,
    UnknownStreamTable,
    ValueFault,
)
from airflow_provider_pgtrickle.engine.refresh import history
from airflow_provider_pgtrickle.engine.refresh.executor import NoExecutor
from airflow_provider_pgtrickle.engine.settings import Settings
from tests.database.refresh.handwritten import filtered
from tests.database.refresh.workshop import Workshop


@pytest.fixture
def big(workshop: Workshop) -> Workshop:
    query = filtered(workshop.source("orders"), ("id", "amount"), "amount > 50")
    workshop.stream_table("big", "id int, amount numeric", query, key=["id"])
    workshop.refresh_one("big")
    return workshop


class Ear:
    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self._conn = conn

    def heard(self) -> list[dict[str, Any]]:
        self._conn.execute("SELECT 1")
        return [json.loads(n.payload) for n in self._conn.notifies(timeout=0)]

    def events(self) -> list[str]:
        return [message["event"] for message in self.heard()]


@pytest.fixture
def ear(big: Workshop) -> Iterator[Ear]:
    with psycopg.connect(big.database.dsn, autocommit=True) as conn:
        conn.execute("LISTEN pg_trickle_alert")
        yield Ear(conn)


def failing(workshop: Workshop, error: Exception) -> None:
    workshop.run("DELETE FROM orders WHERE id = (SELECT max(id) FROM orders)")

    def fail() -> None:
        raise error

    workshop.executor.before = fail


def test_a_transient_failure_is_tried_again(big: Workshop, ear: Ear) -> None:
    failing(big, TransientFault("An executor was lost"))
    patient = Settings(retry_attempts=3, retry_base_seconds=0.01)
    assert big.refresh_one("big", settings=patient).rows_deleted == 1
    assert big.record("big").consecutive_errors == 0
    assert ear.events() == ["refresh_completed"]


def test_failures_in_a_row_suspend_the_table_and_say_so(big: Workshop, ear: Ear) -> None:
    for count in (1, 2, 3):
        failing(big, RefreshError("Spark ran out of memory", stream_table="public.big"))
        with pytest.raises(RefreshError):
            big.refresh_one("big")
        assert big.record("big").consecutive_errors == count
    st = big.record("big")
    assert (st.status, st.last_error) == ("SUSPENDED", "public.big: Spark ran out of memory.")
    assert ear.events() == ["refresh_failed"] * 3 + ["auto_suspended"]
    result = big.refresh_one("big")
    assert (result.action, result.fallback_reason) == ("SKIP", "suspended")


def test_a_value_that_cannot_be_computed_costs_a_full(big: Workshop) -> None:
    failing(big, ValueFault("PostgreSQL reports: division by zero"))
    result = big.refresh_one("big")
    assert (result.action, result.fallback_reason) == ("FULL", "data_error: PostgreSQL reports: division by zero")
    assert big.record("big").consecutive_errors == 0


def test_a_success_ends_the_count(big: Workshop) -> None:
    failing(big, RefreshError("Spark ran out of memory"))
    with pytest.raises(RefreshError):
        big.refresh_one("big")
    big.refresh_one("big")
    st = big.record("big")
    assert (st.consecutive_errors, st.last_error) == (0, None)


@pytest.mark.parametrize("error", [SyntaxFault("No column x"), PermissionFault("No right")])
def test_a_permanent_failure_stops_the_table_at_once(big: Workshop, ear: Ear, error: Exception) -> None:
    failing(big, error)
    patient = Settings(retry_attempts=5, retry_base_seconds=0.01)
    with pytest.raises(type(error)):
        big.refresh_one("big", settings=patient)
    assert (big.record("big").status, big.record("big").last_error) == ("ERROR", str(error))
    (told,) = ear.heard()
    assert (told["event"], told["stream_table"], told["permanent"]) == ("refresh_failed", "public.big", True)
    assert [h.status for h in big.history("big")] == ["FAILED", "COMPLETED"]
    assert big.history("big")[0].error_message == str(error)
    # A forced refresh is the way back.
    assert big.refresh_one("big", force_full=True).rows_deleted == 1
    assert big.record("big").status == "ACTIVE"
    assert ear.events() == ["resumed", "refresh_completed"]


def test_completion_is_announced_with_its_figures(big: Workshop, ear: Ear) -> None:
    big.run("DELETE FROM orders WHERE id = 100")
    big.refresh_one("big", run_token="r")
    (told,) = ear.heard()
    assert told["event"] == "refresh_completed"
    assert (told["action"], told["rows_deleted"], told["run_token"]) == ("DIFFERENTIAL", 1, "r")
    big.refresh_one("big")
    assert ear.heard() == []


def test_a_growing_buffer_is_announced(big: Workshop, ear: Ear) -> None:
    big.run("UPDATE orders SET amount = amount + 1")
    big.refresh_one("big", settings=Settings(change_buffer_warning_rows=99, retry_attempts=1))
    (told, _) = ear.heard()
    assert (told["event"], told["source"], told["pending_rows"]) == ("buffer_growth_warning", "public.orders", 100)


def test_a_failed_unit_is_announced_and_only_the_culprit_charged(big: Workshop, ear: Ear) -> None:
    query = filtered(big.source("orders"), ("id", "amount"), "amount > 90")
    big.stream_table("bigger", "id int, amount numeric", query, key=["id"])
    failing(big, RefreshError("Spark ran out of memory", stream_table="public.bigger"))
    with pytest.raises(RefreshError):
        big.refresh("big", "bigger")
    assert (big.record("big").consecutive_errors, big.record("bigger").consecutive_errors) == (0, 1)
    assert "diamond_partial_failure" in ear.events()


def test_a_refresh_that_was_given_no_executor_was_never_begun(big: Workshop, ear: Ear) -> None:
    query = filtered(big.source("orders"), ("id", "amount"), "amount > 90")
    big.stream_table("bigger", "id int, amount numeric", query, key=["id"])
    failing(big, NoExecutor("Something has to be computed"))
    with pytest.raises(NoExecutor):
        big.refresh("big", "bigger")
    assert ear.events() == []
    assert [h.status for h in big.history("big")] == ["COMPLETED"]
    assert big.one("SELECT count(*) FROM pgtrickle.pgt_stream_tables WHERE lease_token IS NOT NULL") == 0


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("data_timestamp = now() - interval '3 minutes'", ["public.big"]),
        ("data_timestamp = now() - interval '90 seconds'", []),
        ("data_timestamp = now() - interval '3 minutes', tier = 'warm'", []),
        ("data_timestamp = now() - interval '5 minutes', tier = 'warm'", ["public.big"]),
        ("data_timestamp = now() - interval '3 minutes', tier = 'cold'", []),
        ("data_timestamp = now() - interval '3 minutes', is_gated = true", []),
        ("data_timestamp = now() - interval '3 minutes', status = 'SUSPENDED'", []),
    ],
)
def test_a_table_far_behind_its_schedule_is_announced(big: Workshop, ear: Ear, columns: str, told: list[str]) -> None:
    big.run(f"UPDATE pgtrickle.pgt_stream_tables SET schedule = '1m', {columns}")
    with big.database.transaction() as conn:
        assert alerts.tell_of_stale(conn, ["public.big", "public.another"]) == told
    assert [(m["event"], m["stream_table"]) for m in ear.heard()] == [("stale_data", name) for name in told]


def test_one_unavailable_member_holds_back_its_unit(big: Workshop) -> None:
    query = filtered(big.source("orders"), ("id", "amount"), "amount > 90")
    big.stream_table("bigger", "id int, amount numeric", query, key=["id"], is_gated=True, gated_reason="load")
    results = big.refresh("big", "bigger")
    told = {name: (r.action, r.fallback_reason, r.held_by) for name, r in results.items()}
    assert told == {
        "big": ("SKIP", "gated: public.bigger: load", "public.bigger"),
        "bigger": ("SKIP", "gated: load", None),
    }
    assert [big.history(name)[0].fallback_reason for name in told] == [reason for _, reason, _ in told.values()]


def test_each_halted_member_is_told_with_its_own_status(big: Workshop) -> None:
    query = filtered(big.source("orders"), ("id", "amount"), "amount > 90")
    for name, status in (("bigger", "ERROR"), ("biggest", "SUSPENDED")):
        big.stream_table(name, "id int, amount numeric", query, key=["id"], status=status)
    results = big.refresh("big", "bigger", "biggest")
    assert {name: (r.fallback_reason, r.held_by) for name, r in results.items()} == {
        "big": ("error: public.bigger", "public.bigger"),
        "bigger": ("error", None),
        "biggest": ("suspended", None),
    }
    assert {r.action for r in big.refresh("big", "bigger", "biggest", force_full=True).values()} == {"FULL"}


def test_an_unknown_name_is_the_callers_mistake(big: Workshop) -> None:
    with pytest.raises(UnknownStreamTable, match=r"public\.nothing"):
        big.refresh("nothing")


def test_no_credential_reaches_the_history(big: Workshop) -> None:
    failing(big, RuntimeError("cannot reach postgresql://bob:s3cret@db/shop"))
    with pytest.raises(RuntimeError):
        big.refresh_one("big")
    assert "s3cret" not in (big.history("big")[0].error_message or "")
    assert "s3cret" not in (big.record("big").last_error or "")


def test_totals_survive_the_history_that_they_were_counted_in(big: Workshop) -> None:
    statement = (
        "SELECT total_refreshes, successful_refreshes, failed_refreshes, skipped_refreshes, total_rows_inserted,"
        " total_rows_updated, total_rows_deleted, round(avg_duration_ms::numeric, 3),"
        " round(max_duration_ms::numeric, 3) FROM pgtrickle.pg_stat_stream_tables"
    )
    big.refresh_one("big")
    for _ in range(3):
        big.run("UPDATE orders SET amount = amount + 1000 WHERE id < 40")
        big.run("DELETE FROM orders WHERE id = (SELECT max(id) FROM orders)")
        big.refresh_one("big")
    failing(big, RuntimeError("no"))
    with pytest.raises(RuntimeError):
        big.refresh_one("big")
    before = big.rows(statement)
    assert before[0][:4] == (6, 5, 1, 0)
    for most in (4, 1, 0):
        big.run(
            "UPDATE pgtrickle.pgt_refresh_history SET start_time = now() - interval '31 days' WHERE refresh_id <="
            f" (SELECT max(refresh_id) - {most} FROM pgtrickle.pgt_refresh_history)"
        )
        assert history.prune(big.conn, 30) > 0 or most == 0
        assert big.rows(statement) == before
    assert len(big.history("big")) == 1


def test_old_history_is_forgotten_but_never_the_last(big: Workshop) -> None:
    big.refresh_one("big")
    big.run("UPDATE pgtrickle.pgt_refresh_history SET start_time = now() - interval '31 days'")
    assert history.prune(big.conn, 30) == 1
    assert [h.action for h in big.history("big")] == ["NO_DATA"]
