"""ΔF(L; S) = F(ΔL; S¹) + F(A; S¹) − F(A; S⁰); without a tie A is L⁰ as soon as S has a change."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from tests.unit.dvm.algebra import change

TIED = "SELECT a.id FROM public.a WHERE a.v > ALL (SELECT b.v FROM public.b WHERE b.g = a.g)"
UNTIED = "SELECT a.id FROM public.a WHERE a.v > ALL (SELECT b.v FROM public.b)"


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (TIED, "1", "σ(Δa)"),
        (TIED, "2", "σ(a[K]) − σ⁰(a[K])"),
        (TIED, "1 2", "σ(Δa) + σ(a[K] − Δa[K]) − σ⁰(a[K] − Δa[K])"),
        (UNTIED, "2", "σ(touched(a)) − σ⁰(touched(a))"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, Filter, changed) == delta
