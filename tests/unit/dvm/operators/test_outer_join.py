"""Left: Δ(L ⟕ R) = ΔL ⟕ R¹ + A ⟕ R¹ − A ⟕ R⁰. Full: both states of the touched keys."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.outer_join import OuterJoin
from tests.unit.dvm.algebra import change

LEFT = "SELECT a.id, b.id AS i FROM public.a LEFT JOIN public.b ON b.g = a.g"
RIGHT = LEFT.replace("LEFT", "RIGHT")
FULL = LEFT.replace("LEFT", "FULL")
UNTIED = "SELECT a.id, b.id AS i FROM public.a LEFT JOIN public.b ON b.g < a.g"


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (LEFT, "1", "(Δa ⟕ b)"),
        (LEFT, "2", "(a[K] ⟕ b) − (a[K] ⟕ b⁰)"),
        (LEFT, "1 2", "(Δa ⟕ b) + ((a[K] − Δa[K]) ⟕ b) − ((a[K] − Δa[K]) ⟕ b⁰)"),
        (RIGHT, "1", "(b[K] ⟕ a) − (b[K] ⟕ a⁰)"),
        (UNTIED, "2", "(a ⟕ b) − (a ⟕ b⁰)"),
        (FULL, "1", "(a[K] ⟗ b[K]) − (a⁰[K] ⟗ b[K])"),
        (FULL, "1 2", "(a[K] ⟗ b[K]) − (a⁰[K] ⟗ b⁰[K])"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, OuterJoin, changed) == delta
