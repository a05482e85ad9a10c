"""Δ(A ⊎ B) = ΔA + ΔB."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from tests.unit.dvm.algebra import change

BOTH = "SELECT a.g FROM public.a UNION ALL SELECT b.g FROM public.b"


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (BOTH, "1 2", "Δa + Δb"),
        (BOTH, "2", "Δb"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, UnionAll, changed) == delta
