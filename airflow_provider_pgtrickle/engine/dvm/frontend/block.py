"""One SELECT block is built clause by clause: FROM, WHERE, GROUP BY, HAVING, windows, the list, DISTINCT.

That is the order in which PostgreSQL evaluates them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import aggregate_calls, belongs, is_windowed
from airflow_provider_pgtrickle.engine.dvm.dialect import raw_type
from airflow_provider_pgtrickle.engine.dvm.expressions import (
    column,
    columns_of,
    conjunction,
    conjuncts,
    has_subquery,
    holds_query,
    is_row_column,
    plain_column,
    rewrite,
    substitute,
    tables_of,
    unparen,
)
from airflow_provider_pgtrickle.engine.dvm.frontend import from_items
from airflow_provider_pgtrickle.engine.dvm.frontend.bind import bind
from airflow_provider_pgtrickle.engine.dvm.frontend.builder import Builder
from airflow_provider_pgtrickle.engine.dvm.frontend.decorrelate import join_scalars, semi_join
from airflow_provider_pgtrickle.engine.dvm.frontend.grouping_sets import has_sets, sets_of
from airflow_provider_pgtrickle.engine.dvm.frontend.leave_as_written import leave_as_written
from airflow_provider_pgtrickle.engine.dvm.frontend.scope import Scope
from airflow_provider_pgtrickle.engine.dvm.frontend.subquery import of_expression, of_predicate
from airflow_provider_pgtrickle.engine.dvm.node import Node, descendants
from airflow_provider_pgtrickle.engine.dvm.operators.aggregate import Aggregate
from airflow_provider_pgtrickle.engine.dvm.operators.distinct import Distinct
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.nothing import Nothing
from airflow_provider_pgtrickle.engine.dvm.operators.outer_join import OuterJoin
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.operators.window import Window
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused


class _OnlyAsWritten(Exception):
    """The block can be evaluated by PostgreSQL, and not be taken apart.

    The server confuses some keys of GROUPING SETS with each other, or a window's frame ends where a table says.
    """


def build(builder: Builder, select: exp.Select, scope: Scope) -> tuple[Node, list[str]]:
    """Return the block's node and its output names."""
    try:
        return _build(builder, select, Scope(ctes=scope.ctes))
    except _OnlyAsWritten:
        return leave_as_written(builder, select, scope)


def _build(builder: Builder, select: exp.Select, scope: Scope) -> tuple[Node, list[str]]:
    group = from_items.build(builder, select, scope)
    where = select.args.get("where")
    terms = [bind(t, scope) for t in conjuncts(where.this)] if where else []
    plain = [t for t in terms if not has_subquery(t)]
    node = from_items.combine(list(group.relations), [*_plain(group.terms), *plain])
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


def _plain(terms: Iterable[exp.Expr]) -> list[exp.Expr]:
    return [t for t in terms if not has_subquery(t)]


def filtered(builder: Builder, node: Node, scope: Scope, terms: list[exp.Expr]) -> Node:
    """Return the rows for which every term is true.

    Subqueries become joins where they can; every other term with a subquery becomes a filter.
    """
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
        node = Filter(node, rest, of_predicate(builder, rest, scope, node) if has_subquery(rest) else ())
    return node


def _project(builder: Builder, node: Node, scope: Scope, outputs: list[str], items: list[exp.Expr]) -> Project:
    for number, item in enumerate(items):
        if has_subquery(item):
            node, items[number] = join_scalars(builder, node, item)
    subqueries = tuple(s for i in items if has_subquery(i) for s in of_expression(builder, i, scope, node))
    return Project(node, tuple((builder.name(o), i) for o, i in zip(outputs, items, strict=True)), subqueries)


def with_computed(builder: Builder, node: Node, scope: Scope, computed: list[tuple[str, exp.Expr]]) -> Node:
    """Return the node with further columns."""
    if not computed:
        return node
    subqueries = tuple(s for _, x in computed if has_subquery(x) for s in of_expression(builder, x, scope, node))
    return Project(node, tuple((n, column(n)) for n in node.names) + tuple(computed), subqueries)


# -- GROUP BY ------------------------------------------------------------------------------------


def _aggregates(builder: Builder, expression: exp.Expr) -> bool:
    return next(aggregate_calls(expression, builder.own_aggregates), None) is not None


