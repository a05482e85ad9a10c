"""Expressions over the columns of one row.

An expression is a sqlglot tree whose references to the row at hand are columns of the
pseudo-table `ROW`. Whatever else it holds (subqueries with their own tables and aliases)
is PostgreSQL's and is rendered as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.dialect import CANONICAL

ROW = "__pgt_row"
WEIGHT = "__pgt_w"
SOURCE_META = "pgtrickle_source"
"""Where the front end leaves the key of the source that a table of the text is."""
SET_META = "pgtrickle_set"
"""Where the front end marks a call that returns a set of rows."""


def render(expression: exp.Expr, *, is_own: bool = False) -> str:
    """PostgreSQL text; names of functions keep their case. What nobody else has (`is_own`) need not be copied first."""
    return expression.sql(CANONICAL, normalize_functions=False, copy=not is_own)


def column(name: str) -> exp.Column:
    """A reference to column `name` of the row at hand."""
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(ROW, quoted=True))


def is_row_column(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.table == ROW


def columns_of(expression: exp.Expr) -> set[str]:
    """Names of the row's columns that `expression` reads."""
    return {node.name for node in expression.find_all(exp.Column) if node.table == ROW}


def plain_column(expression: exp.Expr) -> str | None:
    """The column's name where the expression is nothing but a column."""
    bare = unparen(expression)
    return bare.name if is_row_column(bare) else None


def unparen(expression: exp.Expr) -> exp.Expr:
    while isinstance(expression, exp.Paren):
        expression = expression.this
    return expression


def rewrite(expression: exp.Expr, change: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """A copy in which `change(node)` replaces a node wherever it does not return None (outermost first)."""
    copy = expression.copy()
    wrapper = exp.Paren(this=copy)
    stack: list[exp.Expr] = [copy]
    while stack:
        node = stack.pop()
        replacement = change(node)
        if replacement is not None:
            node.replace(replacement)
            continue
        stack.extend(node.iter_expressions())
    return taken_out(wrapper)


def taken_out(wrapper: exp.Paren) -> exp.Expr:
    """What parentheses held, on its own: put around a tree, they let its root be replaced like any other node."""
    result: exp.Expr = wrapper.this.pop()
    return result


def substitute(expression: exp.Expr, mapping: Mapping[str, exp.Expr]) -> exp.Expr:
    """`expression` with the row's columns replaced as `mapping` says."""

    def change(node: exp.Expr) -> exp.Expr | None:
        if is_row_column(node) and node.name in mapping:
            target = mapping[node.name]
            simple = isinstance(target, (exp.Column, exp.Literal, exp.Null, exp.Boolean, exp.Paren))
            return target.copy() if simple else exp.Paren(this=target.copy())
        return None

    return rewrite(expression, change)


def rename(expression: exp.Expr, names: Mapping[str, str]) -> exp.Expr:
    return substitute(expression, {old: column(new) for old, new in names.items()})


def is_present(value: exp.Expr) -> exp.Expr:
    """That a value is not NULL. IS NOT NULL would deny it of a row whose fields are NULL, all or one of them."""
    return exp.NullSafeNEQ(this=exp.Paren(this=value), expression=exp.Null())


def conjuncts(predicate: exp.Expr | None) -> list[exp.Expr]:
    """The terms of a conjunction, parentheses removed."""
    if predicate is None:
        return []
    bare = unparen(predicate)
    if isinstance(bare, exp.And):
        terms: list[exp.Expr] = []
        stack: list[exp.Expr] = [bare]
        while stack:
            node = unparen(stack.pop())
            if isinstance(node, exp.And):
                stack.extend((node.expression, node.this))
            else:
                terms.append(node)
        return terms
    return [bare]


def conjunction(terms: Iterable[exp.Expr]) -> exp.Expr:
    """AND of the terms, each in parentheses; TRUE for none."""
    result: exp.Expr | None = None
    for term in terms:
        operand = exp.Paren(this=unparen(term).copy())
        result = operand if result is None else exp.And(this=result, expression=operand)
    return result if result is not None else exp.true()


def subqueries(expression: exp.Expr) -> Iterator[exp.Query]:
    """The outermost queries inside an expression."""
    stack: list[exp.Expr] = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, (exp.Select, exp.SetOperation)):
            yield node
        else:
            stack.extend(node.iter_expressions())


def has_subquery(expression: exp.Expr) -> bool:
    return next(subqueries(expression), None) is not None


def returns_set(expression: exp.Expr) -> bool:
    """Whether an expression may give several rows, or none, for one; a subquery's sets are its own."""
    stack: list[exp.Expr] = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, (exp.Select, exp.SetOperation)):
            continue
        if SET_META in node.meta or isinstance(node, (exp.UDTF, exp.Unnest, exp.ExplodingGenerateSeries)):
            return True
        stack.extend(node.iter_expressions())
    return False


def tables_of(expression: exp.Expr) -> frozenset[str]:
    """Keys of the sources whose tables stand in an expression or a query."""
    return frozenset(t.meta[SOURCE_META] for t in expression.find_all(exp.Table) if SOURCE_META in t.meta)


def holds_query(node: exp.Expr) -> bool:
    """Whether a node is the value that a subquery gives: (SELECT …), EXISTS, IN, op ANY, op ALL, ARRAY(SELECT …)."""
    if isinstance(node, exp.Binary) and isinstance(node.expression, (exp.All, exp.Any)):
        return has_subquery(node.expression)
    if isinstance(node, exp.In):
        return bool(node.args.get("query"))
    if isinstance(node, exp.Array):
        return any(isinstance(e, exp.Query) for e in node.expressions)
    return isinstance(node, (exp.Subquery, exp.Exists)) and has_subquery(node)


def equality(term: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """Both sides of `a = b`."""
    bare = unparen(term)
    return (unparen(bare.this), unparen(bare.expression)) if isinstance(bare, exp.EQ) else None


def renamed_by_place(table: exp.Table) -> bool:
    """Whether an alias of it, or of the join in parentheses that it is part of, counts columns: t AS x (a, b)."""
    item: exp.Expr | None = table
    while isinstance(item, (exp.Table, exp.Join, exp.Subquery)) and not isinstance(item.this, exp.Select):
        if item.alias_column_names:
            return True
        item = item.parent
    return False
