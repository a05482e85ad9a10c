"""FROM: tables, derived tables, joins and lateral items to nodes.

Inner joins of one FROM are collected into one n-ary join; a term of WHERE that reads one relation
only goes down to it, the others become join terms.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from airflow_provider_pgtrickle.dvm.emit import SOURCE_META
from airflow_provider_pgtrickle.dvm.expressions import (
    column,
    columns_of,
    conjunction,
    conjuncts,
    has_subquery,
)
from airflow_provider_pgtrickle.dvm.frontend.bind import bind, bind_nested
from airflow_provider_pgtrickle.dvm.frontend.drop_limit import is_bounded
from airflow_provider_pgtrickle.dvm.frontend.join_subqueries import join_subqueries
from airflow_provider_pgtrickle.dvm.frontend.parse import output_names
from airflow_provider_pgtrickle.dvm.frontend.scope import Scope
from airflow_provider_pgtrickle.dvm.frontend.subquery_order import make_total
from airflow_provider_pgtrickle.dvm.node import Column, Node
from airflow_provider_pgtrickle.dvm.operators.constant import Constant
from airflow_provider_pgtrickle.dvm.operators.filter import Filter
from airflow_provider_pgtrickle.dvm.operators.inner_join import InnerJoin
from airflow_provider_pgtrickle.dvm.operators.lateral import Lateral
from airflow_provider_pgtrickle.dvm.operators.native import Native
from airflow_provider_pgtrickle.dvm.operators.outer_join import OuterJoin
from airflow_provider_pgtrickle.dvm.operators.scan import Scan
from airflow_provider_pgtrickle.dvm.reasons import Reason, Refused

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.dvm.frontend.build import Builder


@dataclass
class Group:
    """Relations joined inner so far, with the terms that bind them."""

    relations: list[Node] = field(default_factory=list)
    terms: list[exp.Expr] = field(default_factory=list)


def combine(relations: list[Node], terms: list[exp.Expr]) -> Node:
    """One node of relations and terms, each term as low as it can stand."""
    across: list[exp.Expr] = []
    within: list[list[exp.Expr]] = [[] for _ in relations]
    names = [set(r.names) for r in relations]
    for term in terms:
        used = columns_of(term)
        owner = next((i for i, held in enumerate(names) if used and used <= held), None)
        (across if owner is None else within[owner]).append(term)
    lowered = [sink(r, own) for r, own in zip(relations, within, strict=True)]
    if len(lowered) == 1:
        return Filter(lowered[0], conjunction(across)) if across else lowered[0]
    return InnerJoin(tuple(lowered), tuple(across))


def sink(node: Node, terms: list[exp.Expr]) -> Node:
    """The node with the terms of a filter above it pushed down."""
    if not terms:
        return node
    if isinstance(node, OuterJoin) and node.kind == "LEFT":
        held = set(node.left.names)
        left = [t for t in terms if columns_of(t) <= held]
        rest = [t for t in terms if not columns_of(t) <= held]
        node = replace(node, left=sink(node.left, left))
        return Filter(node, conjunction(rest)) if rest else node
    if isinstance(node, InnerJoin):
        return combine(list(node.relations), [*node.terms, *terms])
    if isinstance(node, Filter) and not node.parts:
        return Filter(node.child, conjunction([*conjuncts(node.predicate), *terms]))
    return Filter(node, conjunction(terms))


def build(builder: Builder, select: exp.Select, scope: Scope) -> Group:
    """All of a block's FROM; aliases are added to `scope`."""
    source = select.args.get("from_")
    if source is None:
        return Group([Constant(None, (builder.name("one"),))])
    group = _item(builder, source.this, scope, Group())
    for join in select.args.get("joins") or []:
        group = _join(builder, group, join, scope)
    return group


def _item(builder: Builder, item: exp.Expr, scope: Scope, left: Group) -> Group:
    """A FROM item with the joins that hang on it; `left` is what a lateral item may refer to."""
    joins = item.args.get("joins") or []
    group = _relation(builder, item, scope, left)
    for join in joins:
        group = _join(builder, group, join, scope)
    return group


