"""All 22 TPC-H queries stay differential and equal to PostgreSQL's own answer while everything changes."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.benchmarks import tpch
from tests.benchmarks.tpch.queries import NUMBERS
from tests.oracle.arena import Case, case
from tests.oracle.harness import Maintained
from tests.oracle.live import Live

SCALE = 0.01
CYCLES = 5


@pytest.fixture(scope="module")
def loaded(oracle_connection: psycopg.Connection) -> Iterator[Case]:
    """The database at its start; what a test does to it is undone after the test."""
    with case(oracle_connection) as opened:
        tpch.load(opened.conn, SCALE)
        opened.capture()
        yield opened


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: f"q{number:02}")
def test_query_stays_differential_and_equal(loaded: Case, number: int) -> None:
    with loaded.undone():
        st = Maintained.create(loaded, tpch.query(number, SCALE))
        for cycle in range(CYCLES):
            loaded.change()
            assert tpch.change(loaded.conn, cycle, fraction=0.005) > 100
            assert st.refresh() == "DIFFERENTIAL"


@pytest.fixture(scope="module")
def captured(installed_beside: psycopg.Connection) -> Iterator[Case]:
    """The same tables, which the product captures; `loaded` holds the other connection's transaction."""
    with case(installed_beside, by_product=True) as opened:
        tpch.load(opened.conn, SCALE)
        yield opened


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: f"q{number:02}")
def test_query_is_maintained_in_the_writers_transaction(captured: Case, number: int) -> None:
    with captured.undone():
        st = Live.begin(captured, tpch.query(number, SCALE))
        for cycle in range(2):
            assert tpch.change(captured.conn, cycle, fraction=0.0005) > 10
            st.verify()


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: f"q{number:02}")
def test_query_has_an_answer(loaded: Case, number: int) -> None:
    """An empty answer would be equal to anything that is empty."""
    assert loaded.execute(tpch.query(number, SCALE)).fetchone() not in (None, (None,))
