"""Equalities common to all branches of an OR are factored out, and nothing else is touched."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.frontend.common_equalities import common_equalities
from tests.unit.dvm.shop import rewritten


@pytest.mark.parametrize(
    ("condition", "factored"),
    [
        ("(a.id = b.id AND a.v > 1) OR (a.id = b.id AND b.v > 2)", "(a.id = b.id) AND (((a.v > 1)) OR ((b.v > 2)))"),
        ("a.g = 1 AND ((a.id = b.id AND a.v > 1) OR (b.v > 2 AND (a.id = b.id)) OR (a.id = b.id AND a.v = 0))",
         "(a.g = 1) AND (a.id = b.id) AND (((a.v > 1)) OR ((b.v > 2)) OR ((a.v = 0)))"),
        # Of a branch that says nothing else the others are part.
        ("a.id = b.id OR (a.id = b.id AND a.v > 1)", "(a.id = b.id)"),
        ("(a.g = 1 AND a.v > 1) OR (a.g = 1 AND a.v < 0)", "(a.g = 1) AND (((a.v > 1)) OR ((a.v < 0)))"),
    ],
)  # fmt: skip
def test_what_all_branches_say_is_said_once(condition: str, factored: str) -> None:
    text = rewritten(common_equalities, f"SELECT a.v FROM public.a, public.b WHERE {condition}")
    assert text == f"SELECT a.v FROM public.a, public.b WHERE {factored}"


@pytest.mark.parametrize(
    "condition",
    [
        "(a.id = b.id AND a.v > 1) OR a.v > 2",
        "(a.v > 1 AND a.g = 1) OR (a.v > 1 AND a.g = 2)",
        "(a.id = RANDOM() AND a.v > 1) OR (a.id = RANDOM() AND a.v > 2)",
        "NOT ((a.id = b.id AND a.v > 1) OR (a.id = b.id AND a.v > 2))",
    ],
)
def test_what_is_no_common_equality_stays(condition: str) -> None:
    query = f"SELECT a.v FROM public.a, public.b WHERE {condition}"
    assert rewritten(common_equalities, query) == query


def test_conditions_of_joins_and_of_inner_queries_too() -> None:
    either = "(a.id = b.id AND a.v > 1) OR (a.id = b.id AND b.v > 2)"
    text = rewritten(common_equalities, f"SELECT a.v FROM public.a LEFT JOIN public.b ON {either}")
    assert "ON (a.id = b.id) AND" in text
    text = rewritten(
        common_equalities, f"SELECT 1 AS n FROM public.a WHERE EXISTS(SELECT 1 AS x FROM public.b WHERE {either})"
    )
    assert "WHERE (a.id = b.id) AND" in text
