"""Binding turns expressions of the query's text into expressions over the row at hand."""

from __future__ import annotations

from typing import cast

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.budget import COPY, spend
from airflow_provider_pgtrickle.engine.dvm.calls import defined_aliases
from airflow_provider_pgtrickle.engine.dvm.expressions import ROW, is_row_column, rewrite, taken_out
from airflow_provider_pgtrickle.engine.dvm.frontend.scope import WITH_ITEM, Scope


def bind(expression: exp.Expr, scope: Scope) -> exp.Expr:
    """Return a copy in which references to `scope` are columns of the row; subqueries keep their own names."""

    def change(node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, (exp.Select, exp.SetOperation)):
            return bind_nested(node, scope)
        if isinstance(node, exp.Column):
            return node.copy() if is_row_column(node) else scope.resolve(node)
        if isinstance(node, exp.Dot) and isinstance(node.this, (exp.Identifier, exp.Dot)):
            return None
        return None

    return rewrite(expression, change)


def bind_nested(query: exp.Query, scope: Scope) -> exp.Query:
    """Return a subquery with its outer references bound and the outer query's WITH items written out."""
    copy = _expand_ctes(query.copy(), scope)
    _visit(copy, scope, frozenset())
    return copy


def _visit(node: exp.Expr, scope: Scope, inner: frozenset[str]) -> None:
    if isinstance(node, exp.Select):
        inner = inner | defined_aliases(node)
    for child in list(node.iter_expressions()):
        if isinstance(child, exp.Column):
            if child.table and child.table not in inner and child.table != ROW:
                child.replace(scope.resolve(child))
            continue
        _visit(child, scope, inner)


def _expand_ctes(query: exp.Query, scope: Scope) -> exp.Query:
    """Replace references to the outer query's WITH items by derived tables, since the subquery is rendered alone."""
    own = {cte.alias for w in query.find_all(exp.With) for cte in w.expressions}
    wrapper = exp.Paren(this=query)
    for table in list(query.find_all(exp.Table)):
        if table.db or not isinstance(table.this, exp.Identifier) or table.name in own:
            continue
        cte = scope.ctes.get(table.name)
        if cte is None:
            continue
        spend(COPY)
        alias = table.args.get("alias")
        alias = alias.copy() if alias else exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
        if cte.outputs and not alias.args.get("columns"):
            alias.set("columns", [exp.to_identifier(n, quoted=True) for n in cte.outputs])
        whole = cte.alone(table.name) if cte.recursive_with is not None else cte.query.copy()
        definition = _expand_ctes(whole, cte.scope)
        written = exp.Subquery(this=definition, alias=alias, joins=table.args.get("joins"))
        written.meta[WITH_ITEM] = (table.name, cte)
        table.replace(written)
    return cast(exp.Query, taken_out(wrapper))
