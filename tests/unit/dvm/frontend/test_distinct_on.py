"""DISTINCT ON is the first row of each partition."""

from __future__ import annotations

from airflow_provider_pgtrickle.engine.dvm.frontend.distinct_on import distinct_on
from tests.unit.dvm.shop import rewritten


def test_distinct_on_is_the_first_row_of_each_partition() -> None:
    text = rewritten(distinct_on, "SELECT DISTINCT ON (a.g) a.g, a.v FROM public.a ORDER BY a.g, a.v DESC")
    assert "ROW_NUMBER() OVER (PARTITION BY a.g ORDER BY a.g, a.v DESC" in text
    assert text.endswith('"__pgt_rank" = 1')
