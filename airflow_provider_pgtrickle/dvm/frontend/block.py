"""One SELECT block: FROM, WHERE, GROUP BY, HAVING, windows, the list, DISTINCT – in PostgreSQL's order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from airflow_provider_pgtrickle.dvm.expressions import (
    column,
    columns_of,
    conjunction,
    conjuncts,
    has_subquery,
    holds_query,
    is_row_column,
    plain_column,
    rewrite,
    unparen,
)
from airflow_provider_pgtrickle.dvm.frontend import from_items
from airflow_provider_pgtrickle.dvm.frontend.aggregates import aggregate_calls, belongs, is_windowed
from airflow_provider_pgtrickle.dvm.frontend.bind import bind
from airflow_provider_pgtrickle.dvm.frontend.decorrelate import join_scalars, semi_join
from airflow_provider_pgtrickle.dvm.frontend.scope import Scope
from airflow_provider_pgtrickle.dvm.frontend.subquery import of_expression
from airflow_provider_pgtrickle.dvm.node import Node
from airflow_provider_pgtrickle.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.dvm.operators.distinct import Distinct
from airflow_provider_pgtrickle.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.dvm.operators.project import Project
from airflow_provider_pgtrickle.dvm.operators.window import Window
from airflow_provider_pgtrickle.dvm.reasons import Reason, Refused

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.dvm.frontend.build import Builder


def build(builder: Builder, select: exp.Select, scope: Scope) -> tuple[Node, list[str]]:
    """The block's node and its output names."""
    scope = Scope(ctes=scope.ctes)
    group = from_items.build(builder, select, scope)
    where = select.args.get("where")
    terms = [bind(t, scope) for t in conjuncts(where.this)] if where else []
    plain = [t for t in terms if not has_subquery(t)]
    node = from_items.combine(group.relations, [*_plain(group.terms), *plain])
    node = filtered(builder, node, scope, [t for t in (*group.terms, *terms) if has_subquery(t)])

    outputs = [_output_name(i) for i in select.expressions]
    items = [bind(i.this if isinstance(i, exp.Alias) else i, scope) for i in select.expressions]
    having = [bind(t, scope) for t in conjuncts(select.args["having"].this)] if select.args.get("having") else []

    if select.args.get("group") or having or any(_aggregates(builder, e) for e in items):
        node, rewritten = _grouped(builder, select, scope, node, [*items, *having])
        items, having = rewritten[: len(items)], rewritten[len(items) :]
        node = filtered(builder, node, scope, having)
    node, items = _windowed(builder, node, scope, items)
    node = _project(builder, node, scope, outputs, items)
    distinct = select.args.get("distinct")
    if distinct is not None:
        if distinct.args.get("on") is not None:
            raise Refused(Reason.UNSUPPORTED_SYNTAX, "DISTINCT ON in a place it is not rewritten in")
        node = Distinct(node)
    return node, outputs


def _output_name(item: exp.Expr) -> str:
    return item.alias_or_name or "?column?"


def _plain(terms: list[exp.Expr]) -> list[exp.Expr]:
    return [t for t in terms if not has_subquery(t)]


def filtered(builder: Builder, node: Node, scope: Scope, terms: list[exp.Expr]) -> Node:
    """The rows for which every term is true: joins for the subqueries that can be, a filter for each other."""
    plain = _plain(terms)
    if plain:
        node = Filter(node, conjunction(plain))
    for term in terms:
        if not has_subquery(term):
            continue
        joined = semi_join(builder, node, term)
        if joined is not None:
            node = joined
            continue
        node, rest = join_scalars(builder, node, term)
        node = Filter(node, rest, of_expression(builder, rest, scope, node) if has_subquery(rest) else ())
    return node


def _project(builder: Builder, node: Node, scope: Scope, outputs: list[str], items: list[exp.Expr]) -> Project:
    for number, item in enumerate(items):
        if has_subquery(item):
            node, items[number] = join_scalars(builder, node, item)
    parts = tuple(p for i in items if has_subquery(i) for p in of_expression(builder, i, scope, node))
    return Project(node, tuple((builder.name(o), i) for o, i in zip(outputs, items, strict=True)), parts)


def with_computed(builder: Builder, node: Node, scope: Scope, computed: list[tuple[str, exp.Expr]]) -> Node:
    """The node with further columns."""
    if not computed:
        return node
    parts = tuple(p for _, x in computed if has_subquery(x) for p in of_expression(builder, x, scope, node))
    return Project(node, tuple((n, column(n)) for n in node.names) + tuple(computed), parts)


# -- GROUP BY ------------------------------------------------------------------------------------


def _aggregates(builder: Builder, expression: exp.Expr) -> bool:
    return next(aggregate_calls(expression, builder.own_aggregates), None) is not None


