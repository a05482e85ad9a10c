"""Which queries' contents follow from what is stored for the query before them, and why others' don't."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_pgtrickle.engine.dvm import Anew, Binding, kept
from tests.unit.dvm.shop import schema, table, view

FILTERED = "SELECT a.id, a.v, a.g FROM public.a WHERE a.v > 3"
JOINED = "SELECT a.id, a.g, b.v FROM public.a JOIN public.b ON b.id = a.g WHERE a.v > 3"
LEFT = "SELECT a.id, b.id AS other, b.v FROM public.a LEFT JOIN public.b ON b.id = a.g"
SUMS = "SELECT a.g, sum(a.v) AS s, count(*) AS n FROM public.a WHERE a.v > 1 GROUP BY a.g"
ONE = "SELECT sum(a.v) AS s, count(*) AS n FROM public.a"
NUMERIC = "SELECT a.n, count(*) AS c FROM (SELECT a.p / 3 AS n FROM public.a) a GROUP BY a.n"
RANKS = "SELECT a.id, a.g, rank() OVER (PARTITION BY a.g ORDER BY a.v) AS r FROM public.a"
SUBQUERY = "SELECT a.id, a.v FROM public.a WHERE EXISTS (SELECT FROM public.b WHERE b.g = a.id)"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (FILTERED, FILTERED, "rewritten"),
        (FILTERED, f"{FILTERED} AND a.g = 1", "filter narrowed"),
        (FILTERED, FILTERED.replace("a.g FROM", "a.g, a.v + a.g AS s FROM"), "1 column added"),
        (FILTERED, FILTERED.replace(", a.g FROM", " FROM"), "1 column removed"),
        (FILTERED, FILTERED.replace("a.v, a.g", "a.g AS v, a.t"), "1 column added, 1 column removed"),
        (JOINED, f"{JOINED.replace('b.v', 'b.v, b.t')} AND b.p > 1", "1 column added, filter narrowed"),
        (LEFT, f"{LEFT.replace('b.v', 'b.v, b.t, a.t AS u')} WHERE a.id > 7", "2 columns added, filter narrowed"),
        (SUMS, SUMS.replace("count(*) AS n", "avg(a.v) AS m"), "1 column added, 1 column removed"),
        (SUMS, f"{SUMS} HAVING count(*) > 3 AND sum(a.v) < 100", "filter narrowed"),
        (SUMS, SUMS.replace("a.v > 1", "a.v > 1 AND a.g = 5"), "filter narrowed"),
        (f"{SUMS} HAVING count(*) > 3", f"{SUMS} HAVING count(*) > 3 AND a.g < 9", "filter narrowed"),
        (ONE, "SELECT sum(a.v) AS s, avg(a.v) AS m FROM public.a", "1 column added, 1 column removed"),
        (NUMERIC, NUMERIC.replace("AS c FROM", "AS c, a.n * 2 AS d FROM"), "1 column added"),
        (RANKS, RANKS.replace("AS r", "AS r, a.g + 1 AS h"), "1 column added"),
        (SUBQUERY, f"{SUBQUERY.replace('a.v', 'a.v, a.t')} AND a.v > 3", "1 column added, filter narrowed"),
    ],
)
def test_a_query_that_follows_from_what_is_stored(old: str, new: str, words: str) -> None:
    assert kept(view(old), view(new)).words == words


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (FILTERED, FILTERED.replace("3", "2"), "rows may come in"),
        (f"{SUMS} HAVING count(*) > 3", SUMS, "rows may come in"),
        (SUMS, SUMS.replace("a.v > 1", "a.v > 1 AND a.v < 9"), "a filter of the rows that it adds up is new"),
        (ONE, f"{ONE} WHERE a.g = 1", "a filter of the rows that it adds up is another"),
        (NUMERIC, f"{NUMERIC.split(' GROUP')[0]} WHERE a.n > 1 GROUP BY a.n", "a filter of the rows"),
        (SUMS, SUMS.replace("count(*) AS n", "sum(a.p) AS m"), "is not stored"),
        (SUMS, SUMS.replace("a.g", "a.p"), "told apart by other columns"),
        (JOINED, JOINED.replace("JOIN", "LEFT JOIN"), "joins other tables"),
        (LEFT.replace("b.id AS other, ", ""), LEFT.replace("b.id AS other, b.v", "b.v, b.t"), "nor is a key|neither"),
        (LEFT, LEFT.replace("a.g", "a.v"), "a join's or a subquery's condition"),
        (LEFT, f"{LEFT} AND b.v > 1", "condition|a filter below an outer join"),
        (SUBQUERY, SUBQUERY.replace("EXISTS", "NOT EXISTS"), "what is below"),
        (FILTERED, f"{FILTERED} ORDER BY a.v LIMIT 3", "LIMIT"),
        (FILTERED, FILTERED.replace("public.a", "public.b AS a"), "other tables"),
        (RANKS, RANKS.replace("ORDER BY a.v", "ORDER BY a.p"), "what is below"),
    ],
)
def test_a_query_that_does_not_says_why(old: str, new: str, why: str) -> None:
    with pytest.raises(Anew, match=why):
        kept(view(old), view(new))


def test_what_the_new_query_equates_is_no_key_to_find_rows_by() -> None:
    """The row of b that a stored row was made from is told by b.v, and not by what is compared with b.id only now."""
    known = schema(table("a", number=1), table("b", number=2, unique_keys=(("v",),)))
    joined = "SELECT a.id, a.g FROM public.a JOIN public.b ON b.v = a.v"
    with pytest.raises(Anew, match="is not stored"):
        kept(view(joined, known), view(f"{joined} WHERE b.id = a.g", known))
    by_key = f"{joined} WHERE b.id = a.g"
    assert kept(view(by_key, known), view(by_key.replace("a.g FROM", "a.g, b.t FROM"), known)).words == "1 column added"


def test_only_what_changes_is_read() -> None:
    """Fewer columns are no change of a row, a filter is one of the rows that go, a new value of those that stay."""
    quiet = Binding(stored=("public", "st"))
    assert kept(view(FILTERED), view(FILTERED.replace(", a.g FROM", " FROM"))).change(quiet) is None
    narrowed = kept(view(FILTERED), view(f"{FILTERED} AND a.g = 1"))
    assert narrowed.change(quiet) == (
        'SELECT -1 AS "__pgt_w", __pgt_q1."id", __pgt_q1."v", __pgt_q1."g" FROM "public"."st" AS __pgt_q1'
        ' WHERE (CASE WHEN (__pgt_q1."g" = 1) THEN FALSE ELSE TRUE END)'
    )
    assert (narrowed.reads_stored, narrowed.rewrites) == (True, False)
    added = kept(view(FILTERED), view(FILTERED.replace("a.g FROM", "a.g, 7 / a.g AS x FROM") + " AND a.g > 0"))
    assert added.rewrites
    in_place = added.in_place(quiet)
    assert in_place is not None
    assert in_place.names == ("x",)
    assert 'CASE WHEN (__pgt_q1."g" > 0) THEN' in in_place.values
    assert "UNION ALL" not in str(added.change(quiet)), "only the rows that go are left"
    # A value that changes under its name is handed on, so both rows are computed.
    other = kept(view(FILTERED), view(FILTERED.replace("a.g FROM", "a.v AS g FROM").replace("a.v, ", "a.g AS v, ")))
    assert (other.in_place(quiet), str(other.change(quiet)).count("UNION ALL")) == (None, 1)


def test_what_is_pending_goes_through_the_same_expressions() -> None:
    bound = view(FILTERED).example_binding()
    narrowed = kept(view(FILTERED), view(f"{FILTERED} AND a.g = 1"))
    assert str(narrowed.change(bound)).endswith('("v" > 3)) AND ((__pgt_q2."g" = 1))'.replace('("v"', '(__pgt_q2."v"'))
    quiet = replace(bound, sources={key: replace(s, changed=False) for key, s in bound.sources.items()})
    assert "changes_1" not in str(narrowed.change(quiet))
