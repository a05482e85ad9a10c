"""Δμ = μ¹ − μ⁰."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.native import Native
from tests.unit.dvm.algebra import change

LIMITED = (
    "SELECT a.id, x.id AS i FROM public.a"
    " JOIN (SELECT b.id, b.g FROM public.b ORDER BY b.v, b.id LIMIT 3) x ON x.g = a.g"
)


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (LIMITED, "2", "μ − μ⁰"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, Native, changed) == delta
