"""ORDER BY without LIMIT is dropped: a relation has no order."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.frontend.drop_order import drop_order
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused
from tests.unit.dvm.shop import rewritten


def test_an_order_nobody_sees_is_dropped() -> None:
    assert "ORDER BY" not in rewritten(drop_order, "SELECT a.id FROM public.a ORDER BY a.id")


def test_the_order_of_a_limited_part_stays() -> None:
    assert "ORDER BY" in rewritten(drop_order, "SELECT x.id FROM (SELECT a.id FROM public.a ORDER BY a.id LIMIT 3) x")


def test_the_order_of_an_array_stays() -> None:
    assert "ORDER BY" in rewritten(drop_order, "SELECT ARRAY(SELECT a.id FROM public.a ORDER BY a.id) AS x")


@pytest.mark.parametrize("call", ["row_number() OVER ()", "last_value(x.t) OVER (PARTITION BY x.v)"])
def test_a_window_that_leans_on_a_subquerys_order_is_refused(call: str) -> None:
    with pytest.raises(Refused, match="takes its order from a subquery"):
        rewritten(drop_order, f"SELECT {call} AS w FROM (SELECT a.t, a.v FROM public.a ORDER BY a.v, a.t) x")


@pytest.mark.parametrize("call", ["row_number() OVER (ORDER BY x.v)", "sum(x.v) OVER ()"])
def test_a_window_with_an_order_of_its_own_or_without_a_need_is_not(call: str) -> None:
    assert "ORDER BY a.v" not in rewritten(
        drop_order, f"SELECT {call} AS w FROM (SELECT a.v FROM public.a ORDER BY a.v) x"
    )


def test_an_aggregate_that_leans_on_a_subquerys_order_is_refused() -> None:
    with pytest.raises(Refused, match="takes its order from a subquery"):
        rewritten(drop_order, "SELECT string_agg(x.t, ',') FROM (SELECT a.t FROM public.a ORDER BY a.v) x")