def _grouped(
    builder: Builder, select: exp.Select, scope: Scope, node: Node, expressions: list[exp.Expr]
) -> tuple[Node, list[exp.Expr]]:
    """The Aggregate node, and the expressions in terms of its columns."""
    group = select.args.get("group")
    computed: list[tuple[str, exp.Expr]] = []
    keys: list[tuple[exp.Expr, str]] = []
    for raw in group.expressions if group else []:
        key = unparen(_position(raw, select, scope))
        name = plain_column(key)
        if name is None:
            name = builder.name("key")
            computed.append((name, key))
        if all(name != k for _, k in keys):
            keys.append((key, name))
    calls: dict[exp.Expr, str] = {}
    for expression in expressions:
        for call in aggregate_calls(expression, builder.own_aggregates):
            if call not in calls:
                calls[call] = builder.name("agg")
    hoisted = {c: _hoisted(builder, c, computed) for c in calls}
    node = with_computed(builder, node, scope, computed)
    rewritten = [_over_groups(e, keys, calls) for e in expressions]
    names = [k for _, k in keys]
    for expression in rewritten:
        for name in sorted(columns_of(expression)):
            if name not in names and name not in calls.values():
                names.append(name)
    return Aggregate(node, tuple(names), tuple((n, hoisted[c]) for c, n in calls.items())), rewritten


def _position(key: exp.Expr, select: exp.Select, scope: Scope) -> exp.Expr:
    if isinstance(key, exp.Literal) and not key.is_string:
        item = select.expressions[int(key.name) - 1]
        return bind(item.this if isinstance(item, exp.Alias) else item, scope)
    return bind(key, scope)


def _hoisted(builder: Builder, call: exp.Expr, computed: list[tuple[str, exp.Expr]]) -> exp.Expr:
    """The call with subqueries in its arguments replaced by computed columns."""

    def change(node: exp.Expr) -> exp.Expr | None:
        if not holds_query(node):
            return None
        name = builder.name("sub")
        computed.append((name, node.copy()))
        return column(name)

    return rewrite(call, change) if has_subquery(call) else call


def _over_groups(expression: exp.Expr, keys: list[tuple[exp.Expr, str]], calls: dict[exp.Expr, str]) -> exp.Expr:
    def change(node: exp.Expr) -> exp.Expr | None:
        if node in calls and belongs(node) and not is_windowed(node):
            return column(calls[node])
        if isinstance(node, exp.Window):
            return None
        for key, name in keys:
            if node == key and not isinstance(node, exp.Literal):
                return column(name)
        return None

    return rewrite(expression, change)


# -- windows ---------------------------------------------------------------------------------------


def _windowed(builder: Builder, node: Node, scope: Scope, items: list[exp.Expr]) -> tuple[Node, list[exp.Expr]]:
    """Window nodes for every OVER in the list, one for each set of partition columns."""
    calls: dict[exp.Window, str] = {}
    for item in items:
        for window in _windows(item):
            calls.setdefault(window, builder.name("win"))
    if not calls:
        return node, items
    computed: list[tuple[str, exp.Expr]] = []
    ready: dict[exp.Window, tuple[frozenset[str], exp.Expr]] = {}
    for window in calls:
        copy = window.copy()
        partition = []
        for key in window.args.get("partition_by") or []:
            name = plain_column(key)
            if name is None:
                name = builder.name("part")
                computed.append((name, unparen(key)))
            partition.append(name)
        copy.set("partition_by", [column(p) for p in partition])
        ready[window] = (frozenset(partition), _hoisted(builder, copy, computed))
    node = with_computed(builder, node, scope, computed)
    by_partition: dict[frozenset[str], list[tuple[str, exp.Expr]]] = {}
    for window, (partition_names, call) in ready.items():
        by_partition.setdefault(partition_names, []).append((calls[window], call))
    for partition_names, functions in by_partition.items():
        node = Window(node, tuple(sorted(partition_names)), tuple(functions))

    def change(found: exp.Expr) -> exp.Expr | None:
        return column(calls[found]) if isinstance(found, exp.Window) and found in calls and belongs(found) else None

    return node, [rewrite(i, change) for i in items]


def _windows(expression: exp.Expr) -> list[exp.Window]:
    found, stack = [], [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Window):
            if any(isinstance(x, exp.Window) for x in node.walk() if x is not node):
                raise Refused(Reason.UNSUPPORTED_SYNTAX, "a window inside a window")
            found.append(node)
        elif not isinstance(node, (exp.Select, exp.SetOperation)):
            stack.extend(node.iter_expressions())
    return found


def is_bare(expression: exp.Expr) -> bool:
    return is_row_column(unparen(expression))
