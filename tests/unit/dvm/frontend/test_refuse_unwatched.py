"""A subquery in a place that no operator differentiates is refused: its changes would go unseen."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.node import descendants
from tests.unit.dvm.shop import view


def test_every_table_inside_a_subquery_is_a_source_of_the_operator_that_holds_it() -> None:
    tree = view("SELECT a.id, a.v > ALL (SELECT b.v FROM public.b) AS x FROM public.a").tree
    assert tree is not None
    assert any("2" in n.own_sources for n in descendants(tree))


@pytest.mark.parametrize(
    "place",
    ["LEFT JOIN LATERAL (SELECT a.v AS w) l ON l.w IN (SELECT b.v FROM public.b)"],
)
def test_one_that_nobody_watches_is_refused(place: str) -> None:
    refusal = view(f"SELECT a.id FROM public.a {place}").refusal
    assert refusal is not None
    assert "a subquery over b in this place" in refusal.detail
