"""What a content is held against, as text; `tests/database/refresh/test_verify.py` has PostgreSQL answer it."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm import Binding, SourceBinding, Window, as_of
from airflow_provider_pgtrickle.engine.dvm.node import descendants
from airflow_provider_pgtrickle.engine.dvm.operators.stored import Stored
from tests.unit.dvm.shop import schema, view

CHANGED = Binding({"1": SourceBinding(True, Window(("pgtrickle_changes", "changes_1"), "5:5:", "9:9:"))})
ALL = {(key, name) for key in ("1", "2") for name in ("id", "g", "v", "p", "t")}


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("SELECT id, v FROM public.a", set()),
        ("SELECT g, count(*) AS n, sum(v) AS s, min(t) AS least FROM public.a GROUP BY g", set()),
        ("SELECT g, array_agg(v) AS vs FROM public.a GROUP BY g", {"vs"}),
        ("SELECT g, array_agg(v ORDER BY id) AS vs FROM public.a GROUP BY g", set()),
        (
            "SELECT x.g, x.vs, x.n FROM (SELECT a.g, array_agg(a.v) AS vs, count(*) AS n FROM public.a GROUP BY a.g) x",
            {"vs"},
        ),
        ("SELECT id, rank() OVER (ORDER BY v) AS r FROM public.a", set()),
        ("SELECT DISTINCT ON (g) g, v FROM public.a ORDER BY g, t", {"v"}),
        ("SELECT id, v FROM public.a ORDER BY v LIMIT 3", {"id"}),
        ("SELECT id, v FROM public.a ORDER BY v, id LIMIT 3", set()),
    ],
)
def test_columns_are_open_where_right_answers_differ(query: str, order: set[str]) -> None:
    assert view(query).left_open.order == order


def test_sums_are_open_in_their_last_digits_where_they_may_be_floats() -> None:
    assert view("SELECT g, sum(p) AS s, avg(v) AS a FROM public.a GROUP BY g").left_open.rounded == set()
    assert view("SELECT g, sum(f(v)) AS s FROM public.a GROUP BY g").left_open.rounded == {"s"}


def test_the_answer_at_the_frontier_reads_old_sources_and_no_stored_row() -> None:
    made = view("SELECT a.g, sum(b.v) AS s FROM public.a JOIN public.b ON b.id = a.g GROUP BY a.g")
    text = made.before(CHANGED)
    assert text is not None
    assert '"__pgt_old_1"' in text
    assert '"__pgt_old_2"' not in text
    assert made.tree is not None
    assert not any(isinstance(node, Stored) for node in descendants(made.tree))
    assert made.before(Binding()) == made.full(Binding())


def test_the_declared_text_is_asked_of_old_sources_as_it_stands() -> None:
    text = as_of("SELECT a.g, count(*) AS n FROM public.a GROUP BY a.g", schema(), CHANGED, ALL)
    assert text is not None
    assert 'FROM "__pgt_old_1" AS "a" GROUP BY a.g' in text
    assert as_of("SELECT a.g FROM public.a", schema(), Binding(), ALL) == (
        'SELECT "g" FROM (SELECT a.g FROM public.a) AS __pgt_q1("g")'
    )


@pytest.mark.parametrize(
    ("item", "columns"),
    [
        ("public.a x(i, j)", '"id" AS "id", NULL AS "g", NULL AS "v", NULL AS "p", NULL AS "t"'),
        (
            "(public.a JOIN public.b USING (id)) x(i, j)",
            '"id" AS "id", "g" AS "g", "v" AS "v", "p" AS "p", "t" AS "t"',
        ),
    ],
)
def test_columns_that_an_alias_counts_keep_their_places(item: str, columns: str) -> None:
    text = as_of(f"SELECT x.i FROM {item}", schema(), CHANGED, ALL)
    assert text is not None
    assert f'(SELECT {columns} FROM "__pgt_old_1")' in text


def test_a_query_that_names_no_column_counts_rows_of_a_key() -> None:
    text = as_of("SELECT count(*) AS n FROM public.a", schema(), CHANGED, ALL)
    assert text is not None
    assert 'SELECT 1 AS "__pgt_w", "id" FROM' in text


def test_a_column_whose_changes_are_not_captured_can_not_be_asked_for() -> None:
    query = "SELECT x.id FROM (SELECT a.id, a.t FROM public.a) x"
    assert as_of(query, schema(), CHANGED, ALL - {("1", "t")}) is None
    assert as_of(query, schema(), Binding(), ALL - {("1", "t")}) is not None
