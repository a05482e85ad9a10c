"""What a query may be ordered by last, so that rows that tie on that, too, look alike."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.frontend.build import TreeBuilder
from airflow_provider_pgtrickle.engine.dvm.frontend.inline_views import inline_views
from airflow_provider_pgtrickle.engine.dvm.frontend.mark_sets import mark_sets
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import parse
from airflow_provider_pgtrickle.engine.dvm.frontend.tie_breakers import tie_breakers
from tests.unit.dvm.shop import schema, table

KNOWN = schema(table("a", number=1), table("k", ("g", "p"), 2))


def _breakers(query: str) -> list[str] | None:
    found = tie_breakers(TreeBuilder(KNOWN), mark_sets(inline_views(parse(query), KNOWN), KNOWN))
    return None if found is None else [f.sql("postgres").replace('"', "") for f in found]


@pytest.mark.parametrize(
    ("query", "last"),
    [
        ("SELECT a.v FROM public.a", ["a.id"]),
        ("SELECT x.v FROM public.a x(i)", ["x.i"]),
        ("SELECT k.g FROM public.k", ["k.g", "k.p"]),
        ("SELECT a.v FROM (public.a JOIN public.k ON a.g = k.g)", ["a.id", "k.g", "k.p"]),
        ("SELECT s.n FROM (SELECT a.v AS n FROM public.a) s", ["CAST(s.n AS TEXT)"]),
        ("SELECT a.g, count(*) AS n FROM public.a GROUP BY a.g", ["a.g"]),
        ("SELECT count(*) AS n FROM public.a", []),
        ("SELECT DISTINCT a.g, a.v FROM public.a", ["1", "2"]),
        ("SELECT a.g FROM public.a UNION SELECT k.g FROM public.k", ["1"]),
    ],
)
def test_rows_are_told_apart_by_what_makes_them(query: str, last: list[str]) -> None:
    assert _breakers(query) == last


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.g FROM public.a UNION ALL SELECT k.g FROM public.k",
        "SELECT generate_series(1, a.v) AS n FROM public.a",
        "SELECT n FROM generate_series(1, 3) n",
    ],
)
def test_nothing_is_claimed_where_it_is_not_known(query: str) -> None:
    assert _breakers(query) is None
