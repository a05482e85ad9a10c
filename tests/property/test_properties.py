"""The three properties of a differential engine, on random schemas, queries and histories."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, assume, event, given, note, settings
from hypothesis import strategies as st

from airflow_provider_pgtrickle.engine.dvm.reasons import Reason
from tests.oracle.arena import Case, case
from tests.oracle.declare import Misprinted
from tests.oracle.harness import Maintained, Refused, Undefined
from tests.property.changes import histories
from tests.property.groups import as_written
from tests.property.queries import queries
from tests.property.relation import Scope
from tests.property.tables import World
from tests.property.worlds import worlds

BY_CHANGE = ("DIFFERENTIAL", "TOPK")
"""TOPK where the query itself ends in a LIMIT."""

_GROUPING_SETS = ("ROLLUP", "CUBE", "GROUPING SETS")

_BOUND = re.compile(r">= (?:LEAST\()?'[^']*'::")

Example = tuple[World, str, list[list[str]]]

_COMMON = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
}
SOME = settings(max_examples=int(os.environ.get("PGTRICKLE_EXAMPLES", "200")), derandomize=True, **_COMMON)  # type: ignore[arg-type]
FEWER = settings(SOME, max_examples=SOME.max_examples // 4)
SOAK = settings(
    max_examples=int(os.environ.get("PGTRICKLE_SOAK", "10000")),
    phases=(Phase.generate, Phase.shrink),
    database=None,
    **_COMMON,  # type: ignore[arg-type]
)


@st.composite
def examples(draw: st.DrawFn) -> Example:
    world = draw(worlds())
    query = draw(queries(world))
    return world, query, draw(histories(world, query))


@st.composite
def entangled(draw: st.DrawFn) -> Example:
    """Simple queries, and statements that one another follow from: by references, triggers, and WITH."""
    world = draw(worlds(entangled=True))
    query = draw(queries(world, depths=(1,)))
    return world, query, draw(histories(world, query))


@st.composite
def left_as_written(draw: st.DrawFn) -> Example:
    """Groups that PostgreSQL evaluates as they are written, under what needs their order to be total."""
    world = draw(worlds())
    query = draw(as_written(Scope(world, 1, (), shadows=False))).text
    return world, query, draw(histories(world, query))


def _judged(
    conn: psycopg.Connection,
    example: Example,
    judge: Callable[[Case, str, list[list[str]]], None],
    *,
    by_product: bool = False,
) -> None:
    world, query, history = example
    note("\n".join(f"{statement};" for statement in (*world.ddl, *world.rows)) + f"\n-- {query};\n-- {history}")
    with case(conn, world.ddl, by_product=by_product) as opened:
        opened.change(*world.rows)
        assume(opened.understands(query))
        try:
            judge(opened, query, history)
        except (Undefined, Misprinted):
            assume(False)
        except Refused as refused:
            # The generator orders windows totally, except where a constant is a key of grouping sets: what it is there
            # is PostgreSQL's to say, and the order with it.
            if refused.reason is not Reason.AMBIGUOUS_ORDER or not any(words in query for words in _GROUPING_SETS):
                raise
            assume(False)


def content_equals_the_query(opened: Case, query: str, history: list[list[str]]) -> None:
    st_ = Maintained.create(opened, query)
    for transaction in history:
        opened.change(*transaction)
        assert st_.refresh() in BY_CHANGE


def any_split_gives_the_same(opened: Case, query: str, history: list[list[str]]) -> None:
    """Refreshing after each transaction, after every second one, or once at the end."""
    st_ = Maintained.create(opened, query)
    contents = []
    for stride in (1, 2, len(history)):
        with opened.undone():
            kept = replace(st_)
            for number, transaction in enumerate(history, start=1):
                opened.change(*transaction)
                if number % stride == 0 or number == len(history):
                    assert kept.refresh() in BY_CHANGE
            contents.append(kept.images())
    assert contents[0] == contents[1] == contents[2]


def full_and_differential_commute(opened: Case, query: str, history: list[list[str]]) -> None:
    st_ = Maintained.create(opened, query)
    contents = []
    for full_at in range(2):
        with opened.undone():
            kept = replace(st_)
            for number, transaction in enumerate(history[:2]):
                opened.change(*transaction)
                assert kept.refresh(full=number == full_at) in (("FULL",) if number == full_at else BY_CHANGE)
            contents.append(kept.images())
    assert contents[0] == contents[1]


def slices_add_up_to_the_difference(opened: Case, query: str, history: list[list[str]]) -> None:
    """Of the whole history at once, so that changes of several sources meet, and in slices of few rows."""
    st_ = Maintained.create(opened, query)
    for transaction in history:
        opened.change(*transaction)
    assert st_.refresh(slices=7) in (*BY_CHANGE, "SLICED")


def bounds_lose_nothing(opened: Case, query: str, history: list[list[str]]) -> None:
    """With the least value of each column in the changes, which bounds what they are joined with."""
    st_ = Maintained.create(opened, query)
    for transaction in history:
        opened.change(*transaction)
        assert st_.refresh(bounded=True) in BY_CHANGE
        event("a bound" if st_.last_delta is not None and _BOUND.search(st_.last_delta) else "no bound")


@pytest.mark.timeout(900)
@SOME
@given(example=examples())
def test_content_equals_the_query_at_the_frontier(oracle_connection: psycopg.Connection, example: Example) -> None:
    _judged(oracle_connection, example, content_equals_the_query)


@pytest.mark.timeout(900)
@FEWER
@given(example=examples())
def test_content_equals_the_query_when_the_product_captures(installed: psycopg.Connection, example: Example) -> None:
    _judged(installed, example, content_equals_the_query, by_product=True)


@pytest.mark.timeout(900)
@FEWER
@given(example=left_as_written())
def test_what_postgresql_evaluates_as_written_is_the_same_each_time(
    oracle_connection: psycopg.Connection, example: Example
) -> None:
    _judged(oracle_connection, example, content_equals_the_query)


@pytest.mark.timeout(900)
@FEWER
@given(example=entangled())
def test_what_follows_from_a_statement_is_captured_with_it(installed: psycopg.Connection, example: Example) -> None:
    _judged(installed, example, content_equals_the_query, by_product=True)


@pytest.mark.timeout(900)
@FEWER
@given(example=examples())
def test_any_split_of_a_stream_into_batches_gives_the_same(
    oracle_connection: psycopg.Connection, example: Example
) -> None:
    _judged(oracle_connection, example, any_split_gives_the_same)


@pytest.mark.timeout(900)
@FEWER
@given(example=examples())
def test_the_slices_of_a_difference_add_up_to_it(oracle_connection: psycopg.Connection, example: Example) -> None:
    _judged(oracle_connection, example, slices_add_up_to_the_difference)


@pytest.mark.timeout(900)
@FEWER
@given(example=examples())
def test_what_bounds_the_changes_loses_no_row(oracle_connection: psycopg.Connection, example: Example) -> None:
    _judged(oracle_connection, example, bounds_lose_nothing)


@pytest.mark.timeout(900)
@FEWER
@given(example=examples())
def test_full_then_differential_is_differential_then_full(
    oracle_connection: psycopg.Connection, example: Example
) -> None:
    _judged(oracle_connection, example, full_and_differential_commute)


_JUDGES = (
    content_equals_the_query,
    content_equals_the_query,
    any_split_gives_the_same,
    full_and_differential_commute,
    slices_add_up_to_the_difference,
    bounds_lose_nothing,
)


@pytest.mark.slow
@pytest.mark.timeout(0)
@SOAK
@given(example=st.one_of(examples(), entangled()), by_product=st.booleans(), judge=st.sampled_from(_JUDGES))
def test_ten_thousand_cases(
    installed: psycopg.Connection,
    example: Example,
    by_product: bool,
    judge: Callable[[Case, str, list[list[str]]], None],
) -> None:
    """All properties, and both ways to capture.

    PGTRICKLE_SOAK says how many cases; other ones come with another --hypothesis-seed, in as many processes at once.
    """
    _judged(installed, example, judge, by_product=by_product)
