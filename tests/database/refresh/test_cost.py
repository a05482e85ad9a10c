"""Cost decides where nobody gave a ratio: by what the history says, and by nothing that it said of something else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.database.refresh.handwritten import filtered
from tests.database.refresh.workshop import Workshop

BIG = "SELECT id, amount FROM orders WHERE amount > 50"


@pytest.fixture
def big(workshop: Workshop) -> Workshop:
    query = filtered(workshop.source("orders"), ("id", "amount"), "amount > 50")
    workshop.stream_table(
        "big", "id int, amount numeric", query, key=["id"], text=BIG, differential_max_change_ratio=None
    )
    workshop.run("ANALYZE orders")
    workshop.refresh_one("big")
    return workshop


def remember(big: Workshop, action: str, ms: float) -> None:
    """An invented refresh among others."""
    big.run(
        "INSERT INTO pgtrickle.pgt_refresh_history (pgt_id, action, status, way, candidates, actual_ms,"
        " source_changes, source_rows, regime)"
        " SELECT pgt_id, %s, 'COMPLETED', 'pushed', '{}', %s, 1, 100, pgtrickle.pgt_regime(pgt_id)"
        " FROM pgtrickle.pgt_stream_tables",
        action,
        ms,
    )


def changed(big: Workshop) -> tuple[str, str | None]:
    big.run("UPDATE orders SET amount = amount + 1 WHERE id = 90")
    result = big.refresh_one("big")
    assert big.differs("big", BIG) == []
    return result.action, result.fallback_reason


def slow_differences(big: Workshop) -> None:
    big.run("DELETE FROM pgtrickle.pgt_refresh_history")
    remember(big, "FULL", 200)
    for _ in range(3):
        remember(big, "DIFFERENTIAL", 9_000)


def test_a_small_table_keeps_to_the_difference_and_says_what_it_weighed(big: Workshop) -> None:
    assert changed(big) == ("DIFFERENTIAL", None)
    way, candidates, actual, rows = big.rows(
        "SELECT way, candidates, actual_ms, source_rows FROM pgtrickle.pgt_refresh_history"
        " ORDER BY refresh_id DESC LIMIT 1"
    )[0]
    assert way == "pushed"
    assert sorted(candidates) == ["FULL lowered", "FULL pushed", "difference pushed"]
    assert actual > 0
    assert rows == 100
    assert "ms predicted" in (big.history("big")[0].plan or "")


@pytest.mark.parametrize("forced", [False, True])
def test_a_full_that_nobody_chose_binds_no_difference(workshop: Workshop, forced: bool) -> None:
    query = filtered(workshop.source("orders"), ("id", "amount"), "amount > 50")
    workshop.stream_table(
        "big", "id int, amount numeric", query, key=["id"], text=BIG, differential_max_change_ratio=None
    )
    workshop.run("ANALYZE orders")
    auto = replace(workshop.settings, placement="auto")
    workshop.refresh_one("big", settings=auto)
    if forced:
        workshop.refresh_one("big", settings=auto, force_full=True)
    # It had a choice, of two ways to compute all of it.
    weighed = "SELECT candidates FROM pgtrickle.pgt_refresh_history ORDER BY refresh_id DESC LIMIT 1"
    assert sorted(workshop.rows(weighed)[0][0]) == ["FULL database", "FULL lowered", "FULL pushed"]
    # As on a machine that was busy, but not by as much as a choice has to gain.
    workshop.run("UPDATE pgtrickle.pgt_refresh_history SET actual_ms = 150")
    workshop.run("UPDATE orders SET amount = amount + 1 WHERE id = 90")
    result = workshop.refresh_one("big", settings=auto)
    assert (result.action, result.way) == ("DIFFERENTIAL", "database")
    assert workshop.differs("big", BIG) == []


def test_slow_differences_give_way_to_full(big: Workshop) -> None:
    slow_differences(big)
    assert changed(big) == ("FULL", "predicted_cheaper")


def test_a_ratio_or_strict_mode_leaves_cost_out(big: Workshop) -> None:
    slow_differences(big)
    big.run("UPDATE pgtrickle.pgt_stream_tables SET differential_max_change_ratio = 0.5")
    assert changed(big) == ("DIFFERENTIAL", None)
    big.run(
        "UPDATE pgtrickle.pgt_stream_tables SET differential_max_change_ratio = NULL, refresh_mode = 'DIFFERENTIAL'"
    )
    slow_differences(big)
    assert changed(big) == ("DIFFERENTIAL", None)


def test_what_was_measured_without_an_index_is_forgotten_with_it(big: Workshop) -> None:
    slow_differences(big)
    big.run("CREATE INDEX ON orders (amount)")
    assert changed(big) == ("DIFFERENTIAL", None)


def test_auto_takes_the_database_for_a_small_change(big: Workshop) -> None:
    big.run("UPDATE orders SET amount = amount + 1 WHERE id = 90")
    result = big.refresh_one("big", settings=replace(big.settings, placement="auto"))
    assert (result.action, result.way) == ("DIFFERENTIAL", "database")
    assert big.differs("big", BIG) == []
