"""Recursion kept by its own change, on random graphs."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.oracle.arena import case
from tests.oracle.harness import Maintained
from tests.property.recursion import RecursiveExample, recursive_examples
from tests.property.test_properties import SOAK, SOME

_HALF = settings(SOME, max_examples=SOME.max_examples // 2)


def _maintain(conn: psycopg.Connection, example: RecursiveExample) -> None:
    note("\n".join(f"{statement};" for statement in example.ddl) + f"\n-- {example.query};\n-- {example.history}")
    with case(conn, example.ddl) as opened:
        st_ = Maintained.create(opened, example.query)
        assert st_.view.sink == "delete and rederive", st_.view.because
        for transaction in example.history:
            opened.change(*transaction)
            assert st_.refresh() == "DIFFERENTIAL"


@pytest.mark.timeout(900)
@_HALF
@given(example=recursive_examples(is_acyclic=True))
def test_every_derivation_counts(oracle_connection: psycopg.Connection, example: RecursiveExample) -> None:
    _maintain(oracle_connection, example)


@pytest.mark.timeout(900)
@_HALF
@given(example=recursive_examples(is_acyclic=False))
def test_what_a_cycle_holds_up_falls_with_it(oracle_connection: psycopg.Connection, example: RecursiveExample) -> None:
    _maintain(oracle_connection, example)


@pytest.mark.slow
@pytest.mark.timeout(0)
@SOAK
@given(example=st.booleans().flatmap(lambda acyclic: recursive_examples(is_acyclic=acyclic)))
def test_ten_thousand_recursions(oracle_connection: psycopg.Connection, example: RecursiveExample) -> None:
    _maintain(oracle_connection, example)
