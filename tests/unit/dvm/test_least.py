"""The least value of a changed column bounds what equals it, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.dvm.shop import view

LEAST = "'5'::integer"


def _delta(query: str, *changed: str) -> str:
    """The difference if these sources changed, and the least value of each one's column `g` is known."""
    made = view(query)
    binding = made.example_binding()
    sources = {
        key: replace(source, changed=key in changed, least=(("g", LEAST),) if key in changed else ())
        for key, source in binding.sources.items()
    }
    text = made.delta(replace(binding, sources=sources))
    assert text is not None
    return text


@pytest.mark.parametrize(
    ("query", "bounded"),
    [
        ("SELECT a.id, b.id FROM public.a, public.b WHERE b.g = a.g", True),
        ("SELECT a.id, b.id FROM public.a, public.b WHERE b.g = a.g + 1", False),
        ("SELECT a.id, b.id FROM public.a, public.b WHERE b.g > a.g", False),
        ("SELECT a.id, b.id FROM public.a, public.b WHERE b.g IS NOT DISTINCT FROM a.g", False),
        ("SELECT a.id, b.id FROM public.a, public.b WHERE b.g = a.v", False),
        ("SELECT a.g, string_agg(a.id::text, ',' ORDER BY a.id) FROM public.a GROUP BY a.g", True),
        ("SELECT a.v, string_agg(a.id::text, ',' ORDER BY a.id) FROM public.a GROUP BY a.v", False),
        ("SELECT a.id, a.g FROM public.a", False),
    ],
)
def test_what_equals_a_changed_column_is_at_or_above_its_least_value(query: str, bounded: bool) -> None:
    assert (f">= {LEAST}" in _delta(query, "1")) is bounded


def test_an_equality_reaches_through_another_one() -> None:
    query = "SELECT a.id, c.id FROM public.a, public.b, public.a c WHERE a.g = b.g AND b.g = c.g"
    assert _delta(query, "2").count(f">= {LEAST}") >= 2


def test_of_two_changes_each_is_bounded_by_the_other() -> None:
    query = "SELECT a.id, b.id FROM public.a, public.b WHERE b.g = a.g"
    assert _delta(query, "1", "2").count(f">= {LEAST}") == 2


def test_without_a_least_value_nothing_is_bounded() -> None:
    made = view("SELECT a.id, b.id FROM public.a, public.b WHERE b.g = a.g")
    assert ">=" not in (made.delta(made.example_binding()) or "").replace("xid >=", "")
