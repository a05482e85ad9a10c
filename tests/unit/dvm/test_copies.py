"""A copy's change is its rule, and a query reads a copy wherever it read the table."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm import Copy, columns_in, copying, instead
from airflow_provider_pgtrickle.engine.dvm.binding import Binding
from airflow_provider_pgtrickle.engine.errors import QueryError
from tests.unit.dvm.algebra import written
from tests.unit.dvm.shop import schema, table, view

FROZEN = '"v" < 5'
COPY = Copy("public", "kept", frozenset({"id", "g"}))


def test_its_change_is_the_rule_for_the_keys_that_changed() -> None:
    copy = copying(view("SELECT a.id, a.v FROM public.a"), FROZEN)
    plan = copy.plan(["1"])
    assert plan is not None
    assert written(plan) == "(σ(a) ▷ σ(stored))[K] − (σ(stored) ▷ σ(a))[K]"
    assert copy.plan(["2"]) is None
    assert copy.wanted_keys() == {("1", ("id",))}


def test_its_content_is_the_table_until_it_is_filled() -> None:
    copy = copying(view("SELECT a.id, a.v FROM public.a"), FROZEN)
    assert copy.full(Binding()) == copy.storage_query()
    assert "kept" not in copy.storage_query()
    assert copy.full(Binding(stored=("public", "kept"), is_filled=True)).count("kept") == 3


def test_only_the_primary_key_holds_in_it() -> None:
    known = schema(table("a", unique_keys=(("g",),)))
    plain = view("SELECT a.id, a.g, a.v FROM public.a", known)
    copy = copying(plain, FROZEN)
    assert plain.storage is not None
    assert copy.storage is not None
    assert plain.storage.unique_keys == {frozenset({"id"}), frozenset({"g"})}
    assert copy.storage.unique_keys == {frozenset({"id"})}


def test_what_freezes_is_no_reading_that_moves_rows() -> None:
    copy = copying(
        view("SELECT a.id, a.v FROM public.a"), "\"v\" < (now() AT TIME ZONE 'UTC' - '1 day'::interval)::date"
    )
    assert len(copy.readings) == 1
    assert copy.clock_probe() is None
    assert columns_in('"a" < 1 OR "B c" < now()') == {"a", "B c"}


@pytest.mark.parametrize("query", ["SELECT a.g FROM public.a GROUP BY a.g", "SELECT c.g FROM public.c"])
def test_what_has_no_key_is_not_copied(query: str) -> None:
    keyless = schema(table("a"), table("c", ("g", "v"), 3))
    with pytest.raises(QueryError, match="It can't be copied"):
        copying(view(query, keyless), FROZEN)


@pytest.mark.parametrize(
    ("query", "over"),
    [
        ("SELECT a.id FROM public.a", 'SELECT a.id FROM "public"."kept" AS a'),
        ("SELECT x.g FROM public.a x, public.b", 'SELECT x.g FROM "public"."kept" AS x, public.b'),
        (
            "SELECT x.h FROM public.a x(i, h)",
            'SELECT x.h FROM (SELECT "id" AS "i", "g" AS "h" FROM "public"."kept") AS x',
        ),
        (
            "SELECT b.id FROM public.b WHERE EXISTS (SELECT 1 FROM public.a WHERE a.g = b.g)",
            'SELECT b.id FROM public.b WHERE EXISTS(SELECT 1 FROM "public"."kept" AS a WHERE a.g = b.g)',
        ),
        (
            "SELECT a.id FROM public.a LEFT JOIN (public.b JOIN public.a y ON y.id = b.id) ON a.g = b.g",
            'SELECT a.id FROM "public"."kept" AS a LEFT JOIN'
            ' (public.b JOIN "public"."kept" AS y ON y.id = b.id) ON a.g = b.g',
        ),
        ("SELECT a.id FROM public.a TABLESAMPLE SYSTEM (5)", None),
        ("SELECT x.p FROM (public.a JOIN public.b USING (id)) x(p)", None),
        ("SELECT a.id FROM ONLY public.a", None),
    ],
)
def test_a_query_reads_the_copy_in_the_tables_place(query: str, over: str | None) -> None:
    known = schema(table("a"), table("b", number=2), heirs={"1": ()})
    assert instead(query, known, {"1": COPY}) == over
