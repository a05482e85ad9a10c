"""A join in parentheses that begins with LATERAL is opened: the algebra joins LATERAL to what is on its left."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.schema import Schema


def open_laterals(query: exp.Query, schema: Schema) -> exp.Query:
    """
    FROM a, (LATERAL f(a.x) AS q JOIN b ON c)   →   FROM a CROSS JOIN LATERAL f(a.x) AS q JOIN b ON c

    Each row of f meets its own row of a in both; the joins in parentheses keep the rows of f, or lose them.
    """
    for outer in list(query.find_all(exp.Join)):
        holder, found = outer.parent, _opened(outer.this)
        if holder is None or found is None or not _is_product(outer) or not all(map(_keeps_left, found[1])):
            continue
        first, joins = found[0].copy(), [join.copy() for join in found[1]]
        first.set("joins", None)
        beside = holder.args["joins"]
        at = next(number for number, join in enumerate(beside) if join is outer)
        holder.set("joins", [*beside[:at], exp.Join(this=first, kind="CROSS"), *joins, *beside[at + 1 :]])
    return query


def _opened(item: exp.Expr) -> tuple[exp.Lateral, list[exp.Join]] | None:
    """Return the LATERAL with which joins in parentheses begin, and the joins; None where they begin otherwise."""
    if isinstance(item, exp.Lateral):
        joins = item.args.get("joins")
        return (item, joins) if joins else None
    if not isinstance(item, exp.Subquery) or item.alias:
        return None
    found = _opened(item.this)
    return None if found is None else (found[0], [*found[1], *(item.args.get("joins") or [])])


def _is_product(join: exp.Join) -> bool:
    return not any(join.args.get(name) for name in ("side", "on", "using", "method"))


def _keeps_left(join: exp.Join) -> bool:
    return join.side in ("", "LEFT") and not join.args.get("using") and not join.args.get("method")
