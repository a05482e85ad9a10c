"""LIMITs that leave nothing out are dropped; `tests/oracle/test_limits.py` has what is kept equal."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.frontend.drop_limit import drop_limit
from tests.unit.dvm.shop import rewritten


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id FROM public.a LIMIT ALL",
        "SELECT a.id FROM public.a LIMIT NULL::bigint OFFSET 0",
        "SELECT a.id FROM public.a WHERE EXISTS (SELECT 1 FROM public.b LIMIT 1)",
        "SELECT (SELECT b.v FROM public.b WHERE b.id = a.g LIMIT 1) AS v FROM public.a",
        "SELECT (SELECT b.v FROM public.b WHERE a.g = b.id AND b.v > 1 LIMIT 5) AS v FROM public.a",
        "SELECT (SELECT count(*) AS n FROM public.b WHERE b.id = 1 LIMIT 1) AS v FROM public.a",
    ],
)
def test_what_leaves_nothing_out_is_dropped(query: str) -> None:
    text = rewritten(drop_limit, query)
    assert "LIMIT" not in text
    assert "OFFSET" not in text


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id FROM public.a LIMIT 3",
        "SELECT a.id FROM public.a WHERE EXISTS (SELECT 1 FROM public.b LIMIT 1 OFFSET 1)",
        "SELECT (SELECT b.v FROM public.b WHERE b.g = a.g LIMIT 1) AS v FROM public.a",
        "SELECT (SELECT b.v FROM public.b WHERE b.id = b.g LIMIT 1) AS v FROM public.a",
        "SELECT (SELECT b.v FROM public.b WHERE b.id = a.g OR b.g = 1 LIMIT 1) AS v FROM public.a",
        "SELECT (SELECT b.v FROM public.b JOIN public.a x ON true WHERE b.id = a.g LIMIT 1) AS v FROM public.a",
        "SELECT (SELECT generate_series(1, b.v) FROM public.b WHERE b.id = a.g LIMIT 1) AS v FROM public.a",
    ],
)
def test_what_may_leave_rows_out_stays(query: str) -> None:
    assert "LIMIT" in rewritten(drop_limit, query)
