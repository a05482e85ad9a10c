"""A copy of a table keeps its frozen rows, and a query reads the copy in the table's place.

SELECT o.day, sum(o.v) FROM orders o GROUP BY o.day  →  SELECT o.day, sum(o.v) FROM copy AS o GROUP BY o.day
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import (
    SOURCE_META,
    column,
    renamed_around,
    render,
    rewrite,
)
from airflow_provider_pgtrickle.engine.dvm.frontend.inline_views import inline_views
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import parse
from airflow_provider_pgtrickle.engine.dvm.frontend.readings import readings
from airflow_provider_pgtrickle.engine.dvm.frontend.whole_rows import whole_rows
from airflow_provider_pgtrickle.engine.dvm.lower.plan import row_wise_scan
from airflow_provider_pgtrickle.engine.dvm.reasons import Refused
from airflow_provider_pgtrickle.engine.dvm.schema import READS_CLOCK, Schema, Source
from airflow_provider_pgtrickle.engine.dvm.sinks.frozen import Frozen
from airflow_provider_pgtrickle.engine.dvm.view import View
from airflow_provider_pgtrickle.engine.errors import QueryError

#: What a place in FROM may have if a copy is to stand there.
_PLAIN = {"this", "db", "alias", "joins"}
_CLOCK = Schema({}, functions={"now": READS_CLOCK})


@dataclass(frozen=True)
class Copy:
    """Where the copy of a table is, and which of its columns it has."""

    schema: str
    name: str
    columns: frozenset[str]


def columns_in(condition: str) -> frozenset[str]:
    """Return the columns that a condition names."""
    return frozenset(node.name for node in parse(f"SELECT 1 WHERE {condition}").find_all(exp.Column))


def copying(view: View, frozen: str) -> View:
    """Return the view of some columns of a table as that of a copy, whose rows stay once they are `frozen`.

    `frozen`: SQL of a condition over the copy's columns, and `now()`.
    """
    storage = view.storage
    scan = row_wise_scan(storage) if storage is not None else None
    if storage is None or scan is None or not scan.source.primary_key:
        raise QueryError(
            f"It can't be copied: {view.refusal or 'its table has no primary key'}",
            remedy="Let changes of its frozen rows be refused instead (frozen_breach 'refuse').",
        )
    where = readings(parse(f"SELECT 1 WHERE {frozen}"), _CLOCK).args["where"]
    condition = rewrite(where.this, lambda node: column(node.name) if isinstance(node, exp.Column) else None)
    key = scan.source.primary_key
    return view.kept_by(lambda query: Frozen(query, storage, key, condition))


def instead(text: str, schema: Schema, copies: Mapping[str, Copy]) -> str | None:
    """Return a canonical text that reads copies in the places of tables, which are named by their sources' keys.

    None where it can't: it reads ONLY the rows of such a table itself, or a sample of them.
    """
    try:
        query = whole_rows(inline_views(parse(text), schema), schema)
    except Refused:
        return None
    sources = schema.by_key
    for table in list(query.find_all(exp.Table)):
        source = sources.get(table.meta.get(SOURCE_META, ""))
        if source is None or source.table not in copies:
            continue
        is_plain = {name for name, value in table.args.items() if value} <= _PLAIN
        if source.heirs is not None or renamed_around(table) or not is_plain:
            return None
        table.replace(_read(table, source, copies[source.table]))
    return render(query)


def _read(table: exp.Table, source: Source, copy: Copy) -> exp.Expr:
    """The copy as an item of FROM, under the name and with the columns that the table had there."""
    alias = table.args.get("alias") or exp.TableAlias(this=table.this.copy())
    relation = exp.Table(this=exp.to_identifier(copy.name, quoted=True), db=exp.to_identifier(copy.schema, quoted=True))
    joins = table.args.get("joins")
    given = table.alias_column_names
    if not given:
        relation.set("alias", alias.copy())
        relation.set("joins", joins)
        return relation
    items = [
        exp.alias_(exp.column(held, quoted=True), shown, quoted=True)
        for held, shown in source.aliases(given).items()
        if held in copy.columns
    ]
    select = exp.Select(expressions=items, from_=exp.From(this=relation))
    return exp.Subquery(this=select, alias=exp.TableAlias(this=alias.this.copy()), joins=joins)
