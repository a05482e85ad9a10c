"""Δπ(L) = π(ΔL); with subqueries the rule of `dependent`."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from tests.unit.dvm.algebra import change

PLAIN = "SELECT a.id, a.v + 1 AS w FROM public.a"
SUBQUERY = "SELECT a.id, a.v IN (SELECT b.v FROM public.b WHERE b.g = a.g) AS w FROM public.a"


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (PLAIN, "1", "π(Δa)"),
        (SUBQUERY, "2", "π(a[K]) − π⁰(a[K])"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, Project, changed) == delta
