"""Joins in parentheses that begin with LATERAL are opened where no row changes; `tests/oracle/reach.sql` has some."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm.expressions import render
from airflow_provider_pgtrickle.engine.dvm.frontend.open_laterals import open_laterals
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import parse
from tests.unit.dvm.shop import schema

F = 'LATERAL unnest("a"."arr") AS "f"("v")'


def opened(source: str) -> str:
    text = f'SELECT "f"."v" FROM "a"{source}'
    assert render(parse(text)) == text
    return render(open_laterals(parse(text), schema())).removeprefix('SELECT "f"."v" FROM "a"')


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f', ({F} JOIN "b" ON (1 = 1))', f' CROSS JOIN {F} JOIN "b" ON (1 = 1)'),
        (f', ({F} LEFT JOIN "b" ON (1 = 1)), "c"', f' CROSS JOIN {F} LEFT JOIN "b" ON (1 = 1), "c"'),
        (
            f', (({F} JOIN "b" ON (1 = 1)) LEFT JOIN "c" ON (2 = 2))',
            f' CROSS JOIN {F} JOIN "b" ON (1 = 1) LEFT JOIN "c" ON (2 = 2)',
        ),
    ],
)
def test_they_join_what_is_before_them_first(source: str, expected: str) -> None:
    assert opened(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        f', ({F} RIGHT JOIN "b" ON (1 = 1))',
        f', ({F} JOIN "b" USING ("v"))',
        f' LEFT JOIN ({F} JOIN "b" ON (1 = 1)) ON (2 = 2)',
        f', {F}, "b"',
        ', ("c" JOIN "b" ON (1 = 1))',
    ],
)
def test_what_would_have_other_rows_stays_as_it_is(source: str) -> None:
    assert opened(source) == source
