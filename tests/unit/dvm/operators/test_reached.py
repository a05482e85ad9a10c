"""reached(ΔB, S): asked where the order is over what is stored, and nothing of B is left open."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.node import descendants
from airflow_provider_pgtrickle.engine.dvm.operators.reached import Reached
from tests.unit.dvm.shop import view


def asked(query: str, *changed: str) -> list[str]:
    """The gates of a query's change, as explain shows them."""
    plan = view(query).plan(changed or ("1", "2"))
    return [n.label().replace('"__pgt_row".', "") for n in descendants(plan) if isinstance(n, Reached)] if plan else []


@pytest.mark.parametrize(
    ("query", "gate"),
    [
        ("SELECT a.id, a.v FROM public.a ORDER BY a.v DESC, a.id LIMIT 3", 'by ["v" DESC, "id"], 3 rows'),
        ("SELECT a.v AS x FROM public.a ORDER BY (a.v + 1) LIMIT 3 OFFSET 2", 'by ["x" + 1], 3 rows'),
        ("SELECT a.g, sum(a.v) AS s FROM public.a GROUP BY a.g ORDER BY (sum(a.v)) LIMIT 1", 'by ["s"], 1 rows'),
        ("SELECT a.id FROM public.a UNION ALL SELECT b.id FROM public.b ORDER BY 1 LIMIT 2", 'by ["id"], 2 rows'),
    ],
)
def test_the_question_is_put_in_the_querys_own_order(query: str, gate: str) -> None:
    assert asked(query) == [f"reached: {gate}"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id FROM public.a ORDER BY a.v LIMIT 3",
        "SELECT a.v FROM public.a ORDER BY a.v LIMIT 0",
        "SELECT a.v FROM public.a ORDER BY a.v FETCH FIRST 3 ROWS WITH TIES",
        "SELECT a.v FROM public.a ORDER BY a.v OFFSET 3",
        "SELECT a.v, row_number() OVER (ORDER BY a.g) AS n FROM public.a ORDER BY a.v LIMIT 3",
        "SELECT a.v FROM public.a ORDER BY (SELECT max(b.id) FROM public.b WHERE b.g = a.v) LIMIT 3",
    ],
)
def test_where_it_has_no_answer_it_is_not_put(query: str) -> None:
    assert asked(query) == []
