"""ΔR: a relation computed once changes as it does."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.once import Once
from tests.unit.dvm.algebra import change

SHARED = "SELECT a.id, (SELECT max(b.v) FROM public.b) AS m FROM public.a"


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (SHARED, "2", "γ(b) − γ(b⁰)"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, Once, changed) == delta
