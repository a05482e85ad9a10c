"""Tie breakers are terms that end a query's ORDER BY, so that rows that still tie look alike."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import aggregate_calls
from airflow_provider_pgtrickle.engine.dvm.expressions import SOURCE_META, is_row_column, returns_set, unparen
from airflow_provider_pgtrickle.engine.dvm.frontend.builder import Builder
from airflow_provider_pgtrickle.engine.dvm.frontend.grouping_sets import has_sets, sets_of
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import output_names
from airflow_provider_pgtrickle.engine.dvm.types import is_its_image


def tie_breakers(builder: Builder, query: exp.Expr) -> list[exp.Expr] | None:
    """Return terms for the end of a query's ORDER BY; None where no terms are known to be enough.

    SELECT DISTINCT, UNION, …      every column, by its position
    aggregates without GROUP BY    nothing: it is one row
    anything else                  the columns that tell the rows of the block apart
    """
    if isinstance(query, exp.SetOperation):
        if isinstance(query, exp.Union) and query.args.get("distinct") is False:
            return None
        return _positions(len(output_names(query)))
    if not isinstance(query, exp.Select):
        return None
    distinct = query.args.get("distinct")
    if distinct is not None:
        return None if distinct.args.get("on") else _positions(len(query.expressions))
    if any(returns_set(i) for i in query.expressions):
        return None
    return row_breakers(builder, query)


def row_breakers(builder: Builder, select: exp.Select) -> list[exp.Expr] | None:
    """Return the keys of GROUP BY; else the keys of the tables in FROM, and all columns of items without a key.

    Aggregates without GROUP BY make one row, which needs none. None where an item's columns aren't known.
    """
    group = select.args.get("group")
    if group is not None:
        keys = [k for k in dict.fromkeys(k for s in sets_of(group) for k in s) if not isinstance(k, exp.Literal)]
        if has_sets(group) and keys:
            # A key that a grouping leaves out is NULL, and differs from a grouped key whose value is NULL.
            keys.append(exp.Anonymous(this="GROUPING", expressions=[k.copy() for k in keys]))
        return [exp.Ordered(this=k.copy()) for k in keys]
    calls = (c for i in select.expressions for c in aggregate_calls(i, builder.own_aggregates))
    if select.args.get("having") or any(_is_own(c) for c in calls):
        return []
    found: list[exp.Expr] = []
    clauses = [select.args.get("from_"), *(select.args.get("joins") or [])]
    for item in (leaf for clause in clauses if clause for leaf in _leaves(clause.this)):
        columns = _of_item(builder, item)
        if columns is None:
            return None
        found += columns
    return found


def unordered(breakers: list[exp.Expr], held: exp.Expr) -> list[exp.Expr]:
    """Return the terms that a query or a window isn't ordered by already."""
    order = held.args.get("order")
    known = [unparen(o.this) for o in order.expressions] if order else []
    columns = {(c.table, c.name) for c in known if isinstance(c, exp.Column)}
    missing = [b for b in breakers if unparen(b.this) not in known]
    return [b for b in missing if not isinstance(b.this, exp.Column) or (b.this.table, b.this.name) not in columns]


def _positions(count: int) -> list[exp.Expr]:
    return [exp.Ordered(this=exp.Literal.number(n)) for n in range(1, count + 1)]


def _is_own(call: exp.Expr) -> bool:
    """Whether an aggregate belongs to this block, and not to the outer block whose columns it reads."""
    columns = list(call.find_all(exp.Column))
    return not columns or not all(is_row_column(c) for c in columns)


def _leaves(item: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the relations of a FROM item, including those of joins in parentheses."""
    if isinstance(item, exp.Subquery) and not isinstance(item.this, exp.Query) and not item.alias:
        yield from _leaves(item.this)
    else:
        yield item
    for join in item.args.get("joins") or []:
        yield from _leaves(join.this)


def _of_item(builder: Builder, item: exp.Expr) -> list[exp.Expr] | None:
    held = item.args.get("alias")
    given = [c.name for c in held.args.get("columns") or [] if isinstance(c, exp.Identifier)] if held else []
    if isinstance(item, exp.Table) and SOURCE_META in item.meta:
        source = builder.sources[item.meta[SOURCE_META]]
        aliases = source.aliases(given)
        keys = [c for c in source.columns if c.name in source.primary_key]
        found: list[exp.Expr] = []
        for column in keys or source.columns:
            reference = exp.column(aliases[column.name], table=item.alias_or_name, quoted=True)
            if column.has_equality:
                found.append(exp.Ordered(this=reference))
            if not column.has_equality or not (keys or is_its_image(column.type)):
                found.append(_text(reference))
        return found
    if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query):
        names = output_names(item)
        names = given + names[len(given) :]
    elif isinstance(item, (exp.Lateral, exp.Table, exp.Values)) and given:
        offset = item.args.get("offset")
        names = [*given, offset.name] if isinstance(offset, exp.Identifier) else given
    else:
        return None
    return [_text(exp.column(n, table=item.alias, quoted=True)) for n in names]


def _text(reference: exp.Expr) -> exp.Expr:
    return exp.Ordered(this=exp.Cast(this=reference.copy(), to=exp.DataType.build("text")))
