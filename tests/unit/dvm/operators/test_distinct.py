"""Δδ(R) = δ(R¹ ⋉ K) − δ(R⁰ ⋉ K), K the rows of ΔR."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.distinct import Distinct
from tests.unit.dvm.algebra import change

INNER = "SELECT x.g, b.id FROM (SELECT DISTINCT a.g FROM public.a) x JOIN public.b ON b.g = x.g"


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (INNER, "1", "δ(a)[K] − δ(a⁰)[K]"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, Distinct, changed) == delta
