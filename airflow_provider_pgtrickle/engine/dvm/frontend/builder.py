"""One query in the making: what its parts have in common, and how they reach each other.

A query holds blocks, a block FROM items and subqueries, and those hold queries. Each of these is a module that
imports only what stands below it, and reaches those above it through the builder that it is given. `build.py` puts
them together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import SOURCE_META, renamed_by_place
from airflow_provider_pgtrickle.engine.dvm.frontend.scope import CommonTable, Scope
from airflow_provider_pgtrickle.engine.dvm.names import Namer
from airflow_provider_pgtrickle.engine.dvm.node import Item, Node
from airflow_provider_pgtrickle.engine.dvm.operators.dependent import Subquery
from airflow_provider_pgtrickle.engine.dvm.schema import Schema, Source


class Builder(ABC):
    """One query in the making: names stay unique throughout it."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.sources: dict[str, Source] = {s.key: s for s in schema.sources.values()}
        self.name = Namer()
        self.own_aggregates = frozenset(schema.aggregates)
        self.inside: dict[str, set[str]] = {}
        """Columns that subqueries left to PostgreSQL read, by source."""

    @abstractmethod
    def query(self, query: exp.Expr, scope: Scope) -> tuple[Node, list[str]]:
        """The node of a query expression and its output columns' names as the query gives them."""

    @abstractmethod
    def common_table(self, name: str, cte: CommonTable) -> tuple[Node, list[str]]:
        """A reference to a WITH item: the shared node under fresh names."""

    @abstractmethod
    def filtered(self, node: Node, scope: Scope, terms: list[exp.Expr]) -> Node:
        """The rows for which every term is true, whatever subqueries the terms hold."""

    @abstractmethod
    def with_computed(self, node: Node, scope: Scope, computed: list[Item]) -> Node:
        """The node with further columns, whatever subqueries compute them."""

    @abstractmethod
    def subqueries_of(self, bound: exp.Expr, scope: Scope, row: Node) -> tuple[Subquery, ...]:
        """What the subqueries inside an expression read, which is computed for each row."""

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
                given = table.alias_column_names
                renamed = {name for alias, name in zip(given, source.layout, strict=False) if alias in names}
                # The names of a join's columns tell nothing of whose they are.
                read = names | renamed if given or not renamed_by_place(table) else held
                self.inside.setdefault(key, set()).update(read & held)
