"""FROM's tables, derived tables, joins and lateral items become nodes.

Inner joins of one FROM are collected into one n-ary join. A term of WHERE that reads a single relation is pushed down
to it; other terms become join terms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.dialect import Defined, RowsFrom, Syntax, using_alias
from airflow_provider_pgtrickle.engine.dvm.expressions import (
    SOURCE_META,
    column,
    columns_of,
    conjunction,
    conjuncts,
    has_subquery,
    holds_query,
    plain_column,
    render,
    tables_of,
)
from airflow_provider_pgtrickle.engine.dvm.frontend.bind import bind, bind_nested
from airflow_provider_pgtrickle.engine.dvm.frontend.builder import Builder
from airflow_provider_pgtrickle.engine.dvm.frontend.drop_limit import is_bounded
from airflow_provider_pgtrickle.engine.dvm.frontend.join_subqueries import join_subqueries
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import output_names
from airflow_provider_pgtrickle.engine.dvm.frontend.scope import WITH_ITEM, Scope
from airflow_provider_pgtrickle.engine.dvm.frontend.subquery_order import make_total
from airflow_provider_pgtrickle.engine.dvm.node import Column, Node
from airflow_provider_pgtrickle.engine.dvm.operators.constant import Constant
from airflow_provider_pgtrickle.engine.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.engine.dvm.operators.inner_join import InnerJoin
from airflow_provider_pgtrickle.engine.dvm.operators.lateral import Lateral
from airflow_provider_pgtrickle.engine.dvm.operators.native import Native
from airflow_provider_pgtrickle.engine.dvm.operators.outer_join import OuterJoin
from airflow_provider_pgtrickle.engine.dvm.operators.scan import Scan
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused
from airflow_provider_pgtrickle.engine.dvm.types import base_type

#: The value of a column that no query may read.
_UNSEEN = exp.Null()


@dataclass(frozen=True)
class Operand:
    """One side of a join: the relations inner-joined so far, the terms that join them, and their visible columns."""

    relations: tuple[Node, ...] = ()
    terms: tuple[exp.Expr, ...] = ()
    columns: tuple[tuple[str, exp.Expr], ...] = ()
    """The names and values in the order of `*`. A stream table's internal columns are here as `_UNSEEN`, because a
    list of column aliases counts them too. USING looks its names up here, and not in all of FROM before it."""

    def value(self, name: str) -> exp.Expr:
        found = [value for n, value in self.columns if n == name]
        if len(found) != 1:
            raise Refused(Reason.UNSUPPORTED_SYNTAX, f"USING ({name}) names no one column of its side")
        return found[0]


def combine(relations: list[Node], terms: list[exp.Expr]) -> Node:
    """Return one node that joins the relations, with each term as low as it can stand."""
    across: list[exp.Expr] = []
    within: list[list[exp.Expr]] = [[] for _ in relations]
    names = [set(r.names) for r in relations]
    for term in terms:
        used = columns_of(term)
        owner = next((i for i, held in enumerate(names) if used and used <= held), None)
        (across if owner is None else within[owner]).append(term)
    lowered = [push_down(r, own) for r, own in zip(relations, within, strict=True)]
    if len(lowered) == 1:
        return Filter(lowered[0], conjunction(across)) if across else lowered[0]
    return InnerJoin(tuple(lowered), tuple(across))


def push_down(node: Node, terms: list[exp.Expr]) -> Node:
    """Return the node with the terms of a filter above it pushed down."""
    if not terms:
        return node
    if isinstance(node, OuterJoin) and node.kind == "LEFT":
        held = set(node.left.names)
        left = [t for t in terms if columns_of(t) <= held]
        rest = [t for t in terms if not columns_of(t) <= held]
        node = replace(node, left=push_down(node.left, left))
        return Filter(node, conjunction(rest)) if rest else node
    if isinstance(node, InnerJoin):
        return combine(list(node.relations), [*node.terms, *terms])
    if isinstance(node, Filter) and not node.subqueries:
        return Filter(node.child, conjunction([*conjuncts(node.predicate), *terms]))
    return Filter(node, conjunction(terms))


def build(builder: Builder, select: exp.Select, scope: Scope) -> Operand:
    """Build all of a block's FROM; aliases are added to `scope`."""
    source = select.args.get("from_")
    if source is None:
        return Operand((Constant(None, (builder.name("one"),)),))
    operand = _item(builder, source.this, scope, Operand())
    for join in select.args.get("joins") or []:
        operand = _join(builder, operand, join, scope)
    return operand


