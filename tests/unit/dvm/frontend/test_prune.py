"""Columns nobody reads are not captured, read or carried."""

from __future__ import annotations

import pytest

from tests.unit.dvm.shop import view


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("SELECT a.id FROM public.a", ("id",)),
        ("SELECT x.v FROM (SELECT a.v, a.t, a.g FROM public.a) x", ("id", "v")),
        ("SELECT a.id FROM public.a WHERE a.g > 1", ("id", "g")),
        ("SELECT count(*) AS n FROM public.a", ("id",)),
        ("SELECT DISTINCT a.g, a.v FROM public.a", ("id", "g", "v")),
    ],
)
def test_a_source_is_read_for_what_is_used_and_its_key(query: str, read: tuple[str, ...]) -> None:
    assert view(query).used == {"1": read}


def test_what_a_subquery_reads_is_read() -> None:
    used = view("SELECT a.id FROM public.a WHERE a.v > ALL (SELECT b.v FROM public.b WHERE b.g = a.g)").used
    assert used == {"1": ("id", "g", "v"), "2": ("id", "g", "v")}
