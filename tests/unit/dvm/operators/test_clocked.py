"""Δτ(R) = τ⁰(ΔR) + (τ¹ − τ⁰)(moved(R¹)), wherever a query compares a value with the clock."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm import Binding, Reason, Schema, SourceBinding, View, Window
from airflow_provider_pgtrickle.engine.dvm.clock import CLOCK, Values
from airflow_provider_pgtrickle.engine.dvm.node import Differ
from tests.unit.dvm.algebra import written
from tests.unit.dvm.shop import schema, view

NOW = schema(functions={"now": "n", "current_timestamp or the like": "n"})
LATE = "SELECT a.id FROM public.a WHERE a.v > now()"


def change(query: str, *changed: str) -> str | None:
    tree = of(query).tree
    assert tree is not None
    delta = Differ(changed).delta(tree)
    return None if delta is None else written(delta)


def of(query: str, known: Schema = NOW) -> View:
    return view(query, known)


def test_the_change_of_a_comparison() -> None:
    assert change(LATE, "1") == "σ(τ⁰(Δa))"
    assert change(LATE, CLOCK) == "σ(τ(moved(a)) − τ⁰(moved(a)))"
    assert change(LATE, "1", CLOCK) == "σ(τ⁰(Δa) + τ(moved(a)) − τ⁰(moved(a)))"
    assert change(LATE, "2") is None


def test_above_it_everything_is_as_ever() -> None:
    inner = "SELECT a.g, b.v FROM public.a JOIN public.b ON a.id = b.id WHERE a.v > now()"
    assert change(inner, "2") == "(σ(τ(a)) ⋈ Δb)"
    joined = "SELECT a.g, b.v FROM public.a LEFT JOIN public.b ON a.id = b.id AND b.v > now()"
    assert change(joined, CLOCK) == "(a[K] ⟕ τ(b)) − (a[K] ⟕ τ⁰(b))"


@pytest.mark.parametrize(
    ("query", "reading"),
    [
        (LATE, "now()"),
        ("SELECT a.id FROM public.a WHERE a.v > (now() - '7 days'::interval)", "now() - CAST('7 days' AS interval)"),
        ("SELECT a.id FROM public.a WHERE a.v = ((CURRENT_DATE - 1) + 0)", "(CURRENT_DATE - 1) + 0"),
        (
            "SELECT a.id FROM public.a WHERE a.v < date_trunc('day'::text, now())",
            "date_trunc(CAST('day' AS text), now())",
        ),
        ("SELECT a.id FROM public.a WHERE a.v < LOCALTIMESTAMP(3)", "LOCALTIMESTAMP(3)"),
        ("SELECT a.id FROM public.a WHERE a.v < CURRENT_TIME", "CURRENT_TIME"),
    ],
)  # fmt: skip
def test_the_largest_expression_over_the_clock_is_read(query: str, reading: str) -> None:
    assert list(of(query).readings) == [reading]
    assert of(query).refusal is None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT now() AS at FROM public.a",
        "SELECT a.id FROM public.a WHERE (now() - a.v) > '7 days'::interval",
        "SELECT a.id FROM public.a WHERE a.t = (now())::text",
        "SELECT CASE WHEN a.g > 0 THEN (1 / a.v) > now() END AS x FROM public.a",
    ],
)
def test_what_is_no_comparison_of_a_value_is_refused(query: str) -> None:
    made = of(query)
    assert made.refusal is not None
    assert made.refusal.reason is Reason.COMPUTES_WITH_CLOCK
    assert not made.steady


def test_a_schema_s_own_function_is_not_the_clock() -> None:
    assert list(of("SELECT a.id FROM public.a WHERE a.v > shop.now()").readings) == []


def test_values_are_bound_and_texts_are_kept_for_each_way_to_move() -> None:
    made = of(LATE)

    def bound(old: str, new: str) -> str:
        window = SourceBinding(True, Window(("c", "b"), "1:1:", "2:2:"))
        return made.delta(Binding({"1": window}, None, {"now()": Values(old, new)})) or ""

    assert "now()" not in bound("'x'::date", "'y'::date")
    assert ("'x'::date" in bound("'x'::date", "'y'::date"), "'z'::date" in bound("'z'::date", "'y'::date")) == (
        True,
        True,
    )
    assert "LEAST" not in bound("'y'::date", "'y'::date")
    assert "now()" in made.full(Binding())
    assert "now()" not in made.full(Binding(readings={"now()": Values("'x'", "'y'")}))


def test_a_refused_query_is_computed_as_of_an_instant() -> None:
    made = of("SELECT now() AS at FROM public.a")
    text = made.full(Binding(readings={"now()": Values("'x'", "'y'::date")}))
    assert text == "SELECT 'y'::date AS at FROM public.a"


def test_rows_that_moved_are_counted_in_tables_and_stood_for_elsewhere() -> None:
    moved = {"now()": Values("'x'", "'y'")}
    assert of(LATE).moved(Binding(readings={"now()": Values("'x'", "'x'")})) is None
    counted = of(LATE).moved(Binding(readings=moved)) or ""
    assert counted.count("count(*)") == 1
    grouped = of("SELECT a.g FROM public.a GROUP BY a.g HAVING (max(a.v) > now())")
    assert grouped.moved(Binding(readings=moved)) == "1"
    assert "IS DISTINCT FROM" in str(grouped.clock_probe())
    assert str(of(LATE).clock_probe()).startswith("EXISTS (")
    assert of("SELECT a.id FROM public.a").clock_probe() is None
