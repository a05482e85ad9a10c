"""The notation itself: a whole plan, its keys and its names."""

from __future__ import annotations

import pytest

from tests.unit.dvm.algebra import laid_out
from tests.unit.dvm.shop import view


def plan(query: str, changed: str = "1 2") -> list[str]:
    delta = view(query).plan(changed.split())
    assert delta is not None
    return laid_out(delta).splitlines()


@pytest.mark.parametrize(
    ("query", "changed", "formula"),
    [
        ("SELECT a.id FROM public.a JOIN public.b ON b.g = a.g", "1", "(Δa ⋈ b)"),
        (
            "SELECT a.g, count(DISTINCT a.v) AS m FROM public.a GROUP BY a.g",
            "1",
            "γ(a)[g of Δa] − stored[g of Δa]",
        ),
        ("SELECT a.id FROM public.a WHERE a.v > ALL (SELECT b.v FROM public.b)", "2", "σ(a if Δb) − σ⁰(a if Δb)"),
    ],
)
def test_a_short_plan_is_one_line(query: str, changed: str, formula: str) -> None:
    assert plan(query, changed) == [formula]


def test_what_has_two_readers_is_defined_below() -> None:
    both = plan("SELECT a.id, b.id AS i FROM public.a LEFT JOIN public.b ON b.g = a.g")
    assert both == ["(Δa ⟕ b) + (A ⟕ b) − (A ⟕ b⁰)", "where", "  A = a[g of Δb] − Δa[g of Δb]"]


def test_rows_that_a_change_touches_say_by_what() -> None:
    query = "SELECT a.id FROM public.a WHERE EXISTS (SELECT 1 FROM public.b WHERE b.v = a.g + 1 AND b.v > a.p)"
    lines = ["(A ⋉ b) − (A ⋉ b⁰)", "where", "  A = touched(a by g + 1 ∈ v of Δb)"]
    assert [line.replace('"', "") for line in plan(query, "2")] == lines


def test_columns_are_called_as_in_the_query() -> None:
    query = "SELECT b.g, a.g AS h FROM public.b LEFT JOIN public.a ON a.g = b.g"
    assert plan(query, "1") == ["(b[g of Δa] ⟕ a) − (b[g of Δa] ⟕ a⁰)"]


def test_a_long_sum_has_a_line_for_each_term() -> None:
    query = "SELECT a.id, b.id AS i FROM public.a FULL JOIN public.b ON b.g = a.g AND b.v = a.v AND b.t = a.t"
    new, old = plan(query)
    assert new.startswith("(a[(g, v, t) ∈ ")
    assert old.startswith("− (a⁰[(g, v, t) ∈ ")
