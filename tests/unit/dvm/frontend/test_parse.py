"""Canonical text to a tree: what sqlglot reads otherwise than PostgreSQL is set right here, once."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm import Reason
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import output_names, parse
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused


@pytest.mark.parametrize(
    "text",
    [
        "VALUES (1, 'a'), (2, 'b')",
        "VALUES (1, 'a') UNION SELECT t.id, t.x FROM public.t",
        "WITH v(x, y) AS (VALUES (1, 'a')) SELECT v.x FROM v",
        "SELECT t.id FROM public.t WHERE t.id IN (VALUES (1), (2))",
    ],
)
def test_values_stand_where_a_query_may(text: str) -> None:
    """As PostgreSQL has it: column1, column2, … of a relation called *VALUES*."""
    assert "*" not in parse(text).sql("postgres").replace("*VALUES*", "")


def test_values_may_be_ordered_and_limited() -> None:
    query = parse("VALUES (1), (2) ORDER BY column1 LIMIT 1")
    assert query.sql("postgres").endswith("ORDER BY column1 LIMIT 1")
    assert output_names(query) == ["column1"]


@pytest.mark.parametrize(
    "call",
    [
        "own.total(v) FILTER(WHERE v > 1)",
        "own.middle(0.5) WITHIN GROUP (ORDER BY v)",
        "own.middle(0.5) WITHIN GROUP (ORDER BY v) FILTER(WHERE v > 1)",
        "own.total(v) FILTER(WHERE v > 1) OVER (PARTITION BY g)",
    ],
)
def test_the_clauses_of_a_call_are_about_the_call_with_its_schema(call: str) -> None:
    text = parse(f"SELECT {call} AS s FROM public.k").sql("postgres", normalize_functions=False)
    assert text == f"SELECT {call} AS s FROM public.k"
    found = parse(f"SELECT {call} AS s FROM public.k").expressions[0].this
    while found.key in ("window", "filter", "withingroup"):
        found = found.this
    assert found.key == "dot"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT t.a, t.b AS c FROM public.t", ["a", "c"]),
        ("(SELECT t.a FROM public.t) UNION SELECT t.b FROM public.t", ["a"]),
    ],
)
def test_columns_are_named_by_the_first_branch(text: str, names: list[str]) -> None:
    assert output_names(parse(text)) == names


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT FROM WHERE", Reason.UNSUPPORTED_SYNTAX),
        ("DELETE FROM public.t", Reason.UNSUPPORTED_SYNTAX),
        ("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, Reason.TOO_LARGE),
    ],
)
def test_what_is_no_query_that_can_be_read_is_refused_by_name(text: str, reason: Reason) -> None:
    with pytest.raises(Refused) as refused:
        parse(text)
    assert refused.value.refusal.reason is reason
