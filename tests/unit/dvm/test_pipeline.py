"""The steps from text to sink: one list, which TopK goes through too."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.dvm import Binding, analyze, pipeline
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import output_names, parse
from airflow_provider_pgtrickle.engine.dvm.node import descendants
from airflow_provider_pgtrickle.engine.dvm.operators.native import Native
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused
from airflow_provider_pgtrickle.engine.dvm.sinks.merge_add import MergeAdd
from airflow_provider_pgtrickle.engine.dvm.sinks.recompute import Recompute
from tests.unit.dvm.shop import schema, table, view


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


def test_a_query_is_analysed_once_as_long_as_nothing_that_it_names_changes() -> None:
    text = "SELECT a.g, sum(a.f) AS s FROM public.a GROUP BY a.g"
    made = view(text)
    assert analyze(text, schema(), {}) is made
    assert analyze(text, schema(), {"s": "double precision"}) is not made
    grown = schema(table("a", number=1, estimated_rows=7.0), table("b", number=2))
    assert analyze(text, grown) is not made
    assert analyze(text, grown) is analyze(text, grown)
    assert analyze(text.replace("sum", "max"), grown) is not analyze(text, grown)


def test_a_with_item_is_one_node_also_where_subqueries_read_it() -> None:
    text = (
        "WITH w AS (SELECT b.g FROM public.b WHERE b.v > 1)"
        " SELECT a.id FROM public.a WHERE a.g IN (SELECT w.g FROM w)"
        " UNION ALL SELECT a.v FROM public.a WHERE a.v IN (SELECT w.g FROM w WHERE w.g > 2)"
        " AND a.g IN (SELECT x.g FROM w x)"
    )
    read = [n.source.name for n in descendants(draft(text).tree) if isinstance(n, Scan)]
    assert sorted(read) == ["a", "a", "b"]


def test_a_whole_content_computes_once_what_it_reads_twice() -> None:
    of_sets = view(
        "SELECT a.g, b.v, count(*) AS n FROM public.a JOIN public.b ON a.id = b.id GROUP BY ROLLUP (a.g, b.v)"
    )
    assert of_sets.full(Binding()).count('"public"."b"') == 1
    of_with = view(
        "WITH w AS (SELECT a.g, sum(a.v) AS s FROM public.a GROUP BY a.g) SELECT x.g FROM w x JOIN w y ON x.s = y.g"
    )
    assert of_with.full(Binding()).count('"public"."a"') == 1
    # What only filters and renames is read where it is needed, by whatever index there is.
    plain = view("WITH w AS (SELECT a.id, a.g FROM public.a WHERE a.v > 1) SELECT x.id FROM w x JOIN w y ON x.g = y.id")
    assert plain.full(Binding()).count('"public"."a"') == 2