def _item(builder: Builder, item: exp.Expr, scope: Scope, left: Operand) -> Operand:
    """Build a FROM item with its own joins; a lateral item may refer to `left`."""
    operand = _relation(builder, item, scope, left)
    for join in item.args.get("joins") or []:
        operand = _join(builder, operand, join, scope)
    return operand


def _relation(builder: Builder, item: exp.Expr, scope: Scope, left: Operand) -> Operand:
    if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
        return _table(builder, item, scope)
    if isinstance(item, exp.Subquery):
        if _is_query(item.this):
            return _derived(builder, item, scope)
        inner = _item(builder, item.this, scope, left)
        return _renamed(scope, item, inner) if item.alias else inner
    if isinstance(item, (exp.Values, exp.Lateral, exp.Table)):
        return _function(builder, item, scope)
    raise Refused(Reason.UNSUPPORTED_SYNTAX, f"{type(item).__name__} in FROM")


def _renamed(scope: Scope, item: exp.Expr, inner: Operand) -> Operand:
    """Rename the columns of (a JOIN b …) AS j (x, y): they are columns of j from here on."""
    names = _given(item)
    columns = tuple((names[n] if n < len(names) else name, value) for n, (name, value) in enumerate(inner.columns))
    # A query can't refer to a name that occurs twice, unless the alias renames one of them.
    scope.add(
        item.alias,
        {n: v for n, v in columns if v is not _UNSEEN and sum(n == other for other, _ in columns) == 1},
    )
    return replace(inner, columns=columns)


def _is_query(inner: exp.Expr) -> bool:
    """Whether parentheses hold a query, not a join."""
    while isinstance(inner, exp.Subquery) and not inner.alias and not inner.args.get("joins"):
        inner = inner.this
    return isinstance(inner, (exp.Select, exp.SetOperation))


def _table(builder: Builder, table: exp.Table, scope: Scope) -> Operand:
    alias = table.alias_or_name
    key = table.meta.get(SOURCE_META)
    if key is None:
        cte = scope.ctes.get(table.name)
        if table.db or cte is None:
            raise Refused(Reason.UNSUPPORTED_SYNTAX, f"{render(table)} is no relation in sight")
        node, outputs = builder.common_table(table.name, cte)
        return _registered(scope, table, alias, outputs, node)
    source = builder.sources[key]
    # A type is left unknown, as it is for expressions, if its equal values may look different.
    mapping = tuple(
        (c.name, Column(builder.name(c.name), c.type if c.deterministic else None, c.not_null, c.has_equality))
        for c in source.columns
    )
    values = {output: column(held.name) for output, held in mapping}
    columns = tuple((named, values.get(name, _UNSEEN)) for name, named in source.aliases(_given(table)).items())
    scope.add(alias, {name: value for name, value in columns if value is not _UNSEEN})
    return Operand((Scan(source, mapping),), (), columns)


def _derived(builder: Builder, item: exp.Subquery, scope: Scope) -> Operand:
    if is_bounded(item):
        raise Refused(Reason.UNSUPPORTED_SYNTAX, "LIMIT after a derived table's parentheses")
    shared = item.meta.get(WITH_ITEM)
    node, outputs = builder.common_table(*shared) if shared else builder.query(item.this, scope.child())
    return _registered(scope, item, item.alias, outputs, node)


def _given(item: exp.Expr) -> list[str]:
    """Return the column aliases of an item."""
    held = item.args.get("alias")
    return [i.name for i in held.args.get("columns") or []] if held else []


