"""OVER w is written out."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.frontend.named_windows import named_windows
from tests.unit.dvm.shop import rewritten


@pytest.mark.parametrize(
    ("call", "windows", "over"),
    [
        ("OVER w", "w AS (PARTITION BY a.g)", "OVER (PARTITION BY a.g)"),
        ("OVER (w ORDER BY a.id)", "w AS (PARTITION BY a.g)", "OVER (PARTITION BY a.g ORDER BY a.id)"),
        ("OVER (v)", "w AS (PARTITION BY a.g), v AS (w ORDER BY a.id)", "OVER (PARTITION BY a.g ORDER BY a.id)"),
        ("OVER (PARTITION BY a.v)", "w AS (PARTITION BY a.g)", "OVER (PARTITION BY a.v)"),
    ],
)
def test_a_window_says_for_itself_what_it_is(call: str, windows: str, over: str) -> None:
    text = rewritten(named_windows, f"SELECT sum(a.v) {call} AS s FROM public.a WINDOW {windows}")
    assert text == f"SELECT SUM(a.v) {over} AS s FROM public.a"


def test_names_are_those_of_the_block() -> None:
    inner = "SELECT sum(b.v) OVER w AS s FROM public.b WINDOW w AS (ORDER BY b.id)"
    text = rewritten(named_windows, f"SELECT sum(a.v) OVER w AS s, ({inner}) AS t FROM public.a WINDOW w AS ()")
    assert "OVER () AS s" in text
    assert "OVER (ORDER BY b.id) AS s" in text
