"""A scope holds the names in sight while a query block is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.dialect import Walk
from airflow_provider_pgtrickle.engine.dvm.expressions import render
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import output_names
from airflow_provider_pgtrickle.engine.dvm.frontend.spell_walk import Use
from airflow_provider_pgtrickle.engine.dvm.node import Node
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused

#: Where the text of a WITH item stands in a subquery, its meta holds the item's name and the `CommonTable`.
WITH_ITEM = "with_item"


@dataclass
class CommonTable:
    """A WITH item, which is built once, however often it is read."""

    query: exp.Query
    outputs: tuple[str, ...] | None
    scope: Scope
    recursive_with: exp.With | None = None
    walk: Walk | None = None
    """SEARCH and CYCLE, unless they are spelled out."""
    asked: Mapping[str, frozenset[Use]] = field(default_factory=dict)
    """What the query asks of each column that the walk adds."""
    built: tuple[Node, list[str]] | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> CommonTable:
        """Return itself: where a query's text is copied that names it, the copy means the same item."""
        return self

    @property
    def names(self) -> list[str]:
        """The names of its columns: those that its alias gives, then the query's own, then those of the walk."""
        given = list(self.outputs or ())
        return [*given, *output_names(self.query)[len(given) :], *(self.walk.added if self.walk else ())]

    def alone(self, name: str) -> exp.Select:
        """Return a recursive item as a query of its own, with the WITH that it stands in."""
        assert self.recursive_with is not None
        return exp.Select(
            with_=self.recursive_with.copy(),
            expressions=[exp.column(n, table=name, quoted=True) for n in self.names],
            from_=exp.From(this=exp.Table(this=exp.to_identifier(name, quoted=True))),
        )


@dataclass
class Scope:
    """The relations of one FROM by alias, each with its columns as expressions over the tree's row."""

    ctes: dict[str, CommonTable] = field(default_factory=dict)
    relations: dict[str, dict[str, exp.Expr]] = field(default_factory=dict)
    merged: dict[str, exp.Expr] = field(default_factory=dict)
    """Columns that JOIN … USING merged; the text may refer to them by their bare names."""

    def child(self) -> Scope:
        return Scope(ctes=dict(self.ctes))

    def add(self, alias: str, columns: dict[str, exp.Expr]) -> None:
        if alias in self.relations:
            raise Refused(Reason.UNSUPPORTED_SYNTAX, f"alias {alias} stands twice in one FROM")
        self.relations[alias] = columns

    def resolve(self, reference: exp.Column) -> exp.Expr:
        """Return the tree's column to which a reference in the query's text points."""
        table, name = reference.table, reference.name
        if isinstance(reference.this, exp.Star):
            raise Refused(Reason.WHOLE_ROW, render(reference), "Name the columns.")
        if table:
            columns = self.relations.get(table)
            if columns is None or name not in columns:
                raise Refused(Reason.UNSUPPORTED_SYNTAX, f"{render(reference)} names no column in sight")
            return columns[name].copy()
        if name in self.merged:
            return self.merged[name].copy()
        owners = [columns[name] for columns in self.relations.values() if name in columns]
        if len(owners) == 1:
            return owners[0].copy()
        if name in self.relations:
            raise Refused(Reason.WHOLE_ROW, name, "Name the columns.")
        what = "names no column in sight" if not owners else "is ambiguous"
        raise Refused(Reason.UNSUPPORTED_SYNTAX, f"{name} {what}")

    def knows(self, alias: str) -> bool:
        return alias in self.relations
