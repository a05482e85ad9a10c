"""GROUPING SETS, CUBE and ROLLUP become a UNION ALL of plain groupings, at most 64."""

from __future__ import annotations

from itertools import product

from sqlglot import exp

from airflow_provider_pgtrickle.dvm.expressions import rewrite, unparen
from airflow_provider_pgtrickle.dvm.frontend.aggregates import aggregate_calls, is_aggregate
from airflow_provider_pgtrickle.dvm.reasons import Reason, Refused
from airflow_provider_pgtrickle.dvm.schema import Schema

MAX_SETS = 64
Grouping = tuple[exp.Expr, ...]


def grouping_sets(query: exp.Query, schema: Schema) -> exp.Query:
    """
    SELECT a, sum(b) FROM t GROUP BY ROLLUP (a)
    → SELECT a, sum(b) FROM t GROUP BY a UNION ALL SELECT NULL, sum(b) FROM t
    """
    for select in reversed(list(query.find_all(exp.Select))):  # innermost first: outer ones are copied
        group = select.args.get("group")
        if group is None or not any(isinstance(g, (exp.GroupingSets, exp.Cube, exp.Rollup)) for g in _parts(group)):
            continue
        union = _union(select, _all_sets(group), schema.aggregates)
        if select is query:
            query = union
        else:
            select.replace(union)
    return query


def _parts(group: exp.Group) -> list[exp.Expr]:
    parts = list(group.expressions)
    for clause in ("grouping_sets", "cube", "rollup"):
        parts.extend(p for p in group.args.get(clause) or [] if isinstance(p, exp.Expr))
    return parts


def _all_sets(group: exp.Group) -> list[Grouping]:
    sets: list[Grouping] = []
    for combination in product(*(_sets_of(p) for p in _parts(group))):
        sets.append(tuple(e for part in combination for e in part))
        if len(sets) > MAX_SETS:
            raise Refused(Reason.TOO_MANY_GROUPINGS, f"over {MAX_SETS} sets", "Name the GROUPING SETS you need.")
    return sets


def _sets_of(part: exp.Expr) -> list[Grouping]:
    if isinstance(part, exp.Rollup):
        members = [_members(e) for e in part.expressions]
        return [tuple(e for m in members[:n] for e in m) for n in range(len(members), -1, -1)]
    if isinstance(part, exp.Cube):
        members = [_members(e) for e in part.expressions]
        if len(members) > 6:
            raise Refused(Reason.TOO_MANY_GROUPINGS, f"CUBE of {len(members)}", "Name the GROUPING SETS you need.")
        chosen = product(*(((True, m), (False, m)) for m in members))
        return [tuple(e for taken, m in c if taken for e in m) for c in chosen]
    if isinstance(part, exp.GroupingSets):
        return [s for e in part.expressions for s in _sets_of(e)]
    return [_members(part)]


def _members(expression: exp.Expr) -> Grouping:
    bare = unparen(expression)
    return tuple(bare.expressions) if isinstance(bare, exp.Tuple) else (bare,)


def _union(select: exp.Select, sets: list[Grouping], own: frozenset[str]) -> exp.Query:
    every = list(dict.fromkeys(e for s in sets for e in s))
    branches = [_branch(select, chosen, every, own) for chosen in sets]
    union: exp.Query = branches[0]
    for branch in branches[1:]:
        union = exp.Union(this=union, expression=branch, distinct=False)
    if select.args.get("distinct"):
        names = [i.alias_or_name for i in select.expressions]
        union = exp.Select(
            distinct=exp.Distinct(),
            expressions=[exp.column(n, table="__pgt_g", quoted=True) for n in names],
            from_=exp.From(this=exp.Subquery(this=union, alias=exp.TableAlias(this=exp.to_identifier("__pgt_g")))),
        )
    for clause in ("with_", "order", "limit", "offset"):
        if select.args.get(clause):
            union.set(clause, select.args[clause].copy())
    return union


def _branch(select: exp.Select, chosen: Grouping, every: list[exp.Expr], own: frozenset[str]) -> exp.Select:
    kept = {unparen(e) for e in chosen}
    absent = {unparen(e) for e in every} - kept

    def change(node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Grouping) or (isinstance(node, exp.Anonymous) and node.name.lower() == "grouping"):
            arguments = node.expressions or [node.this]
            bits = "".join("0" if unparen(a) in kept else "1" for a in arguments)
            return exp.Literal.number(int(bits, 2))
        if _aggregates(node, own):
            return node.copy()
        if node in absent:
            return _typed_null(node)
        return None

    branch = select.copy()
    for clause in ("with_", "order", "limit", "offset", "distinct"):
        branch.set(clause, None)
    items = []
    for item in select.expressions:
        value = item.this if isinstance(item, exp.Alias) else item
        items.append(exp.alias_(rewrite(value, change), item.alias_or_name, quoted=True))
    branch.set("expressions", items)
    if select.args.get("having"):
        branch.set("having", exp.Having(this=rewrite(select.args["having"].this, change)))
    distinct_keys = list(dict.fromkeys(e.copy() for e in chosen))
    branch.set("group", exp.Group(expressions=distinct_keys) if distinct_keys else None)
    if not distinct_keys and not any(next(aggregate_calls(i, own), None) for i in items):
        branch.set(
            "having",
            branch.args.get("having")
            or exp.Having(this=exp.GTE(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))),
        )
    return branch


def _aggregates(node: exp.Expr, own: frozenset[str]) -> bool:
    """An aggregate with all that belongs to it: what it reads are the rows, not the groups."""
    if not (isinstance(node, (exp.Filter, exp.WithinGroup)) or is_aggregate(node, own)):
        return False
    around = node.parent
    while isinstance(around, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        around = around.parent
    return not isinstance(around, exp.Window) or node.find_ancestor(exp.Window) is not around


def _typed_null(expression: exp.Expr) -> exp.Expr:
    """NULL of the expression's own type, whatever that is: the first of no values."""
    none = exp.Filter(
        this=exp.ArrayAgg(this=expression.copy()),
        expression=exp.Where(this=exp.false()),
    )
    return exp.Bracket(this=exp.Paren(this=none), expressions=[exp.Literal.number(1)], offset=1)
