"""Calls of functions that return sets are marked, because an expression with one makes several rows of a row."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import SET_META
from airflow_provider_pgtrickle.engine.dvm.schema import Schema


def mark_sets(query: exp.Query, schema: Schema) -> exp.Query:
    """Return the query itself with its calls marked, such as that in `SELECT jsonb_array_elements(a) FROM t`."""
    for call in query.find_all(exp.Anonymous):
        if call.name.lower() in schema.set_returning:
            call.meta[SET_META] = True
    return query
