"""The pipeline leads from a query's text to the sink that maintains it; STEPS is the table of contents.

The text is parsed first (`frontend/parse.py`). Each step takes the draft of the step before and hands on a new one.
If a query can't be maintained, the step that finds out raises `Refused`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.clock import CLOCK
from airflow_provider_pgtrickle.engine.dvm.emit import check_size
from airflow_provider_pgtrickle.engine.dvm.expressions import render, tables_of
from airflow_provider_pgtrickle.engine.dvm.frontend.bounds import bounds
from airflow_provider_pgtrickle.engine.dvm.frontend.build import TreeBuilder
from airflow_provider_pgtrickle.engine.dvm.frontend.builder import Builder
from airflow_provider_pgtrickle.engine.dvm.frontend.common_equalities import common_equalities
from airflow_provider_pgtrickle.engine.dvm.frontend.distinct_on import distinct_on
from airflow_provider_pgtrickle.engine.dvm.frontend.drop_limit import drop_limit, is_bounded, number_of
from airflow_provider_pgtrickle.engine.dvm.frontend.drop_order import drop_order
from airflow_provider_pgtrickle.engine.dvm.frontend.follow_clock import follow_clock
from airflow_provider_pgtrickle.engine.dvm.frontend.inline_views import inline_views
from airflow_provider_pgtrickle.engine.dvm.frontend.mark_sets import mark_sets
from airflow_provider_pgtrickle.engine.dvm.frontend.named_windows import named_windows
from airflow_provider_pgtrickle.engine.dvm.frontend.open_laterals import open_laterals
from airflow_provider_pgtrickle.engine.dvm.frontend.prune import prune
from airflow_provider_pgtrickle.engine.dvm.frontend.readings import readings
from airflow_provider_pgtrickle.engine.dvm.frontend.refuse import refuse
from airflow_provider_pgtrickle.engine.dvm.frontend.refuse_told_apart import refuse_told_apart
from airflow_provider_pgtrickle.engine.dvm.frontend.refuse_unwatched import refuse_unwatched
from airflow_provider_pgtrickle.engine.dvm.frontend.scope import Scope
from airflow_provider_pgtrickle.engine.dvm.frontend.whole_rows import whole_rows
from airflow_provider_pgtrickle.engine.dvm.node import Differ, Node
from airflow_provider_pgtrickle.engine.dvm.operators.native import Native
from airflow_provider_pgtrickle.engine.dvm.operators.reached import Bounds
from airflow_provider_pgtrickle.engine.dvm.schema import Schema
from airflow_provider_pgtrickle.engine.dvm.sinks import SINKS, Sink
from airflow_provider_pgtrickle.engine.dvm.sinks.sink import Query


@dataclass(frozen=True)
class TopK:
    """ORDER BY … LIMIT at the top of a query."""

    limit: int | None
    offset: int
    order_by: str


@dataclass(frozen=True)
class Draft:
    """A query on its way from its text to the sink that maintains it."""

    query: exp.Query
    outputs: tuple[str, ...]
    builder: Builder
    floats: Mapping[str, str] = field(default_factory=dict)
    """The types of the columns that may be kept as approximate sums of floats."""
    held: frozenset[str] | None = None
    """The columns of a table that is there already: what a sink stores has to be among them."""
    topk: TopK | None = None
    bounds: Bounds | None = None
    root: Node | None = None
    sink: Sink | None = None

    @property
    def tree(self) -> Node:
        assert self.root is not None
        return self.root


Step = Callable[[Draft], Draft]


@dataclass(frozen=True)
class Text:
    """A step that rewrites the query's text; it does nothing once there is an operator tree."""

    rewrite: Callable[[exp.Query, Schema], exp.Query]

    def __call__(self, draft: Draft) -> Draft:
        if draft.root is not None:
            return draft
        return replace(draft, query=self.rewrite(draft.query, draft.builder.schema))


def take_top_apart(draft: Draft) -> Draft:
    """Split ORDER BY … LIMIT at the top from the rows that it bounds.

    The draft gets `bounds` where a change of these rows can tell whether it reaches the window.
    """
    query, schema = draft.query, draft.builder.schema
    limit, offset, order = (query.args.get(c) for c in ("limit", "offset", "order"))
    if not order or not is_bounded(query):
        return draft
    terms = ", ".join(render(t) for t in order.expressions)
    topk = TopK(number_of(limit) if limit else None, (number_of(offset) or 0) if offset else 0, terms)
    return replace(draft, topk=topk, bounds=bounds(query, schema, draft.outputs, lambda body: _tree(body, schema)))


def leave_top_as_written(draft: Draft) -> Draft:
    """Leave a TopK query to PostgreSQL as it is written."""
    if draft.topk is None:
        return draft
    builder = draft.builder
    builder.note_reads(draft.query)
    outputs = tuple(builder.name(o) for o in draft.outputs)
    return replace(draft, root=Native(draft.query, outputs, tables_of(draft.query)))


def build(draft: Draft) -> Draft:
    """Build the operator tree."""
    return draft if draft.root is not None else replace(draft, root=draft.builder.query(draft.query, Scope())[0])


def cover(draft: Draft) -> Draft:
    return replace(draft, root=refuse_told_apart(refuse_unwatched(draft.tree)))


def clock(draft: Draft) -> Draft:
    return replace(draft, root=follow_clock(draft.tree, draft.builder))


def cut(draft: Draft) -> Draft:
    return replace(draft, root=prune(draft.tree))


def choose_sink(draft: Draft) -> Draft:
    """Choose the first sink that takes the query; for a table that is there, the first that stores what it holds."""
    described = Query(draft.tree, draft.outputs, draft.builder.name, draft.bounds, draft.floats)
    found = (kind.take(described) for kind in SINKS)
    fitting = (s for s in found if s is not None and (draft.held is None or draft.held >= {*s.hidden}))
    sink = next(fitting, None)
    return choose_sink(replace(draft, held=None)) if sink is None else replace(draft, sink=sink)


def check_sizes(draft: Draft) -> Draft:
    """Refuse a query whose content, or whose change if every source changed, is too large for one statement."""
    assert draft.sink is not None
    for tree in (draft.sink.storage, draft.sink.delta(Differ({*draft.builder.sources, CLOCK}))):
        if tree is not None:
            check_size(tree)
    return draft


STEPS: tuple[Step, ...] = (
    Text(open_laterals),
    take_top_apart,
    Text(inline_views),
    Text(readings),
    Text(whole_rows),
    Text(mark_sets),
    Text(drop_limit),
    Text(refuse),
    leave_top_as_written,
    Text(common_equalities),
    Text(named_windows),
    Text(distinct_on),
    Text(drop_order),
    build,
    cover,
    clock,
    cut,
    choose_sink,
    check_sizes,
)
PASSES = tuple(step.rewrite for step in STEPS if isinstance(step, Text))


def run(
    query: exp.Query,
    outputs: tuple[str, ...],
    schema: Schema,
    until: Step = check_sizes,
    floats: Mapping[str, str] | None = None,
    held: frozenset[str] | None = None,
) -> Draft:
    """Return the draft after the steps up to `until`, including that."""
    draft = Draft(query, outputs, TreeBuilder(schema), floats or {}, held)
    for step in STEPS:
        draft = step(draft)
        if step is until:
            break
    return draft


def _tree(query: exp.Query, schema: Schema) -> Node:
    return run(query, (), schema, until=cut).tree
