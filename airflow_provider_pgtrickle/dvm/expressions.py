"""Expressions over the columns of one row.

An expression is a sqlglot tree whose references to the row at hand are columns of the
pseudo-table `ROW`. Whatever else it holds (subqueries with their own tables and aliases)
is PostgreSQL's and is rendered as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from sqlglot import exp

ROW = "__pgt_row"
WEIGHT = "__pgt_w"


def render(expression: exp.Expression) -> str:
    """PostgreSQL text; names of functions keep their case."""
    return expression.sql("postgres", normalize_functions=False)


def column(name: str) -> exp.Column:
    """A reference to column `name` of the row at hand."""
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(ROW, quoted=True))


def is_row_column(node: exp.Expression) -> bool:
    return isinstance(node, exp.Column) and node.table == ROW


def columns_of(expression: exp.Expression) -> set[str]:
    """Names of the row's columns that `expression` reads."""
    return {node.name for node in expression.find_all(exp.Column) if node.table == ROW}


def plain_column(expression: exp.Expression) -> str | None:
    """The column's name where the expression is nothing but a column."""
    bare = unparen(expression)
    return bare.name if is_row_column(bare) else None


def unparen(expression: exp.Expression) -> exp.Expression:
    while isinstance(expression, exp.Paren):
        expression = expression.this
    return expression


def rewrite(expression: exp.Expression, change: Callable[[exp.Expression], exp.Expression | None]) -> exp.Expression:
    """A copy in which `change(node)` replaces a node wherever it does not return None (outermost first)."""
    copy = expression.copy()
    wrapper = exp.Paren(this=copy)
    stack: list[exp.Expression] = [copy]
    while stack:
        node = stack.pop()
        replacement = change(node)
        if replacement is not None:
            node.replace(replacement)
            continue
        stack.extend(node.iter_expressions())
    result = wrapper.this
    result.parent = None
    return result


def substitute(expression: exp.Expression, mapping: Mapping[str, exp.Expression]) -> exp.Expression:
    """`expression` with the row's columns replaced as `mapping` says."""

    def change(node: exp.Expression) -> exp.Expression | None:
        if is_row_column(node) and node.name in mapping:
            target = mapping[node.name]
            simple = isinstance(target, (exp.Column, exp.Literal, exp.Null, exp.Boolean, exp.Paren))
            return target.copy() if simple else exp.Paren(this=target.copy())
        return None

    return rewrite(expression, change)


def rename(expression: exp.Expression, names: Mapping[str, str]) -> exp.Expression:
    return substitute(expression, {old: column(new) for old, new in names.items()})


def conjuncts(predicate: exp.Expression | None) -> list[exp.Expression]:
    """The terms of a conjunction, parentheses removed."""
    if predicate is None:
        return []
    bare = unparen(predicate)
    if isinstance(bare, exp.And):
        terms: list[exp.Expression] = []
        stack: list[exp.Expression] = [bare]
        while stack:
            node = unparen(stack.pop())
            if isinstance(node, exp.And):
                stack.extend((node.expression, node.this))
            else:
                terms.append(node)
        return terms
    return [bare]


def conjunction(terms: Iterable[exp.Expression]) -> exp.Expression:
    """AND of the terms, each in parentheses; TRUE for none."""
    result: exp.Expression | None = None
    for term in terms:
        operand = exp.Paren(this=unparen(term).copy())
        result = operand if result is None else exp.And(this=result, expression=operand)
    return result if result is not None else exp.true()


def subqueries(expression: exp.Expression) -> Iterator[exp.Query]:
    """The outermost queries inside an expression."""
    stack: list[exp.Expression] = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, (exp.Select, exp.SetOperation)):
            yield node
        else:
            stack.extend(node.iter_expressions())


def has_subquery(expression: exp.Expression) -> bool:
    return next(subqueries(expression), None) is not None


def equality(term: exp.Expression) -> tuple[exp.Expression, exp.Expression] | None:
    """Both sides of `a = b`."""
    bare = unparen(term)
    return (unparen(bare.this), unparen(bare.expression)) if isinstance(bare, exp.EQ) else None
