"""Views become derived tables until none is left, because only the tables behind them have changes. Each table is
marked with its source's key.
"""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import READS_META, SOURCE_META
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import parse
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused
from airflow_provider_pgtrickle.engine.dvm.schema import Schema, Source

MAX_TABLES = 2_000
VIEW_META = "pgtrickle_view"
"""The mark on a derived table that says which view it was."""


def inline_views(query: exp.Query, schema: Schema) -> exp.Query:
    """
    SELECT v.a FROM public.v  →  SELECT v.a FROM (SELECT t.a FROM public.t) AS v
    """
    tables = 0
    pending = list(query.find_all(exp.Table))
    while pending:
        table = pending.pop()
        if not isinstance(table.this, exp.Identifier) or not table.db:
            continue
        tables += 1
        if tables > MAX_TABLES:
            raise Refused(Reason.TOO_LARGE, f"more than {MAX_TABLES} tables once views are inlined")
        place = (table.db, table.name)
        if place in schema.views:
            derived = _derived(table, parse(schema.views[place]))
            derived.meta[VIEW_META] = place
            pending.extend(derived.this.find_all(exp.Table))
            table.replace(derived)
        elif place in schema.sources:
            source = _read(table, schema.sources[place], schema)
            table.meta.update({SOURCE_META: source.key, READS_META: source.reads})
        else:
            raise Refused(Reason.UNSUPPORTED_SYNTAX, f"{table.db}.{table.name} is no table that is known here")
    return query


def _read(table: exp.Table, source: Source, schema: Schema) -> Source:
    if not table.args.get("only"):
        return source
    if source.key not in schema.heirs:
        why = "which has virtual columns, or from which a table inherits in two ways"
        remedy = "Leave ONLY out; until then it runs FULL."
        raise Refused(Reason.UNSUPPORTED_SYNTAX, f"ONLY {source.schema}.{source.name}, {why}", remedy)
    return source.alone(schema.heirs[source.key])


def _derived(table: exp.Table, definition: exp.Query) -> exp.Subquery:
    alias = table.args.get("alias")
    derived = exp.Subquery(
        this=definition,
        alias=alias.copy() if alias else exp.TableAlias(this=table.this.copy()),
    )
    joins = table.args.get("joins")
    if joins:
        derived.set("joins", [j.copy() for j in joins])
    return derived
