"""Δ(L ⋈ R) = ΔL ⋈ R¹ + L¹ ⋈ ΔR − ΔL ⋈ ΔR; what did not change has no term."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.inner_join import InnerJoin
from tests.unit.dvm.algebra import change

TWO = "SELECT a.id, b.id AS i FROM public.a JOIN public.b ON b.g = a.g"


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (TWO, "1 2", "(Δa ⋈ b) + (a ⋈ Δb) − (Δa ⋈ Δb)"),
        (TWO, "1", "(Δa ⋈ b)"),
        (TWO, "2", "(a ⋈ Δb)"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, InnerJoin, changed) == delta
