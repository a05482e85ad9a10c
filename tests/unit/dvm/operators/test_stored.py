"""The stream table's own rows: what the last refresh left, hidden columns included."""

from __future__ import annotations

from airflow_provider_pgtrickle.engine.dvm.node import descendants
from airflow_provider_pgtrickle.engine.dvm.operators.stored import Stored
from tests.unit.dvm.shop import delta, view

GROUPED = "SELECT a.g, stddev(a.v) AS s FROM public.a GROUP BY a.g"


def test_it_stands_for_the_old_rows_of_a_query_replaced_by_key() -> None:
    plan = view(GROUPED).plan(["1"])
    assert plan is not None
    assert any(isinstance(n, Stored) for n in descendants(plan))


def test_it_is_read_where_the_binding_says() -> None:
    text = delta(GROUPED)
    assert text is not None
    assert '"…"."stream table"' in text