def _registered(scope: Scope, item: exp.Expr, alias: str, outputs: list[str], node: Node) -> Operand:
    """Add an item to the scope; its column aliases replace the relation's own names, from the left."""
    given = _given(item)
    outputs = given + outputs[len(given) :]
    columns = tuple((output, column(name)) for output, name in zip(outputs, node.names, strict=True))
    scope.add(alias, dict(columns))
    return Operand((node,), (), columns)


def _function(builder: Builder, item: exp.Expr, scope: Scope) -> Operand:
    """Build a FROM item, such as a function or VALUES, that reads none of its neighbours."""
    bare, outputs, ordinality = _bare(item)
    if isinstance(bare, exp.Subquery):
        return _derived(builder, exp.Subquery(this=bare.this, alias=item.args["alias"].copy()), scope)
    names = tuple(builder.name(o) for o in outputs)
    bound = bind(bare, Scope(ctes=scope.ctes))
    reads = tables_of(bound)
    if not reads:
        node: Node = Constant(bound, names, ordinality)
    elif ordinality:
        raise Refused(Reason.UNSUPPORTED_SYNTAX, "a subquery under WITH ORDINALITY")
    else:
        query = _all_of(bound, outputs)
        make_total(builder, query)
        builder.note_reads(query)
        node = Native(query, names, reads)
    columns = tuple((output, column(name)) for output, name in zip(outputs, names, strict=True))
    scope.add(item.alias, dict(columns))
    return Operand((node,), (), columns)


def _all_of(item: exp.Expr, outputs: list[str]) -> exp.Select:
    """Return SELECT outputs FROM item."""
    alias = exp.TableAlias(
        this=exp.to_identifier("__pgt_i", quoted=True), columns=[exp.to_identifier(o, quoted=True) for o in outputs]
    )
    relation = (
        exp.Subquery(this=item.this, alias=alias)
        if isinstance(item, exp.Paren)
        else exp.Lateral(this=item, alias=alias)
    )
    return exp.Select(
        expressions=[exp.column(o, table="__pgt_i", quoted=True) for o in outputs], from_=exp.From(this=relation)
    )


def _bare(item: exp.Expr) -> tuple[exp.Expr, list[str], bool]:
    """Return the item without its alias, its output columns, and whether WITH ORDINALITY numbers its rows."""
    alias = item.args.get("alias")
    outputs = [i.name for i in alias.args.get("columns") or []] if alias else []
    defined = [i for i in (alias.args.get("columns") or [] if alias else []) if isinstance(i, exp.ColumnDef)]
    ordinality = bool(item.args.get("ordinality"))
    bare = item.copy()
    bare.set("alias", None)
    bare.set("joins", None)
    if isinstance(bare, (exp.Lateral, exp.Table)):
        place = bare.args.get("db")
        bare = exp.Dot(this=place, expression=bare.this) if place else bare.this
    if isinstance(bare, exp.Values):
        width = len(bare.expressions[0].expressions)
        bare.set("alias", None)
        bare = exp.Paren(this=bare)
        outputs += [f"column{n}" for n in range(len(outputs) + 1, width + 1)]
    if defined:
        # In ROWS FROM the columns keep their types, even if the item's own alias renames them.
        bare = RowsFrom(expressions=[Defined(this=bare, expressions=[i.copy() for i in defined])])
    if isinstance(bare, Syntax):
        outputs += (bare.args.get("outputs") or [])[len(outputs) :]
    if not outputs and isinstance(bare, exp.Subquery):
        outputs = output_names(bare)
    if not outputs:
        outputs = [item.alias]
    return bare, outputs, ordinality


