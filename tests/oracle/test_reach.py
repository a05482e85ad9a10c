"""What is asked of SQL's wider forms, reach.sql: each query is kept by differences, and its content is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_pgtrickle.engine.dvm.reasons import Reason
from tests.oracle.fixtures import NewCase
from tests.oracle.harness import Maintained, Refused, maintain
from tests.oracle.test_breadth import CYCLES, TABLES

QUERIES = [
    line for line in Path(__file__).with_name("reach.sql").read_text().splitlines() if line[:2] not in ("", "--")
]


@pytest.mark.parametrize("query", QUERIES)
def test_the_query_stays_differential_and_equal(new_case: NewCase, query: str) -> None:
    with new_case(*TABLES) as case:
        maintain(case, query.removesuffix(";"), *CYCLES)


def test_a_limit_that_may_pick_any_rows_is_refused(new_case: NewCase) -> None:
    with new_case(*TABLES) as case, pytest.raises(Refused) as refused:
        Maintained.create(case, "SELECT q.id FROM (SELECT id FROM b LIMIT 2) q")
    assert refused.value.reason is Reason.LIMIT_WITHOUT_ORDER
