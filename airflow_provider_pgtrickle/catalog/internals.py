"""Look at a query's text for stars and for the internal columns of stream tables."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from airflow_provider_pgtrickle.names import RESERVED_PREFIX


def pruned(canonical: str) -> str:
    """`canonical` without the internal columns that a star brought into it, in any SELECT of it.

    >>> pruned("SELECT t.a, t.__pgt_row_id FROM public.t")
    'SELECT t.a FROM public.t'
    """
    try:
        tree = sqlglot.parse_one(canonical, dialect="postgres")
    except SqlglotError:
        return canonical
    changed = False
    for select in tree.find_all(exp.Select):
        kept = [e for e in select.expressions if not (isinstance(e, exp.Column) and e.name.startswith(RESERVED_PREFIX))]
        if kept and len(kept) < len(select.expressions):
            select.set("expressions", kept)
            changed = True
    return tree.sql(dialect="postgres") if changed else canonical


def is_open_ended(query: str) -> bool:
    """Whether columns added to a table later would change what `query` says.

    >>> [is_open_ended(f"SELECT {what} FROM t") for what in ("count(*)", "t.*", "f(t.*)")]
    [False, True, True]
    """
    try:
        tree = sqlglot.parse_one(query, dialect="postgres")
    except SqlglotError:
        # PostgreSQL understood it and sqlglot doesn't: assume the worse.
        return True
    if any(join.method.upper() == "NATURAL" for join in tree.find_all(exp.Join)):
        return True
    if any(isinstance(column.this, exp.Star) for column in tree.find_all(exp.Column)):
        return True
    return any(
        isinstance(e, exp.Star) and select.args.get("from_") and not isinstance(select.args["from_"].this, exp.Values)
        for select in tree.find_all(exp.Select)
        for e in select.expressions
    )