def _grouped(
    builder: Builder, select: exp.Select, scope: Scope, node: Node, expressions: list[exp.Expr]
) -> tuple[Node, list[exp.Expr]]:
    """Return the grouped rows, and the expressions in terms of their columns."""
    group = select.args.get("group")
    computed: list[tuple[str, exp.Expr]] = []
    keys: dict[exp.Expr, str] = {}
    sets: list[list[str]] = []
    for grouping in sets_of(group):
        names: list[str] = []
        for key in (_bare_key(bind(raw, scope)) for raw in grouping):
            if key not in keys:
                name = plain_column(key)
                if name is None:
                    name = builder.name("key")
                    computed.append((name, key.copy()))  # orders are added to it, and `keys` finds it as it was
                keys[key] = name
            if keys[key] not in names:
                names.append(keys[key])
        sets.append(names)
    if has_sets(group) and _are_confused(node, keys, builder.schema.keeps_equal_keys_apart):
        raise _OnlyAsWritten
    calls: dict[exp.Expr, str] = {}
    asked: dict[exp.Expr, str] = {}
    for expression in expressions:
        for call in aggregate_calls(expression, builder.own_aggregates):
            calls.setdefault(call, builder.name("agg"))
        for call in filter(_is_grouping, expression.walk()):
            asked.setdefault(call, builder.name("grouping"))
    if not calls and not all(sets):
        # The query asks nothing of its one group, but only an aggregate makes the rows one group.
        calls[exp.Count(this=exp.Star(), big_int=True)] = builder.name("agg")
    hoisted = {c: _hoisted(builder, c, computed) for c in calls}
    node = with_computed(builder, node, scope, computed)
    rewritten = [_over_groups(e, keys, {**calls, **asked}) for e in expressions]
    given = {*keys.values(), *calls.values(), *asked.values()}
    dependent = sorted(set().union(*(columns_of(e) for e in rewritten)) - given)
    _require_dependent(node, dependent, sets)
    aggregates = tuple((n, hoisted[c]) for c, n in calls.items())
    if not has_sets(group) and not asked:
        return Aggregate(node, (*sets[0], *dependent), aggregates), rewritten
    branches = []
    for names in sets:
        branch = Aggregate(node, (*names, *dependent), aggregates)
        bits = {n: _bits(call, keys, names, scope) for call, n in asked.items()}
        branches.append(_with_nulls(builder, branch, node, keys, names, bits))
    together = branches[0] if len(branches) == 1 else UnionAll(tuple(branches), branches[0].names)
    return together, rewritten


def _bare_key(key: exp.Expr) -> exp.Expr:
    """Return a key without the parentheses that PostgreSQL prints around it, also around those of a subquery."""
    while isinstance(key, exp.Paren) or (isinstance(key, exp.Subquery) and isinstance(key.this, exp.Subquery)):
        key = key.this
    return key


def _require_dependent(node: Node, columns: Iterable[str], sets: list[list[str]]) -> None:
    """Refuse columns beside the keys that don't follow from a key of their table, which must stand in every set.

    PostgreSQL has checked that there are no others, so such a one means that a key was not recognized.
    """
    common = set(sets[0]).intersection(*sets)
    found = {name for s in descendants(node) if isinstance(s, Scan) if _is_told_apart(s, common) for name in s.names}
    for name in columns:
        if name not in found:
            raise Refused(Reason.UNSUPPORTED_SYNTAX, f"{name}, which no key of GROUP BY determines")


def _is_told_apart(scan: Scan, names: Collection[str]) -> bool:
    return any(key <= set(names) for key in scan.unique_keys)


def _are_confused(node: Node, keys: Iterable[exp.Expr], equal_ones_kept_apart: bool) -> bool:
    """Whether keys are constants or equal after derived tables are flattened as PostgreSQL's planner does it.

    PostgreSQL shows a constant key as NULL in the first item of the list that has it, and as itself elsewhere.
    """
    items = {name: x for n in descendants(node) if isinstance(n, Project) for name, x in n.items}
    found: set[exp.Expr] = set()
    for key in keys:
        flat, before = substitute(key, items), None
        while flat != before:
            flat, before = unparen(substitute(flat, items)), flat
        if not flat.find(exp.Column) or (flat in found and not equal_ones_kept_apart):
            return True
        found.add(flat)
    return False


