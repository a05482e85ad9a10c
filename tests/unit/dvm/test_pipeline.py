"""The steps from text to sink: one list, which TopK goes through too."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm import pipeline
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import output_names, parse
from airflow_provider_pgtrickle.engine.dvm.operators.native import Native
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused
from airflow_provider_pgtrickle.engine.dvm.sinks.merge_add import MergeAdd
from airflow_provider_pgtrickle.engine.dvm.sinks.recompute import Recompute
from tests.unit.dvm.shop import schema


def draft(text: str, until: pipeline.Step = pipeline.STEPS[-1]) -> pipeline.Draft:
    query = parse(text)
    return pipeline.run(query, tuple(output_names(query)), schema(), until)


def test_a_query_ends_with_a_tree_and_the_sink_that_takes_it() -> None:
    made = draft("SELECT a.g, count(*) AS n FROM public.a GROUP BY a.g")
    assert made.topk is None
    assert isinstance(made.sink, MergeAdd)


def test_topk_stays_as_written_and_knows_what_it_bounds() -> None:
    made = draft("SELECT a.id, a.v FROM public.a ORDER BY a.v, a.id LIMIT 3")
    assert made.topk == pipeline.TopK(3, 0, "a.v, a.id")
    assert isinstance(made.root, Native)
    assert made.bounds is not None
    assert made.bounds.body.names == ("id", "v")
    assert isinstance(made.sink, Recompute)


def test_one_can_stop_before_there_is_a_tree() -> None:
    assert draft("SELECT a.id FROM public.a ORDER BY a.id", pipeline.leave_top_as_written).root is None


def test_what_cannot_be_maintained_leaves_at_the_step_that_finds_out() -> None:
    with pytest.raises(Refused, match="LIMIT without ORDER BY"):
        draft("SELECT x.id FROM (SELECT a.id FROM public.a LIMIT 3) x")
