"""A query that can't be a stream table, or can't be maintained by differences, is refused before anything is built."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.expressions import SOURCE_META, render
from airflow_provider_pgtrickle.engine.dvm.frontend.drop_limit import shows_constants
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason, Refused
from airflow_provider_pgtrickle.engine.dvm.schema import READS_TABLES, Schema

_UNCAPTURED = {
    "MATVIEW": "a materialized view",
    "FOREIGN_TABLE": "a foreign table",
    "UNLOGGED_TABLE": "an unlogged table, which a crash empties",
}


class Impossible(Refused):
    """The query can't be a stream table in any mode."""


def refuse(query: exp.Query, schema: Schema) -> exp.Query:
    """Return the query itself or raise `Refused`, which is `Impossible` where not even FULL makes sense."""
    for node in query.walk():
        if isinstance(node, exp.TableSample):
            raise Impossible(Reason.TABLESAMPLE, "TABLESAMPLE", "Sample when reading: WHERE random() < fraction.")
        if isinstance(node, exp.Lock):
            raise Impossible(Reason.ROW_LOCKING, render(node), "Remove the locking clause.")
    _limits(query)
    _functions(schema)
    for table in query.find_all(exp.Table):
        key = table.meta.get(SOURCE_META)
        source = next((s for s in schema.sources.values() if s.key == key), None)
        if source is not None and not source.captured:
            kind = _UNCAPTURED[source.kind]
            raise Refused(Reason.NOT_CAPTURED, f"{source.schema}.{source.name} is {kind}", "It runs FULL.")
    return query


def _limits(query: exp.Query) -> None:
    """Refuse a LIMIT without ORDER BY.

    At the top it decides what the table holds, so the choice of rows must be defined: it is refused in every mode.
    Below the top an arbitrary choice is the user's own: FULL remains, and rows that all look alike need no order.
    """
    for node in query.find_all(exp.Select, exp.SetOperation, exp.Subquery):
        limited = node.args.get("limit") or node.args.get("offset")
        if not limited or node.args.get("order"):
            continue
        what = render(limited).strip()
        if node is query:
            remedy = "Add ORDER BY beside the LIMIT, or apply the LIMIT when reading the stream table."
            raise Impossible(Reason.LIMIT_WITHOUT_ORDER, what, remedy)
        if not shows_constants(node):
            raise Refused(Reason.LIMIT_WITHOUT_ORDER, what, "Add ORDER BY beside the LIMIT; until then it runs FULL.")


def _functions(schema: Schema) -> None:
    """Refuse functions that may answer differently for the same rows: nobody knows which rows their changes touch."""
    for volatility, reason, remedy in (
        ("v", Reason.VOLATILE_FUNCTION, "Call it when reading, or store its result in a source column."),
        (READS_TABLES, Reason.READS_TABLES, "Join those tables in the query itself."),
        ("s", Reason.TIME_DEPENDENT, "Materialize the plain columns, and call it when reading."),
    ):
        found = sorted(name for name, worst in schema.functions.items() if worst == volatility)
        if found:
            raise Refused(reason, ", ".join(found), remedy)
