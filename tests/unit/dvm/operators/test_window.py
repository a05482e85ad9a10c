"""Δω(R) = ω(R¹ ⋉ K) − ω(R⁰ ⋉ K); without PARTITION BY the whole is one partition."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.window import Window
from tests.unit.dvm.algebra import change

PARTITIONED = "SELECT a.id, rank() OVER (PARTITION BY a.g ORDER BY a.id) AS r FROM public.a"
WHOLE = "SELECT a.id, rank() OVER (ORDER BY a.id) AS r FROM public.a"


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (PARTITIONED, "1", "ω(a)[K] − ω(a⁰)[K]"),
        (WHOLE, "1", "ω(a) − ω(a⁰)"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, Window, changed) == delta
