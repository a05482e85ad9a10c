"""IMMEDIATE on random schemas, queries and histories: after each statement, and after what undoes it, the content is
the query's answer."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st

from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from tests.oracle.arena import Case, case, tolerated
from tests.oracle.declare import Misprinted
from tests.oracle.harness import Contradiction
from tests.oracle.live import Live
from tests.property.test_properties import FEWER, SOAK, Example, entangled, examples

_MOST_ROWS = 500


def _too_many(opened: Case, query: str) -> bool:
    return bool(opened.rows(f"SELECT count(*) > {_MOST_ROWS} FROM ({query}) AS x")[0][0])


def _follows(conn: psycopg.Connection, example: Example, undone: list[bool]) -> None:
    world, query, history = example
    note("\n".join(f"{statement};" for statement in (*world.ddl, *world.rows)) + f"\n-- {query};\n-- {history}")
    with case(conn, world.ddl, by_product=True) as opened:
        opened.change(*world.rows)
        if not opened.understands(query):
            return
        try:
            kept = Live.begin(opened, query)
        except (PgTrickleError, Misprinted) as refused:
            event(type(refused).__name__)
            return
        except psycopg.Error:
            event("undefined at first")
            return
        event("followed")
        kept.verify()
        statements = [statement for transaction in history for statement in transaction]
        for number, statement in enumerate(statements):
            before = kept.images()
            with tolerated(conn):
                opened.execute(statement)
                if _defined(opened, query):
                    kept.verify()
                if undone[number % len(undone)]:
                    raise psycopg.Error
            if _defined(opened, query):
                kept.verify()
            if undone[number % len(undone)] and kept.images() != before:
                raise Contradiction(f"{statement} was undone, and its content not\n{query}")


def _defined(opened: Case, query: str) -> bool:
    """Whether PostgreSQL answers the query on the present data, in few rows."""
    answered = False
    with tolerated(opened.conn):
        opened.execute(f"SELECT count(x::text) FROM ({query}) AS x")
        answered = True
    return answered and not _too_many(opened, query)


@pytest.mark.timeout(900)
@FEWER
@given(example=examples(), undone=st.lists(st.booleans(), min_size=1, max_size=3))
def test_content_equals_the_query_after_every_statement(
    installed: psycopg.Connection, example: Example, undone: list[bool]
) -> None:
    _follows(installed, example, undone)


@pytest.mark.timeout(900)
@FEWER
@given(example=entangled(), undone=st.lists(st.booleans(), min_size=1, max_size=3))
def test_what_follows_from_a_statement_is_maintained_with_it(
    installed: psycopg.Connection, example: Example, undone: list[bool]
) -> None:
    _follows(installed, example, undone)


@pytest.mark.slow
@pytest.mark.timeout(0)
@SOAK
@given(example=st.one_of(examples(), entangled()), undone=st.lists(st.booleans(), min_size=1, max_size=3))
def test_ten_thousand_histories(installed: psycopg.Connection, example: Example, undone: list[bool]) -> None:
    _follows(installed, example, undone)
