"""Δscan(T) is the window of T's buffer."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from tests.unit.dvm.algebra import change
from tests.unit.dvm.shop import delta, schema, table

TABLE = "SELECT a.id FROM public.a"


@pytest.mark.parametrize(
    ("query", "changed", "delta"),
    [
        (TABLE, "1", "Δa"),
    ],
)
def test_its_change(query: str, changed: str, delta: str) -> None:
    assert change(query, Scan, changed) == delta


def test_only_a_table_is_the_table_less_its_heirs() -> None:
    known = schema(table("a", number=1), table("c", number=2), heirs={"1": ("2",)})
    both = delta("SELECT a.id FROM ONLY public.a", known)
    assert both is not None
    assert 'SELECT "__pgt_w" AS "__pgt_w", "id" FROM "__pgt_window_1" UNION ALL SELECT -"__pgt_w"' in both
    of_heirs = delta("SELECT a.id FROM ONLY public.a", known, changed=("2",))
    assert of_heirs is not None
    assert '"__pgt_window_1"' not in of_heirs
    assert 'SELECT -"__pgt_w" AS "__pgt_w", "id" FROM "__pgt_window_2"' in of_heirs


def test_the_old_state_of_only_a_table_is_its_own_rows_less_that_change() -> None:
    known = schema(table("a", number=1), table("b", number=2), table("c", number=3), heirs={"1": ("3",)})
    both = delta("SELECT a.id FROM public.b LEFT JOIN ONLY public.a ON a.g = b.g", known)
    assert both is not None
    assert 'FROM ONLY "public"."a" AS t' in both
    assert '"__pgt_window_1_only" AS c' in both
