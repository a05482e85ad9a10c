"""Subqueries in an outer join's ON move to the side whose columns they read.

L ⟕ R ON c AND t(r)     = L ⟕ σt(R) ON c: a row for which t isn't true finds no partner, and none misses it
L ⟕ R ON c(S(l), …)     = π(L, S(l) AS s) ⟕ R ON c(s, …), the same for R, and for a full join on either side

A subquery that reads both sides is refused here. Where the right side of a left join is a table or a derived table,
`from_items` has made it a lateral item before.
"""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import column, columns_of, has_subquery, holds_query, rewrite
from airflow_provider_pgtrickle.engine.dvm.frontend.builder import Builder
from airflow_provider_pgtrickle.engine.dvm.frontend.scope import Scope
from airflow_provider_pgtrickle.engine.dvm.node import Node
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused


def join_subqueries(
    builder: Builder, scope: Scope, kind: str, left: Node, right: Node, terms: list[exp.Expr]
) -> tuple[Node, Node, list[exp.Expr]]:
    """Return both sides of a LEFT or FULL join, and its terms without subqueries."""
    plain = [t for t in terms if not has_subquery(t)]
    for term in (t for t in terms if has_subquery(t)):
        if kind == "LEFT" and columns_of(term) <= set(right.names):
            right = builder.filtered(right, scope, [term])
            continue
        values: dict[str, list[tuple[str, exp.Expr]]] = {"left": [], "right": []}
        plain.append(_over_columns(builder, term, left, right, values))
        left = builder.with_computed(left, scope, values["left"])
        right = builder.with_computed(right, scope, values["right"])
    return left, right, plain


def _over_columns(
    builder: Builder, term: exp.Expr, left: Node, right: Node, values: dict[str, list[tuple[str, exp.Expr]]]
) -> exp.Expr:
    """Return the term with each subquery replaced by a column of one side, and add these columns to `values`."""

    def change(node: exp.Expr) -> exp.Expr | None:
        if not holds_query(node):
            return None
        read = columns_of(node)
        side = next((s for s, held in (("left", left), ("right", right)) if read <= set(held.names)), None)
        if side is None:
            raise Refused(
                Reason.UNSUPPORTED_SYNTAX,
                "a subquery in an outer join's ON that is about both of its sides",
                "Move it into a derived table; until then it runs FULL.",
            )
        name = builder.name("sub")
        values[side].append((name, node.copy()))
        return column(name)

    return rewrite(term, change)
