"""Query expressions become nodes: this module handles WITH and set operations, and hands blocks to `block`."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.dialect import walk_of
from airflow_provider_pgtrickle.engine.dvm.expressions import column
from airflow_provider_pgtrickle.engine.dvm.frontend import block
from airflow_provider_pgtrickle.engine.dvm.frontend.builder import Builder
from airflow_provider_pgtrickle.engine.dvm.frontend.drop_limit import is_bounded
from airflow_provider_pgtrickle.engine.dvm.frontend.leave_as_written import leave_as_written
from airflow_provider_pgtrickle.engine.dvm.frontend.recursion import recursion
from airflow_provider_pgtrickle.engine.dvm.frontend.scope import CommonTable, Scope
from airflow_provider_pgtrickle.engine.dvm.frontend.spell_walk import uses
from airflow_provider_pgtrickle.engine.dvm.frontend.subquery import of_expression
from airflow_provider_pgtrickle.engine.dvm.node import Item, Node
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Subquery
from airflow_provider_pgtrickle.engine.dvm.operators.distinct import Distinct
from airflow_provider_pgtrickle.engine.dvm.operators.project import Project
from airflow_provider_pgtrickle.engine.dvm.operators.set_operation import SetOperation
from airflow_provider_pgtrickle.engine.dvm.operators.union_all import UnionAll
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused


class TreeBuilder(Builder):
    """It builds the operator tree of a whole query."""

    def query(self, query: exp.Expr, scope: Scope) -> tuple[Node, list[str]]:
        while isinstance(query, exp.Subquery) and not query.alias and not is_bounded(query):
            query = query.this
        if isinstance(query, exp.Query) and is_bounded(query):
            return leave_as_written(self, query, scope)
        if query.args.get("with_"):
            scope = self._with(query, scope)
        if isinstance(query, exp.Select):
            return block.build(self, query, scope)
        if isinstance(query, exp.SetOperation):
            return self._set_operation(query, scope)
        raise Refused(Reason.UNSUPPORTED_SYNTAX, f"{type(query).__name__} where a query is expected")

    # -- WITH ----------------------------------------------------------------------------------

    def _with(self, query: exp.Expr, scope: Scope) -> Scope:
        clause: exp.With = query.args["with_"]
        inner = scope.child()
        inner.relations = dict(scope.relations)
        for cte in clause.expressions:
            columns = [i.name for i in cte.args["alias"].args.get("columns") or []]
            reads_itself = any(not t.db and t.name == cte.alias for t in cte.this.find_all(exp.Table))
            recursive = clause if clause.args.get("recursive") and reads_itself else None
            before = Scope(ctes=dict(inner.ctes))
            inner.ctes[cte.alias] = CommonTable(
                cte.this, tuple(columns) or None, before, recursive, walk_of(cte), uses(cte)
            )
        return inner

    def common_table(self, name: str, cte: CommonTable) -> tuple[Node, list[str]]:
        if cte.built is None:
            if cte.recursive_with is not None:
                cte.built = recursion(self, name, cte)
            else:
                cte.built = self.query(cte.query, cte.scope.child())
        node, outputs = cte.built
        names = list(cte.outputs) + outputs[len(cte.outputs) :] if cte.outputs else outputs
        items = tuple((self.name(n), column(c)) for n, c in zip(names, node.names, strict=True))
        return Project(node, items), names

    # -- set operations ------------------------------------------------------------------------

    def _set_operation(self, query: exp.SetOperation, scope: Scope) -> tuple[Node, list[str]]:
        branches = self._branches(query)
        built = [self.query(b, scope.child()) for b in branches]
        outputs = built[0][1]
        kind = type(query).__name__.upper()
        is_all = query.args.get("distinct") is False
        if kind == "UNION":
            union = UnionAll(tuple(n for n, _ in built), tuple(self.name(o) for o in outputs))
            return (union if is_all else Distinct(union)), outputs
        return SetOperation(kind, built[0][0], built[1][0], is_all), outputs

    def _branches(self, query: exp.SetOperation) -> list[exp.Expr]:
        """Return the operation's branches: a chain of UNION ALL is one node, anything else has two branches."""
        if not isinstance(query, exp.Union) or query.args.get("distinct") is not False:
            return [query.this, query.expression]
        chain: list[exp.Expr] = []
        node: exp.Expr = query
        while isinstance(node, exp.Union) and node.args.get("distinct") is False and not _has_clauses(node, query):
            chain.append(node.expression)
            node = node.this
        chain.append(node)
        return chain[::-1]

    # -- for modules below, which may not import these functions -----------------------------------

    def filtered(self, node: Node, scope: Scope, terms: list[exp.Expr]) -> Node:
        return block.filtered(self, node, scope, terms)

    def with_computed(self, node: Node, scope: Scope, computed: list[Item]) -> Node:
        return block.with_computed(self, node, scope, computed)

    def subqueries_of(self, bound: exp.Expr, scope: Scope, row: Node) -> tuple[Subquery, ...]:
        return of_expression(self, bound, scope, row)


def _has_clauses(node: exp.Expr, root: exp.Expr) -> bool:
    return node is not root and any(node.args.get(c) for c in ("with_", "order", "limit", "offset"))