def _join(builder: Builder, left: Operand, join: exp.Join, scope: Scope) -> Operand:
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    if join.method and join.method.upper() == "NATURAL":
        raise Refused(Reason.UNSUPPORTED_SYNTAX, "NATURAL JOIN outside its canonical form")
    if _reads_neighbours(join.this, scope):
        if side not in ("", "LEFT"):
            raise Refused(Reason.UNSUPPORTED_SYNTAX, f"{side} JOIN LATERAL", "Use LEFT or inner.")
        return _lateral(builder, left, join, side == "LEFT", scope)
    if not side and not join.args.get("using") and (beside := _beside(join.this, scope)) is not None:
        return _flattened(builder, left, join, beside, scope)
    if side == "LEFT" and (lateral := _as_lateral(builder, join, scope)) is not None:
        return _lateral(builder, left, lateral, True, scope)
    right = _item(builder, join.this, scope, left)
    terms, columns = _on(join, left, right, side, scope)
    if not side and kind in ("", "INNER", "CROSS"):
        terms = [*left.terms, *right.terms, *terms]
        return Operand((*left.relations, *right.relations), tuple(terms), columns)
    first, second = _joined(builder, left, scope), _joined(builder, right, scope)
    if side == "RIGHT":
        side, first, second = "LEFT", second, first
    first, second, terms = join_subqueries(builder, scope, side, first, second, terms)
    return Operand((OuterJoin(side, first, second, conjunction(terms)),), (), columns)


def _beside(item: exp.Expr, scope: Scope) -> tuple[exp.Expr, list[exp.Join]] | None:
    """Return what joins in parentheses begin with, and these joins, if one of them is lateral to what is outside."""
    joins: list[exp.Join] = []
    while True:
        joins = [*(item.args.get("joins") or []), *joins]
        if not isinstance(item, exp.Subquery) or item.alias or _is_query(item.this):
            break
        item = item.this
    if not any(_reads_neighbours(j.this, scope) for j in joins):
        return None
    if any((j.side or "").upper() not in ("", "LEFT") or j.args.get("using") for j in joins):
        return None
    return item, joins


def _flattened(
    builder: Builder, left: Operand, join: exp.Join, beside: tuple[exp.Expr, list[exp.Join]], scope: Scope
) -> Operand:
    """a JOIN (b LEFT JOIN LATERAL f(a) ON p) ON q  →  σ_q((a × b) LEFT JOIN LATERAL f(a) ON p)"""
    item, joins = beside
    right = _relation(builder, item, scope, left)
    operand = Operand((*left.relations, *right.relations), (*left.terms, *right.terms), (*left.columns, *right.columns))
    for inner in joins:
        operand = _join(builder, operand, inner, scope)
    terms = [bind(t, scope) for t in conjuncts(join.args.get("on"))]
    return replace(operand, terms=(*operand.terms, *terms))


def _joined(builder: Builder, operand: Operand, scope: Scope) -> Node:
    node = combine(list(operand.relations), [t for t in operand.terms if not has_subquery(t)])
    return builder.filtered(node, scope, [t for t in operand.terms if has_subquery(t)])


def _on(
    join: exp.Join, left: Operand, right: Operand, side: str, scope: Scope
) -> tuple[list[exp.Expr], tuple[tuple[str, exp.Expr], ...]]:
    """Return the terms of a join, and the visible columns of both sides: merged columns come once, and first."""
    if join.args.get("on") is not None:
        return [bind(t, scope) for t in conjuncts(join.args["on"])], left.columns + right.columns
    names = [identifier.name for identifier in join.args.get("using") or []]
    terms: list[exp.Expr] = []
    merged: dict[str, exp.Expr] = {}
    for name in names:
        one, other = left.value(name), right.value(name)
        terms.append(exp.EQ(this=one.copy(), expression=other.copy()))
        merged[name] = _merged(side, one, other, (*left.relations, *right.relations))
    scope.merged |= merged
    if (alias := using_alias(join)) is not None:
        scope.add(alias, merged)
    rest = ((n, v) for n, v in left.columns + right.columns if n not in merged)
    return terms, (*merged.items(), *rest)


#: The order in which PostgreSQL widens the types of numbers.
_WIDENING = ("smallint", "integer", "bigint", "numeric", "real", "double precision")


