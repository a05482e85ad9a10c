"""Δ(A ∘ B) = (A¹ ∘ B¹) ⋉ K − (A⁰ ∘ B⁰) ⋉ K, K the rows of ΔA and ΔB."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.set_operation import SetOperation
from tests.unit.dvm.algebra import change

EXCEPT = "SELECT a.g FROM public.a EXCEPT SELECT b.g FROM public.b"
INTERSECT = "SELECT a.g FROM public.a INTERSECT ALL SELECT b.g FROM public.b"


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (EXCEPT, "2", "(a ∖ b)[K] − (a ∖ b⁰)[K]"),
        (INTERSECT, "1 2", "(a ∩ b)[K] − (a⁰ ∩ b⁰)[K]"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, SetOperation, changed) == delta
