"""Calls that return sets are marked: what multiplies rows is no plain expression."""

from __future__ import annotations

from airflow_provider_pgtrickle.engine.dvm.expressions import returns_set
from airflow_provider_pgtrickle.engine.dvm.frontend.inline_views import inline_views
from airflow_provider_pgtrickle.engine.dvm.frontend.mark_sets import mark_sets
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import parse
from tests.unit.dvm.shop import schema


def test_a_function_that_returns_a_set_is_marked() -> None:
    known = schema(set_returning=frozenset({"both"}))
    query = mark_sets(inline_views(parse("SELECT both(a.id) AS x FROM public.a"), known), known)
    assert returns_set(query.expressions[0])
    assert not returns_set(parse("SELECT other(a.id) AS x FROM public.a").expressions[0])
