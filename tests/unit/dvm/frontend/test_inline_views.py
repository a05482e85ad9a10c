"""Views become derived tables, to a fixpoint."""

from __future__ import annotations

from airflow_provider_pgtrickle.engine.dvm import Reason
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


def test_a_table_without_its_children_is_read_through_all_of_them() -> None:
    known = schema(table("a", number=1), table("c", number=2), heirs={"1": ("2",)})
    made = view("SELECT a.id FROM ONLY public.a", known)
    assert (made.refusal, set(made.sources), set(made.used)) == (None, {"1", "2"}, {"1", "2"})
    refusal = view("SELECT c.id FROM ONLY public.c", known).refusal
    assert refusal is not None
    assert "in two ways" in refusal.detail
