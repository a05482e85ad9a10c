"""These functions make, read and change expressions over the columns of one row.

An expression is a sqlglot tree whose references to the row at hand are columns of the
pseudo-table `ROW`. Everything else in it (subqueries with their own tables and aliases)
is left to PostgreSQL and is rendered as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.dialect import CANONICAL

ROW = "__pgt_row"
WEIGHT = "__pgt_w"
SOURCE_META = "pgtrickle_source"
"""The key under which the front end leaves, on a table of the text, the key of its source."""
READS_META = "pgtrickle_reads"
"""The same, on the same tables: the keys of the sources from whose changes those of the table follow."""
SET_META = "pgtrickle_set"
"""The front end's mark on a call that returns a set of rows."""


def render(expression: exp.Expr, *, is_own: bool = False) -> str:
    """Return PostgreSQL text, in which functions' names keep their case; a tree that nobody else has (`is_own`) is not
    copied first."""
    return expression.sql(CANONICAL, normalize_functions=False, copy=not is_own)


def column(name: str) -> exp.Column:
    """Return a reference to column `name` of the row at hand."""
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(ROW, quoted=True))


def is_row_column(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.table == ROW


def columns_of(expression: exp.Expr) -> set[str]:
    """Return the names of the row's columns that `expression` reads."""
    return {node.name for node in expression.find_all(exp.Column) if node.table == ROW}


def plain_column(expression: exp.Expr) -> str | None:
    """Return the column's name if the expression is nothing but a column of the row; None for any other."""
    bare = unparen(expression)
    return bare.name if is_row_column(bare) else None


def unparen(expression: exp.Expr) -> exp.Expr:
    while isinstance(expression, exp.Paren):
        expression = expression.this
    return expression


def rewrite(expression: exp.Expr, change: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """Return a copy in which `change(node)` replaces each node for which it doesn't return None (outermost first)."""
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
    """Return the tree inside the parentheses; these were put around it so that even its root could be replaced."""
    result: exp.Expr = wrapper.this.pop()
    return result


def substitute(expression: exp.Expr, mapping: Mapping[str, exp.Expr]) -> exp.Expr:
    """Return `expression` with the row's columns replaced as `mapping` says."""

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
    """Return the condition that a value is not NULL; IS NOT NULL is false for a row value with even one NULL field."""
    return exp.NullSafeNEQ(this=exp.Paren(this=value), expression=exp.Null())


def conjuncts(predicate: exp.Expr | None) -> list[exp.Expr]:
    """Return the terms of a conjunction, without parentheses."""
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
    """Return the AND of the terms, each in parentheses; TRUE if there are none."""
    result: exp.Expr | None = None
    for term in terms:
        operand = exp.Paren(this=unparen(term).copy())
        result = operand if result is None else exp.And(this=result, expression=operand)
    return result if result is not None else exp.true()


def subqueries(expression: exp.Expr) -> Iterator[exp.Query]:
    """Yield the outermost queries inside an expression."""
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
    """Whether an expression may make several rows, or none, of one row; sets inside a subquery don't count."""
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
    """Return the keys of the sources from whose changes those of an expression's or a query's tables follow."""
    return frozenset().union(*(t.meta.get(READS_META, ()) for t in expression.find_all(exp.Table)))


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
    """Return both sides of `a = b`; None for any other term."""
    bare = unparen(term)
    return (unparen(bare.this), unparen(bare.expression)) if isinstance(bare, exp.EQ) else None


def renamed_by_place(table: exp.Table) -> bool:
    """Whether an alias renames the table's columns by position: its own, t AS x (a, b), or that of a join around it."""
    return bool(table.alias_column_names) or renamed_around(table)


def renamed_around(table: exp.Table) -> bool:
    """Whether the alias of a join around the table renames columns by position: (t JOIN u USING (a)) AS x (p, q)."""
    item = table.parent
    while isinstance(item, (exp.Table, exp.Join, exp.Subquery)) and not isinstance(item.this, exp.Select):
        # A table that holds the join has an alias for its own columns only.
        if item.alias_column_names and not isinstance(item, exp.Table):
            return True
        item = item.parent
    return False
