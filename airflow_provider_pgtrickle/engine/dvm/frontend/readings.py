"""What a query reads of the clock is marked: each largest expression over the clock and constants is one `Reading`."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.clock import clock_type
from airflow_provider_pgtrickle.engine.dvm.dialect import Reading, Syntax
from airflow_provider_pgtrickle.engine.dvm.schema import Schema

#: Functions of a time that give a time or a number, and none of which gives NULL for values.
_FUNCTIONS = {"date", "date_bin", "date_part", "date_trunc", "make_interval", "timestamp", "timestamptz", "timezone"}
_OPERATIONS = (exp.Add, exp.AtTimeZone, exp.Div, exp.Mul, exp.Neg, exp.Paren, exp.Sub)
_TYPES = ("date", "time", "interval", "integer", "bigint", "smallint", "numeric", "double precision")
_PLAIN = (exp.Literal, exp.Var, exp.DataType, exp.Kwarg)


def readings(query: exp.Query, schema: Schema) -> exp.Query:
    """
    WHERE t.ts > now() - interval '7 days'  →  WHERE t.ts > Reading(now() - interval '7 days')
    """
    if not schema.reads_clock:
        return query
    stack: list[exp.Expr] = [query]
    while stack:
        node = stack.pop()
        if isinstance(node, Reading):
            continue
        if not isinstance(node, exp.Paren) and _reads(node):
            mark = Reading()
            node.replace(mark)
            mark.set("this", node)
        else:
            stack.extend(node.iter_expressions())
    return query


def _reads(node: exp.Expr) -> bool | None:
    """Whether the clock decides the value of an expression; None if anything but constants does, too."""
    if clock_type(node) is not None:
        return True
    if not _may_grow(node):
        return False if isinstance(node, _PLAIN) else None
    found = [_reads(child) for child in node.iter_expressions()]
    return None if None in found else True in found


def _may_grow(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        of_literal = isinstance(node.this, exp.Literal)
        return of_literal or str(node.to.args.get("kind") or node.to).lower().startswith(_TYPES)
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _FUNCTIONS and not isinstance(node.parent, exp.Dot)
    if isinstance(node, Syntax):
        return str(node.this) == "EXTRACT"
    return isinstance(node, (*_OPERATIONS, exp.Kwarg))
