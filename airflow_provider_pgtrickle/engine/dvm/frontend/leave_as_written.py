"""PostgreSQL evaluates some blocks as they are written, with their order made total.

These are ORDER BY … LIMIT below the top, GROUPING SETS whose keys the server confuses with each other, and windows
whose frame ends where a subquery over a table says.
"""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import tables_of
from airflow_provider_pgtrickle.engine.dvm.frontend.bind import bind_nested
from airflow_provider_pgtrickle.engine.dvm.frontend.builder import Builder
from airflow_provider_pgtrickle.engine.dvm.frontend.parse import output_names
from airflow_provider_pgtrickle.engine.dvm.frontend.scope import Scope
from airflow_provider_pgtrickle.engine.dvm.frontend.subquery_order import make_total
from airflow_provider_pgtrickle.engine.dvm.node import Node
from airflow_provider_pgtrickle.engine.dvm.operators.native import Native


def leave_as_written(builder: Builder, query: exp.Query, scope: Scope) -> tuple[Node, list[str]]:
    """Return the node of a query expression, and its output names.

    It gives the same rows whenever it is evaluated, so its change is its new rows less its old ones.
    """
    outputs = output_names(query)
    bound = bind_nested(query, scope)
    make_total(builder, bound)
    builder.note_reads(bound)
    reads = tables_of(bound)
    return Native(bound, tuple(builder.name(o) for o in outputs), reads), outputs
