"""The rewrite passes, each by what it makes of a query."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.dvm import Reason
from airflow_provider_pgtrickle.dvm.expressions import returns_set
from airflow_provider_pgtrickle.dvm.frontend.distinct_on import distinct_on
from airflow_provider_pgtrickle.dvm.frontend.drop_order import drop_order
from airflow_provider_pgtrickle.dvm.frontend.grouping_sets import grouping_sets
from airflow_provider_pgtrickle.dvm.frontend.inline_views import inline_views
from airflow_provider_pgtrickle.dvm.frontend.mark_sets import mark_sets
from airflow_provider_pgtrickle.dvm.frontend.parse import parse
from airflow_provider_pgtrickle.dvm.frontend.refuse import refuse
from airflow_provider_pgtrickle.dvm.reasons import Refused
from airflow_provider_pgtrickle.errors import QueryError
from tests.unit.dvm.shop import rewritten, schema, table, view


def test_a_view_becomes_a_derived_table_under_its_alias() -> None:
    known = schema(views={("public", "w"): "SELECT a.id FROM public.a"})
    assert "(SELECT a.id FROM public.a) AS x" in rewritten(lambda q, s: q, "SELECT x.id FROM public.w x", known)


def test_views_of_views_are_followed_to_their_tables() -> None:
    views = {("public", "w"): "SELECT v.id FROM public.v", ("public", "v"): "SELECT a.id FROM public.a"}
    assert set(view("SELECT id FROM public.w", schema(views=views)).sources) == {"1"}


def test_a_view_that_unfolds_to_thousands_of_tables_is_refused() -> None:
    views = {("public", "v0"): "SELECT a.id FROM public.a"}
    for n in range(1, 14):
        below = f"public.v{n - 1}"
        views["public", f"v{n}"] = f"SELECT x.id FROM {below} x UNION ALL SELECT y.id FROM {below} y"
    refusal = view("SELECT id FROM public.v13", schema(views=views)).refusal
    assert refusal is not None
    assert refusal.reason is Reason.TOO_LARGE


def test_distinct_on_is_the_first_row_of_each_partition() -> None:
    text = rewritten(distinct_on, "SELECT DISTINCT ON (a.g) a.g, a.v FROM public.a ORDER BY a.g, a.v DESC")
    assert "ROW_NUMBER() OVER (PARTITION BY a.g ORDER BY a.g, a.v DESC" in text
    assert text.endswith('"__pgt_rank" = 1')


def test_rollup_is_a_union_of_groupings() -> None:
    text = rewritten(grouping_sets, "SELECT a.g, sum(a.v) AS s FROM public.a GROUP BY ROLLUP (a.g)")
    assert text.count("UNION ALL") == 1
    assert text.count("GROUP BY") == 1


def test_cube_of_two_is_four_groupings() -> None:
    text = rewritten(grouping_sets, "SELECT a.g, a.v, count(*) AS n FROM public.a GROUP BY CUBE (a.g, a.v)")
    assert text.count("UNION ALL") == 3


def test_more_than_64_groupings_are_refused() -> None:
    columns = ", ".join(f"a.c{n}" for n in range(65))
    known = schema(table("a", tuple(f"c{n}" for n in range(65))))
    with pytest.raises(Refused, match="64"):
        rewritten(grouping_sets, f"SELECT count(*) AS n FROM public.a GROUP BY ROLLUP ({columns})", known)


def test_an_order_nobody_sees_is_dropped() -> None:
    assert "ORDER BY" not in rewritten(drop_order, "SELECT a.id FROM public.a ORDER BY a.id")


def test_the_order_of_a_limited_part_stays() -> None:
    assert "ORDER BY" in rewritten(drop_order, "SELECT x.id FROM (SELECT a.id FROM public.a ORDER BY a.id LIMIT 3) x")


def test_the_order_of_an_array_stays() -> None:
    assert "ORDER BY" in rewritten(drop_order, "SELECT ARRAY(SELECT a.id FROM public.a ORDER BY a.id) AS x")


def test_an_aggregate_that_leans_on_a_subquerys_order_is_refused() -> None:
    with pytest.raises(Refused, match="takes its order from a subquery"):
        rewritten(drop_order, "SELECT string_agg(x.t, ',') FROM (SELECT a.t FROM public.a ORDER BY a.v) x")


def test_a_function_that_returns_a_set_is_marked() -> None:
    known = schema(set_returning=frozenset({"both"}))
    query = mark_sets(inline_views(parse("SELECT both(a.id) AS x FROM public.a"), known), known)
    assert returns_set(query.expressions[0])
    assert not returns_set(parse("SELECT other(a.id) AS x FROM public.a").expressions[0])


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT a.id FROM public.a WHERE a.v < random()", Reason.VOLATILE_FUNCTION),
        ("SELECT a.id, now() AS n FROM public.a", Reason.TIME_DEPENDENT),
        ("SELECT a.id, CURRENT_DATE AS n FROM public.a", Reason.TIME_DEPENDENT),
        ("SELECT x.id FROM (SELECT a.id FROM public.a LIMIT 3) x", Reason.LIMIT_WITHOUT_ORDER),
        ("SELECT f(x.*) AS y FROM (SELECT a.id FROM public.a) x", Reason.WHOLE_ROW),
    ],
)
def test_what_has_no_difference_is_refused_by_name(query: str, reason: Reason) -> None:
    refusal = view(query).refusal
    assert refusal is not None
    assert refusal.reason is reason
    assert refusal.remedy


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id FROM public.a LIMIT 3",
        "SELECT a.id FROM public.a FOR UPDATE",
        "SELECT a.id FROM public.a TABLESAMPLE bernoulli (10)",
    ],
)
def test_what_can_be_no_stream_table_at_all_is_an_error_with_a_remedy(query: str) -> None:
    with pytest.raises(QueryError) as found:
        view(query)
    assert found.value.remedy


@pytest.mark.parametrize("kind", ["MATVIEW", "FOREIGN_TABLE", "UNLOGGED_TABLE"])
def test_a_source_without_triggers_is_refused(kind: str) -> None:
    with pytest.raises(Refused, match="can't have triggers"):
        rewritten(refuse, "SELECT a.id FROM public.a", schema(table("a", kind=kind)))
