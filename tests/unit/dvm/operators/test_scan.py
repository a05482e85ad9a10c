"""Δscan(T) is the window of T's buffer."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from tests.unit.dvm.algebra import change

TABLE = "SELECT a.id FROM public.a"


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (TABLE, "1", "Δa"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, Scan, changed) == delta
