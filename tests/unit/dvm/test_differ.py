"""One differentiation: what did not change is not looked at, and what did is worked out once."""

from __future__ import annotations

from airflow_provider_pgtrickle.engine.dvm.node import Differ
from airflow_provider_pgtrickle.engine.dvm.operators.inner_join import InnerJoin
from tests.unit.dvm.algebra import first

JOIN = "SELECT a.id, b.id AS i FROM public.a JOIN public.b ON b.g = a.g"


def test_what_changed_is_worked_out_once() -> None:
    join, differ = first(JOIN, InnerJoin), Differ(["1"])
    assert differ.delta(join) is not None
    assert differ.delta(join) is differ.delta(join)
    assert differ.old(join) is not join
    assert differ.old(join) is differ.old(join)


def test_what_did_not_change_is_what_it_was() -> None:
    join, differ = first(JOIN, InnerJoin), Differ(["3"])
    assert differ.delta(join) is None
    assert differ.old(join) is join
