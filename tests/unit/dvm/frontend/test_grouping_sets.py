"""GROUPING SETS, CUBE and ROLLUP are several groupings, whose rows are one relation for the rest of the block."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.expressions import render
from airflow_provider_pgtrickle.engine.dvm.frontend.grouping_sets import sets_of
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import parse
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused


def _sets(clause: str) -> list[tuple[str, ...]]:
    group = parse(f"SELECT 1 FROM public.a GROUP BY {clause}").args["group"]
    return [tuple(map(render, grouping)) for grouping in sets_of(group)]


@pytest.mark.parametrize(
    ("clause", "sets"),
    [
        ("a, b", [("a", "b")]),
        ("ROLLUP (a, b)", [("a", "b"), ("a",), ()]),
        ("ROLLUP ((a, b))", [("a", "b"), ()]),
        ("CUBE (a, b)", [("a", "b"), ("a",), ("b",), ()]),
        ("GROUPING SETS ((a, b), ROLLUP (c))", [("a", "b"), ("c",), ()]),
        ("a, GROUPING SETS (b, ())", [("a", "b"), ("a",)]),
        ("DISTINCT ROLLUP (a), ROLLUP (a)", [("a",), ()]),
        ("()", [()]),
    ],
)
def test_a_clause_is_the_list_of_its_groupings(clause: str, sets: list[tuple[str, ...]]) -> None:
    assert sorted(dict.fromkeys(_sets(clause))) == sorted(dict.fromkeys(sets))
    assert len(_sets(clause)) == len(sets)


def test_more_than_64_groupings_are_refused() -> None:
    with pytest.raises(Refused, match="64"):
        _sets(f"ROLLUP ({', '.join(f'c{n}' for n in range(65))})")
