"""Δ(L ⋈ f(l)) = ΔL ⋈ f(l) + what a change inside f touches."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.lateral import Lateral
from tests.unit.dvm.algebra import change

FUNCTION = "SELECT a.id, l.n FROM public.a CROSS JOIN LATERAL generate_series(1, a.v) l(n)"
SUBQUERY = "SELECT a.id, l.v FROM public.a CROSS JOIN LATERAL (SELECT b.v FROM public.b WHERE b.g = a.g) l"


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (FUNCTION, "1", "λ(Δa)"),
        (SUBQUERY, "1", "λ(Δa)"),
        (SUBQUERY, "2", "λ(a[K]) − λ⁰(a[K])"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, Lateral, changed) == delta
