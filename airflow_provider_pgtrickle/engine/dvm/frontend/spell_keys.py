"""Columns that follow from a grouped primary key become keys, too: a table's old rows have no primary key."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import defined_aliases, is_aggregate
from airflow_provider_pgtrickle.engine.dvm.expressions import unparen


def spell_keys(query: exp.Expr, own_aggregates: frozenset[str]) -> None:
    """Change each block of a query that PostgreSQL evaluates as it is written.

    SELECT id, name, count(*) FROM t GROUP BY id   →  … GROUP BY id, name
    """
    for select in query.find_all(exp.Select):
        group = select.args.get("group")
        if group is None:
            continue
        keys = {unparen(k) for k in group.find_all(exp.Expr)}
        rest = [*select.expressions, select.args.get("having"), select.args.get("order"), select.args.get("distinct")]
        rest += select.args.get("windows") or []
        aliases = defined_aliases(select)
        named: set[str] = set()
        if len(aliases) == 1:
            # PostgreSQL prints columns of a block's only table without the table's name, but with it in subqueries.
            aliases |= {""}
            named = {k.name for k in keys if isinstance(k, exp.Column)}
        made = {i.alias for i in select.expressions if isinstance(i, exp.Alias) and not isinstance(i.this, exp.Column)}
        found = [c for part in rest if part for c in _loose(part, keys, aliases, own_aggregates)]
        found = [c for c in found if c.name not in named and (c.table or c.name not in made)]
        group.set("expressions", [*group.expressions, *dict.fromkeys(c.copy() for c in found)])


def _loose(
    node: exp.Expr, keys: set[exp.Expr], aliases: frozenset[str], own_aggregates: frozenset[str]
) -> Iterator[exp.Column]:
    """Yield the block's columns that stand neither in a key nor inside an aggregate's call."""
    if node in keys:
        return
    if isinstance(node, exp.Column):
        if node.table in aliases:
            yield node
        return
    if isinstance(node, exp.Window):
        parts = [*node.this.iter_expressions(), *(v for k in ("partition_by", "order") for v in _listed(node, k))]
    elif is_aggregate(node, own_aggregates) or isinstance(node, (exp.Filter, exp.WithinGroup)):
        return
    else:
        parts = list(node.iter_expressions())
    if isinstance(node, exp.Select):
        aliases = aliases - defined_aliases(node) - {""}
    for part in parts:
        yield from _loose(part, keys, aliases, own_aggregates)


def _listed(window: exp.Window, clause: str) -> list[exp.Expr]:
    held = window.args.get(clause) or []
    return held if isinstance(held, list) else [held]
