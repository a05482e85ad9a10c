"""Recursion kept by its own change, on random graphs."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st
from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.frontend import spell_walk
from airflow_provider_pgtrickle.engine.dvm.operators import rederive
from airflow_provider_pgtrickle.engine.dvm.split import splits
from tests.oracle.arena import case
from tests.oracle.declare import declare
from tests.oracle.harness import Contradiction, Maintained
from tests.property.recursion import RecursiveExample, inner_recursions, recursive_examples, walk_examples
from tests.property.test_properties import FEWER, SOAK, SOME

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


@pytest.mark.timeout(900)
@FEWER
@given(example=walk_examples(is_inner=False))
def test_a_walk_keeps_where_it_has_been(oracle_connection: psycopg.Connection, example: RecursiveExample) -> None:
    """SEARCH and CYCLE."""
    _maintain(oracle_connection, example)


@pytest.mark.timeout(900)
@FEWER
@given(example=walk_examples(is_inner=True))
def test_what_stands_above_a_walk_reads_it_from_a_part(
    oracle_connection: psycopg.Connection, example: RecursiveExample
) -> None:
    _keep_in_parts(oracle_connection, example)


def _over(wrong: Callable[[str], str]) -> tuple[object, str, object]:
    right = spell_walk._over

    def over(
        query: exp.Expr, shown: list[str], names: list[str], made: list[tuple[str, str]], then: str = ""
    ) -> exp.Expr:
        return right(query, shown, names, [(name, wrong(text)) for name, text in made], then)

    return spell_walk, "_over", over


WRONG = {
    "a key's first column stands for all": (spell_walk, "_listed", lambda names: spell_walk._inner(names[0])),
    "each row is where the walk has been": _over(lambda text: text.replace("CASE WHEN", "CASE WHEN true OR")),
    "the depth begins with 1": _over(lambda text: text.replace("0::bigint", "1::bigint")),
    "what may be lost counts as kept": (rederive, "_is_kept", lambda *_, **__: "true"),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_walk_is_found(
    oracle_connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, wrong: tuple[object, str, object]
) -> None:
    @settings(SOME, phases=(Phase.generate,))
    @given(example=walk_examples(is_inner=False))
    def search(example: RecursiveExample) -> None:
        _maintain(oracle_connection, example)

    monkeypatch.setattr(*wrong)
    with pytest.raises(Contradiction):
        search()


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


@pytest.mark.slow
@pytest.mark.timeout(0)
@SOAK
@given(example=walk_examples(is_inner=False))
def test_ten_thousand_walks(oracle_connection: psycopg.Connection, example: RecursiveExample) -> None:
    _maintain(oracle_connection, example)