def _relation(builder: Builder, item: exp.Expr, scope: Scope, left: Group) -> Group:
    if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
        return Group([_table(builder, item, scope)])
    if isinstance(item, exp.Subquery):
        if _is_query(item.this):
            return Group([_derived(builder, item, scope)])
        if not item.alias:
            return _item(builder, item.this, scope, left)
        raise Refused(Reason.UNSUPPORTED_SYNTAX, f"alias {item.alias} on a join")
    if isinstance(item, (exp.Values, exp.Unnest, exp.Lateral, exp.Table)):
        return Group([_function(builder, item, scope)])
    raise Refused(Reason.UNSUPPORTED_SYNTAX, f"{type(item).__name__} in FROM")


def _is_query(inner: exp.Expr) -> bool:
    """Whether parentheses hold a query, not a join."""
    while isinstance(inner, exp.Subquery) and not inner.alias and not inner.args.get("joins"):
        inner = inner.this
    return isinstance(inner, (exp.Select, exp.SetOperation))


def _table(builder: Builder, table: exp.Table, scope: Scope) -> Node:
    alias = table.alias_or_name
    key = table.meta.get(SOURCE_META)
    if key is None:
        cte = scope.ctes.get(table.name)
        if table.db or cte is None:
            raise Refused(Reason.UNSUPPORTED_SYNTAX, f"{table.sql('postgres')} is no relation in sight")
        node, outputs = builder.common_table(table.name, cte)
        _register(scope, table, alias, outputs, node.names)
        return node
    source = builder.sources[key]
    # Of a type whose equal values differ no more is known than of any expression's.
    mapping = tuple(
        (c.name, Column(builder.name(c.name), c.type if c.deterministic else None, c.not_null, c.has_equality))
        for c in source.columns
    )
    scan = Scan(source, mapping)
    _register(scope, table, alias, [o for o, _ in mapping], scan.names)
    return scan


def _derived(builder: Builder, item: exp.Subquery, scope: Scope) -> Node:
    if is_bounded(item):
        raise Refused(Reason.UNSUPPORTED_SYNTAX, "LIMIT after a derived table's parentheses")
    node, outputs = builder.query(item.this, scope.child())
    _register(scope, item, item.alias, outputs, node.names)
    return node


def _register(scope: Scope, item: exp.Expr, alias: str, outputs: list[str], names: tuple[str, ...]) -> None:
    """Column aliases of the item win over the relation's own names, from the left."""
    held = item.args.get("alias")
    given = [i.name for i in held.args.get("columns") or []] if held else []
    outputs = given + outputs[len(given) :]
    scope.add(alias, dict(zip(outputs, names, strict=True)))


def _function(builder: Builder, item: exp.Expr, scope: Scope) -> Node:
    """A FROM item that reads no relation and no neighbour."""
    bare, outputs, ordinality = _bare(item)
    if isinstance(bare, exp.Subquery):
        return _derived(builder, exp.Subquery(this=bare.this, alias=item.args["alias"].copy()), scope)
    names = tuple(builder.name(o) for o in outputs)
    scope.add(item.alias, dict(zip(outputs, names, strict=True)))
    bound = bind(bare, Scope())
    reads = frozenset(t.meta[SOURCE_META] for t in bound.find_all(exp.Table) if SOURCE_META in t.meta)
    if not reads:
        return Constant(bound, names, ordinality)
    if ordinality:
        raise Refused(Reason.UNSUPPORTED_SYNTAX, "a subquery under WITH ORDINALITY")
    query = _all_of(bound, outputs)
    make_total(builder, query)
    builder.note_reads(query)
    return Native(query, names, reads)


def _all_of(item: exp.Expr, outputs: list[str]) -> exp.Select:
    """SELECT outputs FROM item."""
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
    """The item without its alias, its output columns, and whether it counts its rows."""
    alias = item.args.get("alias")
    outputs = [i.name for i in alias.args.get("columns") or []] if alias else []
    if any(isinstance(i, exp.ColumnDef) for i in (alias.args.get("columns") or [] if alias else [])):
        raise Refused(Reason.UNSUPPORTED_SYNTAX, "a column definition list", "It runs FULL.")
    ordinality = bool(item.args.get("ordinality"))
    bare = item.copy()
    inner = bare.this if isinstance(bare, exp.Lateral) else bare
    if isinstance(inner, exp.Unnest):
        offset = inner.args.get("offset")
        if offset:
            ordinality = True
            if isinstance(offset, exp.Identifier):
                outputs.append(offset.name)
        inner.set("offset", None)
    bare.set("alias", None)
    bare.set("joins", None)
    if isinstance(bare, (exp.Lateral, exp.Table)):
        bare = bare.this
    if isinstance(bare, exp.Values):
        bare = exp.Paren(this=bare)
        outputs = outputs or [f"column{n}" for n in range(1, len(item.expressions[0].expressions) + 1)]
    if not outputs and isinstance(bare, exp.Subquery):
        outputs = output_names(bare)
    if not outputs:
        outputs = [item.alias]
    return bare, outputs, ordinality


