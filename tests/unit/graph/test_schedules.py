"""CALCULATED: a table is refreshed as often as the most impatient table that reads it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.graph import Graph, Node
from airflow_provider_pgtrickle.engine.schedule import Cron, Every


def schedules(*nodes: tuple[str, str, str | None], policy: str = "fastest") -> Mapping[str, object]:
    built = Graph.build(Node(n, frozenset(s.split()), t, diamond_schedule_policy=policy) for n, s, t in nodes)
    return built.effective_schedules(60)


def test_the_most_impatient_reader_decides() -> None:
    found = schedules(("a", "orders", None), ("b", "a", "10m"), ("c", "a", "5m"))
    assert found["a"] == Every(300)


def test_it_is_passed_on_through_calculated_tables() -> None:
    found = schedules(("a", "orders", None), ("b", "a", None), ("c", "b", "@daily"))
    assert found["a"] == found["b"] == Cron("0 0 * * *")


def test_a_schedule_of_its_own_is_kept() -> None:
    assert schedules(("a", "orders", "1h"), ("b", "a", "5m"))["a"] == Every(3600)


def test_with_nobody_saying_anything_all_tick_at_the_minimum() -> None:
    found = schedules(("a", "orders", None), ("b", "a", "calculated"))
    assert set(found.values()) == {Every(60)}


def test_a_calculated_table_that_nobody_reads_follows_what_feeds_it() -> None:
    found = schedules(("a", "orders", "5m"), ("b", "items", "1h"), ("c", "a b", None))
    assert found["c"] == Every(300)


def test_under_the_slowest_policy_it_waits_for_the_last_of_them() -> None:
    found = schedules(("a", "orders", "5m"), ("b", "items", "1h"), ("c", "a b", None), policy="slowest")
    assert found["c"] == Every(3600)


def test_a_bad_schedule_names_its_table() -> None:
    with pytest.raises(UsageError, match=r"^a: "):
        schedules(("a", "orders", "every now and then"))
