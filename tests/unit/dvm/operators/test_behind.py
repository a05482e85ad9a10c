"""R ⋈ K: rows at or behind the first changed place of their partition; hints say it to the leaves."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.explain import looked_up, ranges
from airflow_provider_pgtrickle.engine.dvm.node import Keys, Node, Onward, descendants
from airflow_provider_pgtrickle.engine.dvm.operators.behind import Behind, Firsts
from airflow_provider_pgtrickle.engine.dvm.operators.restrict import Restrict, of_nulls
from airflow_provider_pgtrickle.engine.dvm.operators.stored import Stored
from tests.unit.dvm.algebra import written
from tests.unit.dvm.shop import view

RUNNING = "SELECT a.id, rank() OVER (PARTITION BY a.g ORDER BY a.id) AS r FROM public.a"
WHOLE = "SELECT a.id, rank() OVER (ORDER BY a.id DESC) AS r FROM public.a"
JOINED = "SELECT a.id, sum(b.v) OVER (PARTITION BY a.g ORDER BY a.id) AS s FROM public.a JOIN public.b ON b.id = a.id"
APART = "SELECT a.id, sum(b.v) OVER (PARTITION BY a.g ORDER BY b.v) AS s FROM public.a JOIN public.b ON b.id = a.id"


def plan(query: str, changed: str = "1 2") -> Node:
    found = view(query).plan(changed.split())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("query", "delta"),
    [
        (RUNNING, "π(ω(a[(g, id) ≥ first(Δa)])) − stored[(__pgt_key, id) ≥ first(Δa)]"),
        (WHOLE, "π(ω(a[id ≥ first(Δa)])) − stored[id ≥ first(Δa)]"),
    ],
)
def test_its_rows_replace_the_stored_ones_from_there_on(query: str, delta: str) -> None:
    assert view(query).sink == "carry forward"
    assert written(plan(query)) == delta


def test_one_key_set_serves_all_that_read_it() -> None:
    keys = {n.keys.relation for n in descendants(plan(RUNNING)) if isinstance(n, (Behind, Restrict))}
    assert [type(k) for k in keys] == [Firsts]


@pytest.mark.parametrize(
    ("query", "ranged", "equal"),
    [
        (RUNNING, {("1", ("g",), "id")}, set()),
        (WHOLE, {("1", (), "id")}, set()),
        # b.id equals a.id, but is found by no partition.
        (JOINED, {("1", ("g",), "id")}, {("1", ("id",)), ("2", ("id",))}),
        # A place in b says nothing of rows of a by their partition alone.
        (APART, set(), {("1", ("g",)), ("1", ("id",)), ("2", ("id",))}),
    ],
)
def test_what_is_read_from_a_place_on(query: str, ranged: set, equal: set) -> None:
    widest = view(query)._widest_plan
    assert widest is not None
    assert (set(ranges(widest)), set(looked_up(widest))) == (ranged, equal)


@pytest.mark.parametrize(
    ("names", "place"),
    [
        ({"p": "a", "q": "b", "o": "c"}, Onward("c", "o", descending=True)),
        ({"p": "a", "o": "c"}, None),
        ({"p": "a", "q": "b"}, None),
    ],
)
def test_a_place_goes_with_the_whole_key_alone(names: dict[str, str], place: Onward | None) -> None:
    keys = Keys(Stored(()), (("p", "p"), ("q", "q")), onward=Onward("o", "o", descending=True))
    mapped = keys.mapped(names)
    assert mapped is not None
    assert mapped.onward == place


def test_a_place_may_be_all_that_is_left_of_a_key_without_columns() -> None:
    keys = Keys(Stored(()), (), onward=Onward("o", "o"))
    assert (keys.mapped({"o": "c"}), keys.mapped({})) != (None, None)
    assert keys.mapped({"p": "a"}) is None


def test_each_choice_of_nulls_is_looked_up_once() -> None:
    assert [len(nulls) for nulls in of_nulls([("a", "a"), ("b", "b")])] == [0, 1, 1, 2]