def _join(builder: Builder, left: Group, join: exp.Join, scope: Scope) -> Group:
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    if join.method and join.method.upper() == "NATURAL":
        raise Refused(Reason.UNSUPPORTED_SYNTAX, "NATURAL JOIN outside its canonical form")
    if _reads_neighbours(join.this, scope):
        if side not in ("", "LEFT"):
            raise Refused(Reason.UNSUPPORTED_SYNTAX, f"{side} JOIN LATERAL", "Use LEFT or inner.")
        return Group([_lateral(builder, _joined(builder, left, scope), join, side == "LEFT", scope)])
    known = set(scope.relations)
    right = _item(builder, join.this, scope, left)
    terms = _on(builder, join, scope, known, side)
    if not side and kind in ("", "INNER", "CROSS"):
        return Group([*left.relations, *right.relations], [*left.terms, *right.terms, *terms])
    first, second = _joined(builder, left, scope), _joined(builder, right, scope)
    if side == "RIGHT":
        side, first, second = "LEFT", second, first
    first, second, terms = join_subqueries(builder, scope, side, first, second, terms)
    return Group([OuterJoin(side, first, second, conjunction(terms))])


def _joined(builder: Builder, group: Group, scope: Scope) -> Node:
    from airflow_provider_pgtrickle.dvm.frontend.block import filtered

    node = combine(group.relations, [t for t in group.terms if not has_subquery(t)])
    return filtered(builder, node, scope, [t for t in group.terms if has_subquery(t)])


def _on(builder: Builder, join: exp.Join, scope: Scope, left_aliases: set[str], side: str) -> list[exp.Expr]:
    if join.args.get("on") is not None:
        return [bind(t, scope) for t in conjuncts(join.args["on"])]
    terms: list[exp.Expr] = []
    for identifier in join.args.get("using") or []:
        name = identifier.name
        left = scope.merged.get(name)
        if left is None:
            left = next(column(c[name]) for a, c in scope.relations.items() if a in left_aliases and name in c)
        right = next(column(c[name]) for a, c in scope.relations.items() if a not in left_aliases and name in c)
        terms.append(exp.EQ(this=left.copy(), expression=right))
        if side == "FULL":
            scope.merged[name] = exp.Coalesce(this=left.copy(), expressions=[right.copy()])
        elif side == "RIGHT":
            scope.merged[name] = right.copy()
        else:
            scope.merged.setdefault(name, left.copy())
    return terms


def _reads_neighbours(item: exp.Expr, scope: Scope) -> bool:
    """Whether a FROM item refers to its left neighbours."""
    if isinstance(item, exp.Lateral):
        inner = item.this
    elif isinstance(item, (exp.Unnest, exp.Values)) or (
        isinstance(item, exp.Table) and not isinstance(item.this, exp.Identifier)
    ):
        inner = item
    else:
        return False
    return any(
        scope.knows(c.table) or (not c.table and not isinstance(inner, exp.Subquery))
        for c in inner.find_all(exp.Column)
    )


def _lateral(builder: Builder, left: Node, join: exp.Join, outer: bool, scope: Scope) -> Node:
    from airflow_provider_pgtrickle.dvm.frontend.subquery import analyse, of_expression

    item = join.this
    bare, outputs, ordinality = _bare(item)
    if isinstance(bare, exp.Subquery):
        query = bind_nested(bare.this, scope)
        builder.note_reads(query)
        parts = analyse(builder, query, scope, left)
        bound: exp.Expr = exp.Subquery(this=query)
    else:
        bound = bind(bare, scope)
        parts = of_expression(builder, bound, scope, left)
    names = [builder.name(o) for o in outputs]
    scope.add(item.alias, dict(zip(outputs, names, strict=True)))
    terms = [bind(t, scope) for t in conjuncts(join.args.get("on"))]
    return Lateral(
        left,
        bound,
        item.alias,
        tuple(zip(outputs, names, strict=True)),
        outer,
        conjunction(terms) if terms else None,
        ordinality,
        parts,
    )
