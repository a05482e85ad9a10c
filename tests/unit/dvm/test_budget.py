"""No query makes the engine hang or grow without end: it is differentiated within bounds, or refused."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from airflow_provider_pgtrickle.engine.dvm import Reason
from airflow_provider_pgtrickle.engine.dvm.budget import budget
from airflow_provider_pgtrickle.engine.dvm.operators.constant import Constant
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused
from tests.unit.dvm.shop import delta, schema, table, view

SECONDS = 60
"""Generous: what hangs takes hours."""


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < SECONDS


def _joined(count: int, how: str) -> str:
    steps = (f"{how} public.t{n} ON t{n}.id = t{n - 1}.g" for n in range(1, count))
    return f"SELECT t0.id, t0.g FROM public.t0 {' '.join(steps)}"


def _tables(count: int):
    return schema(*(table(f"t{n}", ("id", "g"), n + 1) for n in range(count)))


def _doubling(levels: int, step: str) -> str:
    chain = "".join(f", q{n} AS ({step.format(below=f'q{n - 1}')})" for n in range(1, levels + 1))
    return f"WITH q0 AS (SELECT a.id, a.g FROM public.a){chain} SELECT q{levels}.id, q{levels}.g FROM q{levels}"


def test_a_hundred_inner_joins_are_differentiated() -> None:
    text = delta(_joined(100, "JOIN"), _tables(100))
    assert text is not None
    assert len(text) < 5_000_000


@pytest.mark.parametrize("how", ["LEFT JOIN", "FULL JOIN"])
def test_twenty_outer_joins_are_differentiated(how: str) -> None:
    text = delta(_joined(20, how), _tables(20))
    assert text is not None
    assert len(text) < 1_000_000


@pytest.mark.parametrize("how", ["LEFT JOIN", "FULL JOIN"])
def test_a_hundred_outer_joins_are_refused(how: str) -> None:
    assert view(_joined(100, how), _tables(100)).refusal.reason is Reason.TOO_LARGE  # type: ignore[union-attr]


def test_a_thousand_columns_are_differentiated() -> None:
    names = tuple(f"c{n}" for n in range(1000))
    wide = schema(table("w", ("id", *names)))
    for query in (
        f"SELECT {', '.join(names)} FROM public.w",
        f"SELECT DISTINCT {', '.join(names)} FROM public.w",
        f"SELECT id, {', '.join(f'sum({n}) AS {n}' for n in names)} FROM public.w GROUP BY id",
    ):
        text = delta(query, wide)
        assert text is not None
        assert len(text) < 3_000_000


def test_a_thousand_terms_are_differentiated() -> None:
    assert delta(f"SELECT id FROM public.a WHERE {' AND '.join(f'(a.v <> {n})' for n in range(1000))}")


@pytest.mark.parametrize(
    "step",
    [
        "SELECT x.id, y.g FROM {below} x JOIN {below} y ON x.id = y.g",
        "SELECT x.id, x.g FROM {below} x UNION ALL SELECT y.id, y.g FROM {below} y",
        "SELECT x.id, count(y.g) AS g FROM {below} x LEFT JOIN {below} y ON x.id = y.g GROUP BY x.id",
        "SELECT x.id, x.g FROM {below} x WHERE EXISTS (SELECT 1 FROM {below} y WHERE y.g = x.id)",
    ],
)
def test_a_chain_that_doubles_with_each_step_is_refused(step: str) -> None:
    refusal = view(_doubling(30, step)).refusal
    assert refusal is not None
    assert refusal.reason is Reason.TOO_LARGE


def test_a_chain_that_doubles_a_few_times_is_differentiated() -> None:
    text = delta(_doubling(4, "SELECT x.id, y.g FROM {below} x JOIN {below} y ON x.id = y.g"))
    assert text is not None
    assert len(text) < 200_000


@pytest.mark.parametrize("depth", [10, 20, 40, 80, 160, 320, 2000])
@pytest.mark.parametrize(
    "wrap",
    [
        "SELECT q.id, q.g FROM ({}) q WHERE q.id > 0",
        "SELECT q.id, count(*) AS g FROM ({}) q GROUP BY q.id",
        "SELECT q.id, q.g FROM ({}) q EXCEPT SELECT b.id, b.g FROM public.b",
        "SELECT q.id, row_number() OVER (PARTITION BY q.g ORDER BY q.id) AS g FROM ({}) q",
    ],
)
def test_what_is_nested_deeply_is_differentiated_or_refused(wrap: str, depth: int) -> None:
    query = "SELECT a.id, a.g FROM public.a"
    for _ in range(depth):
        query = wrap.format(query)
    made = view(query)
    if made.refusal is not None:
        assert made.refusal.reason is Reason.TOO_LARGE
        assert depth > 10
        assert made.full(made.example_binding()) == query
    else:
        assert made.delta(made.example_binding())


def test_parentheses_without_end_are_refused() -> None:
    refusal = view(f"SELECT id FROM public.a WHERE {'(' * 3000}id > 0{')' * 3000}").refusal
    assert refusal is not None
    assert refusal.reason is Reason.TOO_LARGE


def test_a_budget_ends_with_its_block() -> None:
    with budget(2):
        made = [Constant(None, ("a",)), Constant(None, ("b",))]
        with pytest.raises(Refused, match="nodes"):
            Constant(None, ("c",))
    assert Constant(None, ("d",)).names != made[0].names