def _with_nulls(
    builder: Builder, branch: Aggregate, rows: Node, keys: dict[exp.Expr, str], names: list[str], bits: dict[str, int]
) -> Node:
    """Return one grouping with a column for each key of all groupings.

    A key that this grouping doesn't group by is a NULL of the key's own type.
    """
    absent = list(dict.fromkeys(k for k in keys.values() if k not in names))
    nulls = {k: raw_type(t) for k in absent if (t := rows.column(k).type) is not None}
    untyped = {k: builder.name("null") for k in absent if k not in nulls}
    child: Node = branch
    if untyped:
        nothing = Nothing(rows, tuple((n, k) for k, n in untyped.items()))
        child = OuterJoin("LEFT", branch, nothing, exp.true())
    values: dict[str, exp.Expr] = {n: column(n) for n in branch.names}
    values |= {k: exp.Cast(this=exp.null(), to=t) for k, t in nulls.items()}
    values |= {k: column(n) for k, n in untyped.items()}
    values |= {n: exp.Literal.number(b) for n, b in bits.items()}
    rest = [n for n in branch.names if n not in keys.values()]
    order = [*dict.fromkeys(keys.values()), *rest, *bits]
    return Project(child, tuple((n, values[n]) for n in order))


def _is_grouping(node: exp.Expr) -> bool:
    """Whether a node is grouping(a, …), which gives a bit for each key that a row is not grouped by."""
    return isinstance(node, exp.Grouping) or (isinstance(node, exp.Anonymous) and node.name.lower() == "grouping")


def _bits(call: exp.Expr, keys: dict[exp.Expr, str], names: list[str], scope: Scope) -> int:
    arguments = [unparen(a) for a in call.expressions]
    return int("".join("0" if keys.get(a) in names else "1" for a in arguments), 2)


def _hoisted(builder: Builder, call: exp.Expr, computed: list[tuple[str, exp.Expr]]) -> exp.Expr:
    """Return the call with the subqueries in its arguments replaced by computed columns.

    A subquery may have no value for a row that FILTER, CASE or COALESCE keep from it, so they go with it:

    max((SELECT …)) FILTER (WHERE p)  →  max(c) FILTER (WHERE p), c = CASE WHEN p THEN (SELECT …) END
    """
    if not has_subquery(call):
        return call

    def out_of(expression: exp.Expr, condition: exp.Expr | None = None) -> exp.Expr:
        def change(node: exp.Expr) -> exp.Expr | None:
            guards = isinstance(node, (exp.Case, exp.Coalesce)) and has_subquery(node)
            if not (guards or holds_query(node)):
                return None
            name, value = builder.name("sub"), node.copy()
            if condition is not None:
                value = exp.Case(ifs=[exp.If(this=condition.copy(), true=value)])
            computed.append((name, value))
            return column(name)

        return rewrite(expression, change)

    made = call.copy()
    filtered = unparen(made.this) if isinstance(made, exp.Window) else made
    if isinstance(filtered, exp.Filter):
        filtered.set("this", out_of(filtered.this, filtered.expression.this))
    return out_of(made)


def _over_groups(expression: exp.Expr, keys: dict[exp.Expr, str], calls: dict[exp.Expr, str]) -> exp.Expr:
    def change(node: exp.Expr) -> exp.Expr | None:
        if node in calls and belongs(node) and not is_windowed(node):
            return column(calls[node])
        if isinstance(node, exp.Window):
            return None
        if isinstance(node, exp.WindowSpec):
            return node.copy()  # a frame's numbers are no key, even if the query groups by an equal constant
        return column(keys[node]) if node in keys else None

    return rewrite(expression, change)


# -- windows ---------------------------------------------------------------------------------------


def _windowed(builder: Builder, node: Node, scope: Scope, items: list[exp.Expr]) -> tuple[Node, list[exp.Expr]]:
    """Add a window node for each set of partition columns in the list, and refer to its columns."""
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
                computed.append((name, unparen(key).copy()))  # as for GROUP BY
            partition.append(name)
        copy.set("partition_by", [column(p) for p in partition])
        spec = copy.args.get("spec")
        if spec is not None and tables_of(spec):
            raise _OnlyAsWritten
        # Frame bounds don't depend on a row, so subqueries over constants stay where they are.
        copy.set("spec", None)
        made = _hoisted(builder, copy, computed)
        made.set("spec", spec)
        ready[window] = (frozenset(partition), made)
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
