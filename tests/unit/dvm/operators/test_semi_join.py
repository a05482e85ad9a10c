"""Δ(L ⋉ R) = ΔL ⋉ R¹ + A ⋉ R¹ − A ⋉ R⁰, A the rows of L⁰ that ΔR can match; ▷ alike."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.semi_join import SemiJoin
from tests.unit.dvm.algebra import change

SEMI = "SELECT a.id FROM public.a WHERE EXISTS (SELECT 1 FROM public.b WHERE b.g = a.g)"
ANTI = SEMI.replace("EXISTS", "NOT EXISTS")


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (SEMI, "1", "(Δa ⋉ b)"),
        (SEMI, "2", "(a[K] ⋉ b) − (a[K] ⋉ b⁰)"),
        (SEMI, "1 2", "(Δa ⋉ b) + ((a[K] − Δa[K]) ⋉ b) − ((a[K] − Δa[K]) ⋉ b⁰)"),
        (ANTI, "2", "(a[K] ▷ b) − (a[K] ▷ b⁰)"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, SemiJoin, changed) == delta
