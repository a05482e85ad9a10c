"""What a stored content is held against: the query's answer at the frontier, and what that answer leaves open.

Q⁰ = Q over T − ΔT for each source T. No stored row is read, so a stored row that is wrong can't vouch for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.binding import Binding
from airflow_provider_pgtrickle.engine.dvm.budget import budget
from airflow_provider_pgtrickle.engine.dvm.emit import SOURCE_META, Emitter
from airflow_provider_pgtrickle.engine.dvm.exact_types import exact_type
from airflow_provider_pgtrickle.engine.dvm.expressions import columns_of, plain_column, unparen
from airflow_provider_pgtrickle.engine.dvm.frontend.aggregates import call_name, is_order_sensitive
from airflow_provider_pgtrickle.engine.dvm.frontend.build import Builder
from airflow_provider_pgtrickle.engine.dvm.frontend.inline_views import inline_views
from airflow_provider_pgtrickle.engine.dvm.frontend.open_frames import called, depends_on_ties
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import output_names, parse
from airflow_provider_pgtrickle.engine.dvm.frontend.spell_keys import spell_keys
from airflow_provider_pgtrickle.engine.dvm.frontend.whole_rows import whole_rows
from airflow_provider_pgtrickle.engine.dvm.node import Column, Node
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.native import Native
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.set_operation import SetOperation
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.operators.window import Window
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused
from airflow_provider_pgtrickle.engine.dvm.schema import Schema, Source

#: Aggregates that of floats give other last digits in another order.
_ROUNDED = ("sum", "avg", "stddev", "var", "corr", "covar", "regr")


def as_of(text: str, schema: Schema, binding: Binding, captured: Iterable[tuple[str, str]]) -> str | None:
    """A query as it was written, over its sources' old states: no rule of the algebra has touched it.

    `captured` are the columns, by source key, whose changes are known. None where the text names others.
    """
    try:
        with budget():
            query = whole_rows(inline_views(parse(text), schema), schema)
            builder = Builder(schema)
            spell_keys(query, builder.own_aggregates)
            builder.note_reads(query)
            outputs = tuple(output_names(query))
            reads = frozenset(t.meta[SOURCE_META] for t in query.find_all(exp.Table) if SOURCE_META in t.meta)
            node = Native(query, outputs, reads, is_old=True)
    except Refused:
        return None
    used = {key: _in_order(source, builder.inside.get(key, set())) for key, source in builder.sources.items()}
    named = {(key, name) for key in reads & binding.changed for name in used[key]}
    if not named <= set(captured):
        return None
    return Emitter(binding, builder.sources, used).statement(node)


def _in_order(source: Source, names: set[str]) -> tuple[str, ...]:
    found = tuple(c.name for c in source.columns if c.name in names or c.name in source.primary_key)
    return found or tuple(c.name for c in source.columns[:1])


@dataclass(frozen=True)
class Open:
    """Columns in which one right answer may differ from another."""

    order: frozenset[str] = frozenset()
    """By the order of rows that tie, or that nothing orders."""
    rounded: frozenset[str] = frozenset()
    """In the last digits, where they are floats."""
    shared: frozenset[str] = frozenset()
    """Not open: what rows that tie have in common."""

    def of(self, columns: Iterable[str]) -> Open:
        """Of these columns alone."""
        return self.under({name: name for name in columns})

    def under(self, names: Mapping[str, str]) -> Open:
        """With other names: present one → new one."""
        order, rounded, shared = (
            frozenset(names[n] for n in held if n in names) for held in (self.order, self.rounded, self.shared)
        )
        return Open(order, rounded, shared)

    def also(self, other: Open) -> Open:
        return Open(self.order | other.order, self.rounded | other.rounded, self.shared | other.shared)


def open_columns(root: Node) -> Open:
    """What the rows of a tree leave open."""
    return _Walk().visit(root)


class _Walk:
    def __init__(self) -> None:
        self._done: dict[int, Open] = {}

    def visit(self, node: Node) -> Open:
        if id(node) not in self._done:
            self._done[id(node)] = self._visited(node)
        return self._done[id(node)]

    def _visited(self, node: Node) -> Open:
        if isinstance(node, (UnionAll, SetOperation)):
            found = Open()
            for branch in node.inputs:
                found = found.also(self.visit(branch).under(dict(zip(branch.names, node.names, strict=True))))
            return found
        below = Open()
        for child in node.inputs:
            below = below.also(self.visit(child))
        if isinstance(node, Project):
            return _through(node.items, below)
        if isinstance(node, Aggregate):
            columns = {c.name: c for c in node.child.columns}
            order = {n for n, x in node.aggregates if is_order_sensitive(_bare(x))}
            rounded = {n for n, x in node.aggregates if _is_rounded(_bare(x), columns)}
            own = _through(node.aggregates, below)
            return own.also(below.of(node.group)).also(Open(frozenset(order), frozenset(rounded)))
        if isinstance(node, Window):
            ties = {n for n, x in node.functions if any(_is_open(w, node) for w in x.find_all(exp.Window))}
            rounded = {n for n, x in node.functions if any(_is_sum(called(w)) for w in x.find_all(exp.Window))}
            shared = frozenset(node.partition) if ties else frozenset()
            own = _through(node.functions, below).also(Open(frozenset(ties), frozenset(rounded), shared))
            return below.also(own)
        if isinstance(node, Filter) and columns_of(node.predicate) & below.order:
            # One of rows that tie: which one is open, and with it all of it but what they have in common.
            return Open(frozenset(node.names) - below.shared, below.rounded, below.shared)
        return below.of(node.names)


def _through(items: Sequence[tuple[str, exp.Expr]], below: Open) -> Open:
    listed = [(name, columns_of(x)) for name, x in items]
    return Open(
        frozenset(n for n, reads in listed if reads & below.order),
        frozenset(n for n, reads in listed if reads & below.rounded),
        frozenset(n for n, x in items if plain_column(x) in below.shared),
    )


def _bare(call: exp.Expr) -> exp.Expr:
    return call.this if isinstance(call, exp.Filter) else call


def _is_sum(call: exp.Expr) -> bool:
    return call_name(call).startswith(_ROUNDED)


def _is_rounded(call: exp.Expr, columns: dict[str, Column]) -> bool:
    return _is_sum(call) and not (isinstance(call.this, exp.Expr) and exact_type(call.this, columns) is not None)


def _is_open(window: exp.Window, node: Window) -> bool:
    order = window.args.get("order")
    known = {plain_column(unparen(o.this)) for o in order.expressions} if order else set()
    settled = any(key <= known | set(node.partition) for key in node.child.unique_keys)
    return depends_on_ties(window) and not settled
