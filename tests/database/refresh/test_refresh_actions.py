"""Every action and every reason, seen from outside: result, history, content."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_pgtrickle.engine.dvm import Reason, Refusal
from airflow_provider_pgtrickle.engine.dvm.pipeline import TopK
from airflow_provider_pgtrickle.engine.errors import NotDifferentiable
from tests.database.refresh.handwritten import HandWritten, filtered, grouped
from tests.database.refresh.workshop import Workshop

BIG = "SELECT id, amount FROM orders WHERE amount > 50"
TOTALS = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
RANDOM = Refusal(Reason.VOLATILE_FUNCTION, "random", "")


@pytest.fixture
def big(any_workshop: Workshop) -> Workshop:
    query = filtered(any_workshop.source("orders"), ("id", "amount"), "amount > 50")
    any_workshop.stream_table("big", "id int, amount numeric", query, key=["id"], text=BIG)
    return any_workshop


@pytest.fixture
def totals(any_workshop: Workshop) -> Workshop:
    query = grouped(any_workshop.source("orders"), "customer", "sum(amount)", "total", ("customer", "amount"))
    any_workshop.stream_table("totals", "customer int, total numeric", query, key=["customer"])
    return any_workshop


def test_auto_takes_full_first(big: Workshop) -> None:
    result = big.refresh_one("big")
    assert (result.action, result.fallback_reason, result.rows_inserted) == ("FULL", "never_populated", 50)
    assert big.differs("big", BIG) == []
    st = big.record("big")
    assert (st.status, st.is_populated, st.data_timestamp) == ("ACTIVE", True, result.data_timestamp)


def test_changes_are_applied_as_changes(big: Workshop) -> None:
    big.refresh_one("big")
    big.run("UPDATE orders SET amount = amount + 1 WHERE id IN (50, 60)")
    big.run("DELETE FROM orders WHERE id IN (61, 1)")
    big.run("INSERT INTO orders VALUES (201, 1, 99, NULL), (202, 1, 9, NULL)")
    result = big.refresh_one("big")
    assert (result.action, result.fallback_reason) == ("DIFFERENTIAL", None)
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (2, 1, 1)
    assert result.source_changes == 6
    assert big.differs("big", BIG) == []


def test_groups_are_replaced(totals: Workshop) -> None:
    totals.refresh_one("totals")
    totals.run("UPDATE orders SET customer = NULL WHERE id = 7")
    totals.run("DELETE FROM orders WHERE customer = 3")
    result = totals.refresh_one("totals")
    assert result.action == "DIFFERENTIAL"
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (1, 1, 1)
    assert totals.differs("totals", TOTALS) == []


def test_nothing_happened_is_no_data_and_asks_for_no_executor(big: Workshop) -> None:
    big.refresh_one("big")
    before, asked = big.record("big"), big.asked_for_executor
    result = big.refresh_one("big")
    assert (result.action, result.fallback_reason, result.status) == ("NO_DATA", None, "COMPLETED")
    assert big.asked_for_executor == asked
    after = big.record("big")
    assert before.data_timestamp is not None
    assert after.data_timestamp is not None
    assert after.data_timestamp > before.data_timestamp
    assert after.frontier != before.frontier


def test_history_tells_what_was_really_done(big: Workshop) -> None:
    big.refresh_one("big", run_token="r1", initiated_by="test")
    big.run("INSERT INTO orders VALUES (201, 1, 99, NULL)")
    big.refresh_one("big")
    last, first = big.history("big")
    assert (first.action, first.status, first.fallback_reason) == ("FULL", "COMPLETED", "never_populated")
    assert (first.run_token, first.initiated_by, first.unit) == ("r1", "test", ("public.big",))
    assert (last.action, last.rows_inserted, last.source_changes, last.rows_read) == ("DIFFERENTIAL", 1, 1, 1)
    assert {"lock", "snapshot", "decide", "compute", "apply"} <= set(last.phases or {})
    assert last.end_time is not None
    assert "DIFFERENTIAL, 1 pending source rows" in (last.plan or "")


def test_too_many_changes_fall_back_to_full_and_not_twice(big: Workshop) -> None:
    big.run("UPDATE pgtrickle.pgt_stream_tables SET differential_max_change_ratio = 0.15")
    big.refresh_one("big")
    big.run("UPDATE orders SET amount = amount + 1 WHERE id <= 20")
    result = big.refresh_one("big")
    assert (result.action, result.fallback_reason) == ("FULL", "change_ratio_exceeded")
    assert big.differs("big", BIG) == []
    big.run("UPDATE orders SET amount = amount + 1 WHERE id <= 10")
    assert big.refresh_one("big").action == "DIFFERENTIAL"


def test_many_changes_of_one_row_are_one_changed_row(big: Workshop) -> None:
    big.run("UPDATE pgtrickle.pgt_stream_tables SET differential_max_change_ratio = 0.15")
    big.refresh_one("big")
    for _ in range(30):
        big.run("UPDATE orders SET amount = amount + 1 WHERE id IN (60, 70)")
    result = big.refresh_one("big")
    assert (result.action, result.source_changes) == ("DIFFERENTIAL", 60)
    assert big.differs("big", BIG) == []
    big.run("UPDATE orders SET id = id + 1000 WHERE id <= 8")
    assert big.refresh_one("big").fallback_reason == "change_ratio_exceeded"


def test_the_ratio_is_the_settings_where_the_table_has_none(big: Workshop) -> None:
    big.run("UPDATE pgtrickle.pgt_stream_tables SET differential_max_change_ratio = NULL")
    big.refresh_one("big")
    big.run("UPDATE orders SET amount = amount + 1 WHERE id <= 20")
    bound = replace(big.settings, differential_max_change_ratio=0.15)
    assert big.refresh_one("big", settings=bound).fallback_reason == "change_ratio_exceeded"


def test_without_a_ratio_strict_mode_keeps_the_usual_one(big: Workshop) -> None:
    big.run(
        "UPDATE pgtrickle.pgt_stream_tables SET differential_max_change_ratio = NULL, refresh_mode = 'DIFFERENTIAL'"
    )
    big.refresh_one("big")
    big.run("UPDATE orders SET amount = amount + 1 WHERE id <= 20")
    assert big.refresh_one("big").fallback_reason == "change_ratio_exceeded"


def test_a_source_never_analyzed_is_analyzed_not_guessed(big: Workshop) -> None:
    big.run("UPDATE pgtrickle.pgt_stream_tables SET differential_max_change_ratio = 0.15")
    big.refresh_one("big")
    assert big.one("SELECT reltuples FROM pg_class WHERE relname = 'orders'") == 100


@pytest.mark.parametrize(("most", "action", "known"), [(0, "DIFFERENTIAL", 3000), (0.15, "FULL", -1)])
def test_a_buffer_with_many_rows_is_analyzed_for_a_difference_only(
    big: Workshop, most: float, action: str, known: int
) -> None:
    big.refresh_one("big")
    big.run("UPDATE pgtrickle.pgt_stream_tables SET differential_max_change_ratio = %s", most)
    big.run("INSERT INTO orders SELECT n, 1, 60, NULL FROM generate_series(1001, 4000) AS n")
    assert big.refresh_one("big").action == action
    buffer = f"changes_{big.source('orders').key}"
    assert big.one("SELECT reltuples FROM pg_class WHERE relname = %s", buffer) == known


def test_truncate_is_noticed(big: Workshop) -> None:
    big.refresh_one("big")
    big.run("TRUNCATE orders")
    big.run("INSERT INTO orders VALUES (1, 1, 77, NULL)")
    result = big.refresh_one("big")
    assert (result.action, result.fallback_reason) == ("FULL", "truncate_detected")
    assert big.differs("big", BIG) == []


def test_a_refused_query_runs_full_with_the_words(big: Workshop) -> None:
    big.refresh_one("big")
    next(iter(big.queries.values())).refusal = RANDOM
    assert big.refresh_one("big").action == "NO_DATA"
    big.run("DELETE FROM orders WHERE id = 99")
    result = big.refresh_one("big")
    assert (result.action, result.fallback_reason) == ("FULL", f"not_differentiable: {RANDOM.message}")
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (0, 0, 1)


def test_differential_mode_refuses_what_it_cannot_do(big: Workshop) -> None:
    big.run("UPDATE pgtrickle.pgt_stream_tables SET refresh_mode = 'DIFFERENTIAL'")
    first = big.refresh_one("big")
    assert (first.action, first.fallback_reason) == ("FULL", "never_populated")
    next(iter(big.queries.values())).refusal = RANDOM
    with pytest.raises(NotDifferentiable, match="random"):
        big.refresh_one("big")
    assert big.record("big").status == "ERROR"


def test_full_mode_runs_full_only_when_something_happened(big: Workshop) -> None:
    big.run("UPDATE pgtrickle.pgt_stream_tables SET refresh_mode = 'FULL'")
    assert big.refresh_one("big").fallback_reason is None
    assert big.refresh_one("big").action == "NO_DATA"
    big.run("DELETE FROM orders WHERE id = 99")
    result = big.refresh_one("big")
    assert (result.action, result.fallback_reason, result.rows_deleted) == ("FULL", None, 1)


def test_full_mode_always_runs_what_depends_on_the_time(big: Workshop) -> None:
    big.run("UPDATE pgtrickle.pgt_stream_tables SET refresh_mode = 'FULL'")
    next(iter(big.queries.values())).steady = False
    big.refresh_one("big")
    assert big.refresh_one("big").action == "FULL"


def test_before_it_is_live_an_immediate_table_is_refreshed_by_differences(big: Workshop) -> None:
    big.refresh_one("big")
    big.run("UPDATE pgtrickle.pgt_stream_tables SET refresh_mode = 'IMMEDIATE'")
    assert big.refresh_one("big").action == "NO_DATA"
    big.run("DELETE FROM orders WHERE id = 99")
    assert big.refresh_one("big").action == "DIFFERENTIAL"


def test_force_full_writes_only_what_differs(big: Workshop) -> None:
    big.refresh_one("big")
    before = big.rows("SELECT ctid, id FROM big ORDER BY id")
    result = big.refresh_one("big", force_full=True)
    assert (result.action, result.fallback_reason, result.changed) == ("FULL", "forced", False)
    assert big.rows("SELECT ctid, id FROM big ORDER BY id") == before


def test_topk_recomputes_and_writes_the_difference(big: Workshop) -> None:
    query = next(iter(big.queries.values()))
    assert isinstance(query, HandWritten)
    query.topk = TopK(3, 0, "amount DESC, id")
    top = "SELECT id, amount FROM public.orders ORDER BY amount DESC, id LIMIT 3"
    query.full_sql = lambda b: top
    query.delta_sql = lambda b: (
        f"SELECT 1 AS __pgt_w, f.* FROM ({top}) f UNION ALL SELECT -1, id, amount FROM public.big"
    )
    big.refresh_one("big")
    big.run("INSERT INTO orders VALUES (300, 1, 1000, NULL)")
    result = big.refresh_one("big")
    assert (result.action, result.rows_inserted, result.rows_deleted) == ("TOPK", 1, 1)
    assert big.rows("SELECT id FROM big ORDER BY id") == [(99,), (100,), (300,)]


def test_a_frontier_of_another_history_is_not_believed(big: Workshop) -> None:
    big.refresh_one("big")
    key = next(iter(big.queries.values())).sources.keys().__iter__().__next__()
    big.run(
        "UPDATE pgtrickle.pgt_stream_tables SET frontier ="
        " jsonb_set(frontier, ARRAY['sources', %s, 'snapshot'], '\"900000000:900000001:\"')",
        key,
    )
    big.run("DELETE FROM orders WHERE id = 99")
    facts = big.refresh_one("big")
    assert (facts.action, facts.fallback_reason) == ("FULL", "buffer_lost")