def _merged(side: str, left: exp.Expr, right: exp.Expr, relations: tuple[Node, ...]) -> exp.Expr:
    """Return the column that USING makes of two, in their common type.

    For an inner join it is the side that already has that type.
    """
    if side == "FULL":
        return exp.Coalesce(this=left.copy(), expressions=[right.copy()])
    types = {c.name: c.type for r in relations for c in r.columns}
    of_left, of_right = (types.get(plain_column(x) or "") for x in (left, right))
    kept, other = (right, left) if side == "RIGHT" else (left, right)
    if of_left is not None and of_left == of_right:
        return kept.copy()
    ranks = [_WIDENING.index(base) if (base := base_type(t or "")) in _WIDENING else -1 for t in (of_left, of_right)]
    if not side and ranks[1] > ranks[0]:
        kept, other = right, left
    # The CASE never takes its other branch, which is there to give it the common type of both.
    return exp.Paren(this=exp.Case(ifs=[exp.If(this=exp.true(), true=kept.copy())], default=other.copy()))


def _as_lateral(builder: Builder, join: exp.Join, scope: Scope) -> exp.Join | None:
    """L ⟕ R ON c(S(l, r))  →  L ⟕ LATERAL (SELECT r.* FROM R AS r WHERE c(S(l, r))) AS r ON true

    None unless S, a subquery, is about both sides, and R is a table or a derived table.
    """
    item, alias = join.this, join.this.alias_or_name

    terms = [t for t in conjuncts(join.args.get("on")) if has_subquery(t)]
    held = [{c.table for c in n.find_all(exp.Column)} for t in terms for n in t.walk() if holds_query(n)]
    is_about_both = any(alias in read and any(scope.knows(table) for table in read) for read in held)
    if item.args.get("joins") or not is_about_both:
        return None
    if isinstance(item, exp.Table) and SOURCE_META in item.meta:
        source = builder.sources[item.meta[SOURCE_META]]
        hidden = set(source.layout) - {c.name for c in source.columns}
        names = [named for name, named in source.aliases(_given(item)).items() if name not in hidden]
    elif isinstance(item, exp.Subquery) and _is_query(item.this) and not is_bounded(item):
        names = [*_given(item), *output_names(item)[len(_given(item)) :]]
    else:
        return None
    inner = exp.Select(
        expressions=[exp.alias_(exp.column(n, table=alias, quoted=True), n, quoted=True) for n in names],
        from_=exp.From(this=item.copy()),
        where=exp.Where(this=join.args["on"].copy()),
    )
    columns = [exp.to_identifier(n, quoted=True) for n in names]
    named = exp.TableAlias(this=exp.to_identifier(alias, quoted=True), columns=columns)
    return exp.Join(this=exp.Lateral(this=exp.Subquery(this=inner), alias=named), side="LEFT", on=exp.true())


def _reads_neighbours(item: exp.Expr, scope: Scope) -> bool:
    """Whether a FROM item refers to its left neighbours."""
    if isinstance(item, exp.Lateral):
        inner = item.this
    elif isinstance(item, exp.Values) or (isinstance(item, exp.Table) and not isinstance(item.this, exp.Identifier)):
        inner = item
    else:
        return False
    return any(
        scope.knows(c.table) or (not c.table and not isinstance(inner, exp.Subquery))
        for c in inner.find_all(exp.Column)
    )


def _lateral(builder: Builder, operand: Operand, join: exp.Join, outer: bool, scope: Scope) -> Operand:
    left, item = _joined(builder, operand, scope), join.this
    bare, outputs, ordinality = _bare(item)
    if isinstance(bare, exp.Subquery):
        query = bind_nested(bare.this, scope)
        builder.note_reads(query)
        bound: exp.Expr = exp.Subquery(this=query)
    else:
        bound = bind(bare, scope)
    if not columns_of(bound) <= set(left.names):
        raise Refused(Reason.UNSUPPORTED_SYNTAX, "LATERAL that refers past the joins around it", "Join it last.")
    subqueries = builder.subqueries_of(bound, scope, left)
    names = [builder.name(o) for o in outputs]
    columns = tuple((output, column(name)) for output, name in zip(outputs, names, strict=True))
    scope.add(item.alias, dict(columns))
    terms = [bind(t, scope) for t in conjuncts(join.args.get("on"))]
    node = Lateral(
        left,
        bound,
        item.alias,
        tuple(zip(outputs, names, strict=True)),
        outer,
        conjunction(terms) if terms else None,
        ordinality,
        subqueries,
    )
    return Operand((node,), (), operand.columns + columns)
