"""What a query reads by its text alone, which is all that can be known while a DAG file is parsed.

The text doesn't show what a view reads; the task `plan` compares with what PostgreSQL knows.
"""

from __future__ import annotations

from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from airflow_provider_pgtrickle.engine.dvm.budget import check_text, deep
from airflow_provider_pgtrickle.engine.errors import QueryError, SyntaxFault


def reads(query: str, default_schema: str = "public") -> frozenset[tuple[str, str]]:
    """Schema and name of each relation in the query; `SyntaxFault` carries line and column.

    >>> sorted(reads("WITH a AS (SELECT * FROM a) SELECT * FROM a JOIN s.b USING (id)"))
    [('public', 'a'), ('s', 'b')]
    """
    check_text(query)
    return _reads(query, default_schema)


@lru_cache(maxsize=4096)
def _reads(query: str, default_schema: str) -> frozenset[tuple[str, str]]:
    statement = _parsed(query)
    found = set()
    for table in statement.find_all(exp.Table):
        # A function in FROM is a Table node too, but without an identifier.
        if not isinstance(table.this, exp.Identifier) or _is_cte(table):
            continue
        schema = table.args.get("db")
        found.add((_folded(schema) if schema else default_schema, _folded(table.this)))
    return frozenset(found)


def starred(query: str) -> tuple[str, ...]:
    """The relations whose columns the query takes by `*`, as it writes them; a `*` of a subquery names what that has.

    >>> starred("SELECT o.*, count(*) FROM orders o JOIN items USING (id)")
    ('orders',)
    >>> starred("WITH a AS (SELECT id FROM b) SELECT * FROM a WHERE EXISTS (SELECT * FROM c)")
    ()
    """
    found = set()
    for select in _parsed(query).find_all(exp.Select):
        if isinstance(select.parent, exp.Exists):
            continue
        items = [item.this if isinstance(item, exp.Alias) else item for item in select.expressions]
        every = any(isinstance(item, exp.Star) for item in items)
        some = {item.table for item in items if isinstance(item, exp.Column) and isinstance(item.this, exp.Star)}
        clauses = [select.args.get("from_"), *(select.args.get("joins") or ())]
        for table in (clause.this for clause in clauses if clause is not None):
            named = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier) and not _is_cte(table)
            if named and (every or table.alias_or_name in some):
                found.add(".".join(part.name for part in table.parts))
    return tuple(sorted(found))


def _parsed(query: str) -> exp.Query | exp.Values:
    try:
        with deep():
            statements = [s for s in sqlglot.parse(query, read="postgres") if s is not None]
    except ParseError as error:
        detail = error.errors[0] if error.errors else {}
        near = f" at or near {detail['highlight']!r}" if detail.get("highlight") else ""
        raise SyntaxFault(f"Syntax error{near}", place=_place(detail)) from None
    except TokenError:
        raise SyntaxFault("A quote or a comment is not closed") from None
    if len(statements) != 1:
        raise QueryError(f"The query has {len(statements)} statements", remedy="Give one SELECT statement.")
    if not isinstance(statements[0], exp.Query | exp.Values):
        kind = statements[0].key.upper()
        raise QueryError(f"The defining query is no SELECT but {kind}", remedy="Give one SELECT statement.")
    return statements[0]


def _place(detail: dict[str, object]) -> str | None:
    return f"line {detail['line']}, column {detail['col']}" if detail.get("line") else None


def _is_cte(table: exp.Table) -> bool:
    """Whether the name means a CTE. A CTE shadows a table, but only after its own definition."""
    if table.args.get("db"):
        return False
    name = _folded(table.this)
    child: exp.Expr = table
    node: exp.Expr | None = table.parent
    inside: exp.Expr | None = None
    while node is not None:
        if isinstance(node, exp.With):
            inside = child
        elif (ctes := node.args.get("with_")) is not None:
            visible = ctes.expressions
            if inside is not None and not ctes.recursive:
                visible = visible[: _index(visible, inside)]
            if any(_folded(cte.args["alias"].this) == name for cte in visible):
                return True
            inside = None
        child, node = node, node.parent
    return False


def _index(items: list[exp.Expr], wanted: exp.Expr | None) -> int:
    """The position of `wanted` by identity, because two CTEs of equal text are equal nodes."""
    return next(i for i, item in enumerate(items) if item is wanted)


def _folded(identifier: exp.Expr) -> str:
    return identifier.name if identifier.args.get("quoted") else identifier.name.lower()
