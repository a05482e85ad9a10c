"""Δ(constant) = 0: VALUES, functions of constants, SELECT without FROM."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.constant import Constant
from tests.unit.dvm.algebra import change
from tests.unit.dvm.shop import delta


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id, x.n FROM public.a JOIN (VALUES (1), (2)) x(n) ON x.n = a.g",
        "SELECT a.id, x.n FROM public.a JOIN generate_series(1, 3) x(n) ON x.n = a.g",
        "SELECT a.id FROM public.a UNION ALL SELECT 1 AS id",
    ],
)
def test_nothing_changes_it(query: str) -> None:
    assert change(query, Constant) is None


def test_a_query_of_constants_has_no_delta() -> None:
    assert delta("VALUES (1, 2), (3, 4)") is None
