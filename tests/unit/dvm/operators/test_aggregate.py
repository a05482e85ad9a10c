"""Δγ(R) = γ(R¹ ⋉ K) − γ(R⁰ ⋉ K); without GROUP BY the one group is always touched."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from tests.unit.dvm.algebra import change

INNER = "SELECT x.n, b.id FROM (SELECT a.g, count(*) AS n FROM public.a GROUP BY a.g) x JOIN public.b ON b.g = x.g"
GLOBAL = "SELECT count(*) AS n FROM public.a"


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (INNER, "1", "γ(a)[K] − γ(a⁰)[K]"),
        (GLOBAL, "1", "γ(a) − γ(a⁰)"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, Aggregate, changed) == delta
