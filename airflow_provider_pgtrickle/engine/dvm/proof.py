"""Stored content is compared with the query's answer at the frontier, except where that answer is left open.

Q⁰ = Q over T − ΔT for each source T. No stored row is read, so a stored row that is wrong can't vouch for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_provider_pgtrickle.engine.dvm.binding import Binding
from airflow_provider_pgtrickle.engine.dvm.budget import budget
from airflow_provider_pgtrickle.engine.dvm.clock import readings_of
from airflow_provider_pgtrickle.engine.dvm.dialect import Reading
from airflow_provider_pgtrickle.engine.dvm.emit import PostgresEmitter
from airflow_provider_pgtrickle.engine.dvm.expressions import tables_of
from airflow_provider_pgtrickle.engine.dvm.frontend.build import TreeBuilder
from airflow_provider_pgtrickle.engine.dvm.frontend.inline_views import inline_views
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import output_names, parse
from airflow_provider_pgtrickle.engine.dvm.frontend.readings import readings as marked
from airflow_provider_pgtrickle.engine.dvm.frontend.spell_keys import spell_keys
from airflow_provider_pgtrickle.engine.dvm.frontend.whole_rows import whole_rows
from airflow_provider_pgtrickle.engine.dvm.node import Node, Open, folded
from airflow_provider_pgtrickle.engine.dvm.operators.native import Native
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused
from airflow_provider_pgtrickle.engine.dvm.schema import Schema, Source


def readings(text: str, schema: Schema) -> Mapping[str, Reading]:
    """Return what a query as it was written reads of the clock."""
    if not schema.reads_clock:
        return {}
    try:
        return readings_of([marked(inline_views(parse(text), schema), schema)])
    except Refused:
        return {}


def as_of(text: str, schema: Schema, binding: Binding, captured: Iterable[tuple[str, str]]) -> str | None:
    """Return a query as it was written, over its sources' old states; no rule of the algebra has touched it.

    `captured` are the columns, by source key, whose changes are known. None where the text names others.
    """
    try:
        with budget():
            query = whole_rows(marked(inline_views(parse(text), schema), schema), schema)
            builder = TreeBuilder(schema)
            spell_keys(query, builder.own_aggregates)
            builder.note_reads(query)
            outputs = tuple(output_names(query))
            reads = tables_of(query)
            node = Native(query, outputs, reads, is_old=True)
    except Refused:
        return None
    used = {key: _in_order(source, builder.inside.get(key, set())) for key, source in builder.sources.items()}
    named = {(key, name) for key in reads & binding.changed for name in used[key]}
    if not named <= set(captured):
        return None
    return PostgresEmitter(binding, builder.sources, used).statement(node)


def _in_order(source: Source, names: set[str]) -> tuple[str, ...]:
    found = tuple(c.name for c in source.columns if c.name in names or c.name in source.primary_key)
    return found or tuple(c.name for c in source.columns[:1])


def open_columns(root: Node) -> Open:
    """Return what the rows of a tree leave open."""
    return folded(root, lambda node, of: node.left_open(of))
