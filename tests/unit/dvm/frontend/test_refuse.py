"""What can't be a stream table, or can't be maintained, is named before anything is built."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm import Reason
from airflow_provider_pgtrickle.engine.dvm.frontend.refuse import refuse
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused
from airflow_provider_pgtrickle.engine.errors import QueryError
from tests.unit.dvm.shop import rewritten, schema, table, view


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT x.id FROM (SELECT a.id FROM public.a LIMIT 3) x", Reason.LIMIT_WITHOUT_ORDER),
        ("SELECT f(x.*) AS y FROM (SELECT a.id, a.id FROM public.a) x", Reason.WHOLE_ROW),
        ("SELECT public.nth(a.id, 2) OVER (PARTITION BY a.v) AS n FROM public.a", Reason.AMBIGUOUS_ORDER),
    ],
)
def test_what_has_no_difference_is_refused_by_name(query: str, reason: Reason) -> None:
    refusal = view(query).refusal
    assert refusal is not None
    assert refusal.reason is reason
    assert refusal.remedy


@pytest.mark.parametrize(("volatility", "reason"), [("v", Reason.VOLATILE_FUNCTION), ("s", Reason.TIME_DEPENDENT)])
def test_what_answers_otherwise_each_time_is_refused_by_the_functions_that_it_calls(
    volatility: str, reason: Reason
) -> None:
    refusal = view("SELECT a.id, f() AS n FROM public.a", schema(functions={"f": volatility, "lower": "i"})).refusal
    assert refusal is not None
    assert (refusal.reason, refusal.detail) == (reason, "f")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id FROM public.a LIMIT 3",
        "SELECT a.id FROM public.a FOR UPDATE",
        "SELECT a.id FROM public.a TABLESAMPLE bernoulli (10)",
        'SELECT a.id FROM public.a JOIN LATERAL (SELECT b.id FROM public.b TABLESAMPLE "system" (a.v)) s ON true',
        'SELECT a.id FROM public.a TABLESAMPLE "bernoulli" (10) REPEATABLE (1)',
    ],
)
def test_what_can_be_no_stream_table_at_all_is_an_error_with_a_remedy(query: str) -> None:
    with pytest.raises(QueryError) as found:
        view(query)
    assert found.value.remedy


def test_values_have_an_order_of_their_own() -> None:
    assert view("SELECT a.id FROM public.a WHERE (a.v IN ( VALUES (1), (2) LIMIT 1))").refusal is None
    refusal = view("SELECT a.id FROM public.a WHERE (a.v IN (SELECT b.v FROM public.b LIMIT 1))").refusal
    assert refusal is not None
    assert refusal.reason is Reason.LIMIT_WITHOUT_ORDER


@pytest.mark.parametrize("kind", ["MATVIEW", "FOREIGN_TABLE", "UNLOGGED_TABLE"])
def test_a_source_without_triggers_is_refused(kind: str) -> None:
    with pytest.raises(Refused, match="can't have triggers"):
        rewritten(refuse, "SELECT a.id FROM public.a", schema(table("a", kind=kind)))
