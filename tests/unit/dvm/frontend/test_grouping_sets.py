"""GROUPING SETS, CUBE and ROLLUP are a union of groupings."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.dvm.frontend.grouping_sets import grouping_sets
from airflow_provider_pgtrickle.dvm.reasons import Refused
from tests.unit.dvm.shop import rewritten, schema, table


def test_rollup_is_a_union_of_groupings() -> None:
    text = rewritten(grouping_sets, "SELECT a.g, sum(a.v) AS s FROM public.a GROUP BY ROLLUP (a.g)")
    assert text.count("UNION ALL") == 1
    assert text.count("GROUP BY") == 1


def test_cube_of_two_is_four_groupings() -> None:
    text = rewritten(grouping_sets, "SELECT a.g, a.v, count(*) AS n FROM public.a GROUP BY CUBE (a.g, a.v)")
    assert text.count("UNION ALL") == 3


def test_more_than_64_groupings_are_refused() -> None:
    columns = ", ".join(f"a.c{n}" for n in range(65))
    known = schema(table("a", tuple(f"c{n}" for n in range(65))))
    with pytest.raises(Refused, match="64"):
        rewritten(grouping_sets, f"SELECT count(*) AS n FROM public.a GROUP BY ROLLUP ({columns})", known)
