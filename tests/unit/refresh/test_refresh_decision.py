"""The decision, as a table of facts and actions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_pgtrickle.engine.errors import NotDifferentiable
from airflow_provider_pgtrickle.engine.refresh.decision import Action, Decision, MemberFacts, SourceFacts, decide

QUIET = SourceFacts("1", "public.orders", rows=1000)
BUSY = replace(QUIET, pending_rows=10)
FACTS = MemberFacts("public.st", "AUTO", populated=True, max_change_ratio=0.15, sources=(BUSY,))


@pytest.mark.parametrize(
    ("facts", "decision"),
    [
        (FACTS, Decision(Action.DIFFERENTIAL)),
        (replace(FACTS, sources=(QUIET,)), Decision(Action.NO_DATA)),
        (replace(FACTS, sources=()), Decision(Action.NO_DATA)),
        (replace(FACTS, populated=False), Decision(Action.FULL, "never_populated")),
        (replace(FACTS, populated=False, sources=(QUIET,)), Decision(Action.FULL, "never_populated")),
        (replace(FACTS, forced=True, sources=(QUIET,)), Decision(Action.FULL, "forced")),
        (replace(FACTS, refusal="no key"), Decision(Action.FULL, "not_differentiable: no key")),
        (replace(FACTS, refusal="no key", sources=(QUIET,)), Decision(Action.NO_DATA)),
        (replace(FACTS, sources=(replace(BUSY, pending_rows=151),)), Decision(Action.FULL, "change_ratio_exceeded")),
        (replace(FACTS, sources=(replace(BUSY, pending_rows=150),)), Decision(Action.DIFFERENTIAL)),
        (replace(FACTS, sources=(BUSY, replace(BUSY, rows=20))), Decision(Action.FULL, "change_ratio_exceeded")),
        (replace(FACTS, sources=(replace(BUSY, rows=0),)), Decision(Action.FULL, "change_ratio_exceeded")),
        (replace(FACTS, sources=(replace(BUSY, rows=0),), max_change_ratio=0.0), Decision(Action.DIFFERENTIAL)),
        (replace(FACTS, sources=(replace(BUSY, truncated=True),)), Decision(Action.FULL, "truncate_detected")),
        (replace(FACTS, sources=(replace(QUIET, buffer_lost=True),)), Decision(Action.FULL, "buffer_lost")),
        (replace(FACTS, reinit_reason="schema_changed", forced=True), Decision(Action.REINITIALIZE, "schema_changed")),
        (replace(FACTS, topk=True, refusal="LIMIT"), Decision(Action.TOPK)),
        (replace(FACTS, topk=True, sources=(replace(BUSY, rows=1),)), Decision(Action.TOPK, anew=True)),
        (replace(FACTS, broken="division by zero"), Decision(Action.FULL, "data_error: division by zero")),
        (
            replace(FACTS, broken="division by zero", topk=True),
            Decision(Action.TOPK, "data_error: division by zero", anew=True),
        ),
        (replace(FACTS, refresh_mode="FULL"), Decision(Action.FULL)),
        (replace(FACTS, refresh_mode="FULL", populated=False), Decision(Action.FULL)),
        (replace(FACTS, refresh_mode="FULL", forced=True), Decision(Action.FULL)),
        (replace(FACTS, refresh_mode="FULL", sources=(QUIET,)), Decision(Action.NO_DATA)),
        (replace(FACTS, refresh_mode="FULL", sources=(QUIET,), steady=False), Decision(Action.FULL)),
        (replace(FACTS, refresh_mode="FULL", sources=(replace(QUIET, captured=False),)), Decision(Action.FULL)),
        (replace(FACTS, refresh_mode="IMMEDIATE", sources=(QUIET,)), Decision(Action.NO_DATA)),
        (replace(FACTS, refresh_mode="IMMEDIATE", populated=False), Decision(Action.FULL, "never_populated")),
        (replace(FACTS, refresh_mode="IMMEDIATE", forced=True), Decision(Action.FULL, "forced")),
        (replace(FACTS, refresh_mode="DIFFERENTIAL"), Decision(Action.DIFFERENTIAL)),
        (
            replace(FACTS, refresh_mode="DIFFERENTIAL", sources=(replace(BUSY, rows=1),)),
            Decision(Action.FULL, "change_ratio_exceeded"),
        ),
        (
            replace(FACTS, refresh_mode="DIFFERENTIAL", populated=False, forced=True),
            Decision(Action.FULL, "never_populated"),
        ),
    ],
)
def test_decision(facts: MemberFacts, decision: Decision) -> None:
    assert decide(facts) == decision


def test_differential_mode_refuses_what_cannot_be_differentiated() -> None:
    with pytest.raises(NotDifferentiable, match=r"no key.*Set refresh_mode to AUTO or FULL") as refused:
        decide(replace(FACTS, refresh_mode="DIFFERENTIAL", refusal="no key"))
    assert refused.value.stream_table == FACTS.name


@pytest.mark.parametrize("mode", ["AUTO", "DIFFERENTIAL"])
def test_a_first_content_is_full_in_every_mode(mode: str) -> None:
    assert decide(replace(FACTS, refresh_mode=mode, populated=False)) == Decision(Action.FULL, "never_populated")


@pytest.mark.parametrize("mode", ["AUTO", "FULL"])
def test_what_asks_the_clock_has_work_each_time(mode: str) -> None:
    facts = replace(FACTS, refresh_mode=mode, steady=False, refusal="it calls now()")
    assert decide(facts).action is Action.FULL
