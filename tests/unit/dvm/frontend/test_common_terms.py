"""Equalities that every branch of an OR has."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.frontend.common_terms import common_terms
from airflow_provider_pgtrickle.engine.dvm.schema import Schema

EITHER = "((t.a = u.b AND t.c = 1) OR (t.a = u.b AND t.c = 2))"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (EITHER, f"t.a = u.b AND {EITHER}"),
        (f"{EITHER} AND t.d = 4", f"t.a = u.b AND ({EITHER} AND t.d = 4)"),
        ("(t.c = 3 AND (t.a = u.b) OR t.a = u.b)", "t.a = u.b AND (t.c = 3 AND (t.a = u.b) OR t.a = u.b)"),
        # It stands there already, isn't in every branch, or compares no two columns.
        (f"t.a = u.b AND {EITHER}", f"t.a = u.b AND {EITHER}"),
        ("(t.a = u.b AND t.c = 1) OR t.c = 2", "(t.a = u.b AND t.c = 1) OR t.c = 2"),
        ("(t.c = 1 AND t.d = 2) OR (t.c = 1 AND t.d = 3)", "(t.c = 1 AND t.d = 2) OR (t.c = 1 AND t.d = 3)"),
        # Where it isn't true, neither need they be.
        (f"NOT {EITHER}", f"NOT {EITHER}"),
    ],
)
def test_they_stand_beside_the_or(before: str, after: str) -> None:
    query = sqlglot.parse_one(f"SELECT * FROM t, u WHERE {before}", read="postgres")
    assert isinstance(query, exp.Query)
    assert common_terms(query, Schema({})).sql() == f"SELECT * FROM t, u WHERE {after}"


@pytest.mark.parametrize(("kind", "moves"), [("JOIN", True), ("LEFT JOIN", False), ("FULL JOIN", False)])
def test_the_condition_of_an_outer_join_stays(kind: str, moves: bool) -> None:
    text = f"SELECT * FROM t {kind} u ON (t.a = u.b AND t.c = 1) OR (t.a = u.b AND t.c = 2)"
    query = sqlglot.parse_one(text, read="postgres")
    assert isinstance(query, exp.Query)
    assert (common_terms(query, Schema({})).sql() != text) is moves
