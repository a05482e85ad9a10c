"""Δσ(L) = σ(ΔL); with subqueries the rule of `dependent`."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from tests.unit.dvm.algebra import change

PLAIN = "SELECT a.id FROM public.a WHERE a.v > 1"
SUBQUERY = "SELECT a.id FROM public.a WHERE a.v > ALL (SELECT b.v FROM public.b WHERE b.g = a.g)"


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (PLAIN, "1", "σ(Δa)"),
        (SUBQUERY, "1", "σ(Δa)"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, Filter, changed) == delta
