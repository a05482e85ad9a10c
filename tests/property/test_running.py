"""Windows that are carried forward from the first changed row: random ones, in every way in which a difference runs."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from airflow_provider_pgtrickle.engine.dvm.operators import behind
from airflow_provider_pgtrickle.engine.dvm.sinks import running as sink
from tests.oracle.arena import Case
from tests.oracle.harness import Contradiction, Maintained
from tests.property import test_immediate, test_placement
from tests.property.changes import histories, inserts
from tests.property.kinds import DATE, INT, MONEY, Column
from tests.property.queries import OPERATORS
from tests.property.relation import Scope
from tests.property.running import running
from tests.property.tables import Table, World
from tests.property.test_properties import (
    BY_CHANGE,
    FEWER,
    SOAK,
    SOME,
    Example,
    _judged,
    any_split_gives_the_same,
    bounds_lose_nothing,
    slices_add_up_to_the_difference,
)
from tests.property.worlds import worlds


@st.composite
def few_values(draw: st.DrawFn) -> World:
    """One table, mostly of numbers that repeat, so that partitions have many rows and places tie."""
    names = ("id", "p", "o", "x", "d")
    columns = tuple(Column(n, kind) for n, kind in zip(names, (INT, INT, INT, MONEY, DATE), strict=True))
    table = Table("t", columns, draw(st.sampled_from(((), ("id",)))))
    return World((table,), (draw(inserts(table, least=6, most=12)),))


@st.composite
def examples(draw: st.DrawFn, *, is_dense: bool = False) -> Example:
    world = draw(few_values()) if is_dense or draw(st.booleans()) else draw(worlds())
    level = 1 if is_dense else draw(st.sampled_from((1, 1, 2)))
    query = draw(running(Scope(world, level, OPERATORS, shadows=False))).text
    history = draw(histories(world, query))
    if draw(st.integers(0, 3)) == 3:
        table = draw(st.sampled_from(world.concerned(query)))
        history.insert(1, [f"TRUNCATE {table.name} CASCADE"])
    return world, query, history


def follows(opened: Case, query: str, history: list[list[str]]) -> None:
    kept = Maintained.create(opened, query)
    event(kept.view.sink)
    for transaction in history:
        opened.change(*transaction)
        emptied = any(statement.startswith("TRUNCATE") for statement in transaction)
        assert kept.refresh() in ((*BY_CHANGE, "FULL") if emptied else BY_CHANGE)


@pytest.mark.timeout(900)
@SOME
@given(example=examples())
def test_content_equals_the_query(oracle_connection: psycopg.Connection, example: Example) -> None:
    _judged(oracle_connection, example, follows)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("judge", [any_split_gives_the_same, slices_add_up_to_the_difference, bounds_lose_nothing])
def test_it_is_one_difference_however_it_is_cut(
    oracle_connection: psycopg.Connection, judge: Callable[[Case, str, list[list[str]]], None]
) -> None:
    @FEWER
    @given(example=examples().filter(lambda e: not any("TRUNCATE" in s for t in e[2] for s in t)))
    def check(example: Example) -> None:
        _judged(oracle_connection, example, judge)

    check()


@pytest.mark.timeout(900)
@FEWER
@given(example=examples(), apart=st.booleans())
def test_content_equals_the_query_without_spark(dsn: str, example: Example, apart: bool) -> None:
    test_placement._follows(dsn, example, apart)


@pytest.mark.timeout(900)
@FEWER
@given(example=examples(), undone=st.lists(st.booleans(), min_size=1, max_size=3))
def test_content_equals_the_query_after_every_statement(
    installed: psycopg.Connection, example: Example, undone: list[bool]
) -> None:
    test_immediate._follows(installed, example, undone)


WRONG: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a number begins anew": lambda patch: patch.setattr(sink, "_NUMBER", "v"),
    "a sum forgets what comes before": lambda patch: patch.setattr(sink, "_SUM", "v"),
    "an extreme forgets it": lambda patch: patch.setattr(sink, "_EXTREMES", {"min": "v", "max": "v"}),
    "a sum is told by its own order": lambda patch: patch.setattr(sink, "_tells", lambda one, window: one is window),
    "NULLs have no place": lambda patch: patch.setattr(behind, "_is_null", lambda value: "false"),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_carried_wrongly_is_found(
    oracle_connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    WRONG[wrong](monkeypatch)

    @settings(SOME, max_examples=2000, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(example=examples(is_dense=True))
    def check(example: Example) -> None:
        _judged(oracle_connection, example, follows)

    with pytest.raises(Contradiction):
        check()


@pytest.mark.slow
@pytest.mark.timeout(0)
@SOAK
@given(example=examples())
def test_ten_thousand_running_windows(oracle_connection: psycopg.Connection, example: Example) -> None:
    _judged(oracle_connection, example, follows)
