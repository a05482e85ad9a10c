"""The builder holds what the modules that build a query share, and lets them call each other.

A query holds blocks, a block holds FROM items and subqueries, and those hold queries again. Each of these kinds has
its own module. A module imports only modules below it, and calls those above it through the builder that it is given.
`build.py` puts them together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import SOURCE_META, renamed_around
from airflow_provider_pgtrickle.engine.dvm.frontend.scope import CommonTable, Scope
from airflow_provider_pgtrickle.engine.dvm.names import Namer
from airflow_provider_pgtrickle.engine.dvm.node import Item, Node
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Subquery
from airflow_provider_pgtrickle.engine.dvm.schema import Schema, Source


class Builder(ABC):
    """The state of one query's build; names stay unique throughout the query."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.sources: dict[str, Source] = schema.by_key
        self.name = Namer()
        self.own_aggregates = frozenset(schema.aggregates)
        self.inside: dict[str, set[str]] = {}
        """For each source, the columns that subqueries read which are left to PostgreSQL."""

    @abstractmethod
    def query(self, query: exp.Expr, scope: Scope) -> tuple[Node, list[str]]:
        """Return the node of a query expression, and the names that the query gives its output columns."""

    @abstractmethod
    def common_table(self, name: str, cte: CommonTable) -> tuple[Node, list[str]]:
        """Return the node for a reference to a WITH item: the item's shared node under fresh names."""

    @abstractmethod
    def filtered(self, node: Node, scope: Scope, terms: list[exp.Expr]) -> Node:
        """Return the rows for which every term is true; terms may hold subqueries of any kind."""

    @abstractmethod
    def with_computed(self, node: Node, scope: Scope, computed: list[Item]) -> Node:
        """Return the node with further columns, whose expressions may hold subqueries of any kind."""

    @abstractmethod
    def subqueries_of(self, bound: exp.Expr, scope: Scope, row: Node) -> tuple[Subquery, ...]:
        """Return what the subqueries inside an expression read; the expression is computed for each row."""

    def note_reads(self, query: exp.Expr) -> None:
        """Remember which columns a subquery that is left to PostgreSQL may read."""
        names = {c.name for c in query.find_all(exp.Column)}
        for join in query.find_all(exp.Join):
            names |= {i.name for i in join.args.get("using") or []}
        for table in query.find_all(exp.Table):
            key = table.meta.get(SOURCE_META)
            if key is not None:
                source = self.sources[key]
                held = {c.name for c in source.columns}
                given = zip(table.alias_column_names, source.layout, strict=False)
                renamed = {name for alias, name in given if alias in names}
                # If the alias of a join renames columns, their names don't tell which table they belong to.
                read = held if renamed_around(table) else names | renamed
                for reads in {key, *source.reads}:
                    self.inside.setdefault(reads, set()).update(read & held)
