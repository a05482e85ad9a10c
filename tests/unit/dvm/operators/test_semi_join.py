"""Δ(L ⋉ R) = ΔL ⋉ R¹ + A ⋉ R¹ − A ⋉ R⁰, A the rows of L⁰ that ΔR can match; ▷ alike."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.explain import looked_up
from airflow_provider_pgtrickle.engine.dvm.operators.semi_join import SemiJoin
from tests.unit.dvm.algebra import change
from tests.unit.dvm.shop import view

SEMI = "SELECT a.id FROM public.a WHERE EXISTS (SELECT 1 FROM public.b WHERE b.g = a.g)"
UNTIED = "SELECT a.id FROM public.a WHERE EXISTS (SELECT 1 FROM public.b WHERE b.g < a.g)"
GROUPED = (
    "SELECT a.id FROM public.a WHERE EXISTS"
    " (SELECT 1 FROM (SELECT b.g, b.v FROM public.b GROUP BY b.g, b.v) AS x WHERE x.g = a.g)"
)
ANTI = SEMI.replace("EXISTS", "NOT EXISTS")


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (SEMI, "1", "(Δa ⋉ b)"),
        (SEMI, "2", "(a[K] ⋉ b) − (a[K] ⋉ b⁰)"),
        (SEMI, "1 2", "(Δa ⋉ b) + ((a[K] − Δa[K]) ⋉ b) − ((a[K] − Δa[K]) ⋉ b⁰)"),
        (UNTIED, "2", "(a ⋉ b) − (a ⋉ b⁰)"),
        (UNTIED, "1 2", "(Δa ⋉ b) + ((a − Δa) ⋉ b) − ((a − Δa) ⋉ b⁰)"),
        (ANTI, "2", "(a[K] ▷ b) − (a[K] ▷ b⁰)"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, SemiJoin, changed) == delta


def test_a_grouping_on_the_right_is_computed_for_the_keys_that_changed_on_the_left() -> None:
    plan = view(GROUPED).plan(["1"])
    assert plan is not None
    assert list(looked_up(plan)) == [("2", ("g",))]


def test_a_table_on_the_right_is_left_to_its_index() -> None:
    plan = view(SEMI).plan(["1"])
    assert plan is not None
    assert list(looked_up(plan)) == []
