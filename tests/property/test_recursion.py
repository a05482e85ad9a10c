"""Recursion kept by its own change, on random graphs."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from airflow_provider_pgtrickle.engine.dvm.split import splits
from tests.oracle.arena import case
from tests.oracle.declare import declare
from tests.oracle.harness import Maintained
from tests.property.recursion import RecursiveExample, inner_recursions, recursive_examples
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


def _keep_in_parts(conn: psycopg.Connection, example: RecursiveExample) -> None:
    note("\n".join(f"{statement};" for statement in example.ddl) + f"\n-- {example.query};\n-- {example.history}")
    with case(conn, example.ddl) as opened:
        declared = declare(opened.conn, opened.schema, example.query)
        found = list(splits(declared.canonical, declared.schema))
        assert len(found) == (2 if ", s(id) AS " in example.query else 1)
        for number, split in enumerate(found):
            with opened.undone():
                (text,) = split.parts
                part = Maintained.create(opened, text, name=f"part_{number}")
                if part.view.sink != "delete and rederive":
                    # It reads the other recursion, which the product takes out first.
                    assert len(found) == 2, part.view.because
                    continue
                opened.capture()
                outer = Maintained.create(opened, split.outer((opened.schema, part.name)), name="st_outer")
                outer.query = example.query
                outer.verify()
                for transaction in example.history:
                    opened.change(*transaction)
                    assert part.refresh() == "DIFFERENTIAL"
                    assert outer.refresh() == "DIFFERENTIAL"
        whole = Maintained.create(opened, example.query)
        for transaction in example.history:
            opened.change(*transaction)
            assert whole.refresh() == "DIFFERENTIAL"


@pytest.mark.timeout(900)
@_HALF
@given(example=inner_recursions())
def test_what_stands_above_a_recursion_reads_it_from_a_part(
    oracle_connection: psycopg.Connection, example: RecursiveExample
) -> None:
    _keep_in_parts(oracle_connection, example)


@pytest.mark.slow
@pytest.mark.timeout(0)
@SOAK
@given(example=inner_recursions())
def test_ten_thousand_inner_recursions(oracle_connection: psycopg.Connection, example: RecursiveExample) -> None:
    _keep_in_parts(oracle_connection, example)


@pytest.mark.slow
@pytest.mark.timeout(0)
@SOAK
@given(example=st.booleans().flatmap(lambda acyclic: recursive_examples(is_acyclic=acyclic)))
def test_ten_thousand_recursions(oracle_connection: psycopg.Connection, example: RecursiveExample) -> None:
    _maintain(oracle_connection, example)
