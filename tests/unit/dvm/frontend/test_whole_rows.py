"""t.* → ROW(t.id, …)::public.t: a row as one value is its columns, named by the table's row type."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.frontend.inline_views import inline_views
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import parse
from airflow_provider_pgtrickle.engine.dvm.frontend.whole_rows import whole_rows
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused
from tests.unit.dvm.shop import rewritten, schema, table

NARROW = schema(table("a", ("id", "v"), 1), table("b", ("g", "v"), 2))


def _rewritten(query: str) -> str:
    return rewritten(whole_rows, query, NARROW)


def test_a_row_is_written_out_under_its_type() -> None:
    text = _rewritten("SELECT f(a.*) AS j FROM public.a")
    assert text == 'SELECT f(CAST(ROW("a"."id", "a"."v") AS "public"."a")) AS j FROM public.a'


def test_columns_go_by_the_names_that_the_query_gives_them() -> None:
    assert 'ROW("x"."one", "x"."v")' in _rewritten("SELECT f(x.*) AS j FROM public.a x(one)")


def test_a_subquery_may_name_the_row_around_it() -> None:
    assert 'ROW("a"."id", "a"."v")' in _rewritten("SELECT (SELECT count(a.*) FROM public.b) AS n FROM public.a")


def test_an_outer_join_gives_null_and_not_a_row_of_nulls() -> None:
    text = _rewritten("SELECT count(a.*) AS n FROM public.b LEFT JOIN public.a ON a.id = b.g")
    assert 'CASE WHEN ("a"."id") IS DISTINCT FROM NULL THEN CAST(ROW' in text


def test_a_view_has_a_row_type_too() -> None:
    known = schema(
        table("a", ("id", "v"), 1),
        views={("public", "w"): "SELECT a.id FROM public.a"},
        view_columns={("public", "w"): ("id",)},
    )
    assert 'CAST(ROW("w"."id") AS "public"."w")' in whole_rows(
        inline_views(parse("SELECT f(w.*) AS j FROM public.w"), known), known
    ).sql("postgres")


def test_a_derived_tables_row_is_a_record_with_the_names_of_its_columns() -> None:
    text = _rewritten("SELECT f(x.*) AS j FROM (SELECT a.id, a.v FROM public.a) x(one)")
    assert 'f((SELECT "__pgt_i" FROM (SELECT "x"."one" AS "one", "x"."v" AS "v") AS "__pgt_i"))' in text


def test_so_is_the_row_of_a_with_item() -> None:
    text = _rewritten("WITH c(n) AS (SELECT a.id FROM public.a) SELECT f(d.*) AS j FROM c AS d")
    assert '(SELECT "d"."n" AS "n")' in text


def test_what_has_no_column_that_is_never_null_gets_one() -> None:
    text = _rewritten("SELECT f(b.*) AS j, g(b.*) AS k FROM public.a LEFT JOIN public.b ON b.g = a.id")
    assert text.count("TRUE AS") == 1
    assert text.count('CASE WHEN ("b"."__pgt_found") IS DISTINCT FROM NULL THEN CAST(ROW("b"."g", "b"."v")') == 2


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT f(x.*) AS j FROM (SELECT a.id, a.v AS id FROM public.a) x", "no row type with a name"),
        (
            "SELECT (SELECT f(b.*) FROM (public.a LEFT JOIN public.b ON b.g = a.id) AS j(w)) AS n FROM public.a",
            "names no relation in sight",
        ),
    ],
)
def test_a_row_whose_value_is_not_known_is_refused(query: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        _rewritten(query)


def test_a_row_of_a_stream_table_is_refused() -> None:
    with pytest.raises(Refused, match="internal columns"):
        rewritten(whole_rows, "SELECT f(a.*) AS j FROM public.a", schema(table("a", kind="STREAM_TABLE")))
