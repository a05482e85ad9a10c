"""What can't be a stream table, or can't be maintained, is named before anything is built."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.dvm.emit import SOURCE_META
from airflow_provider_pgtrickle.dvm.frontend.drop_limit import shows_constants
from airflow_provider_pgtrickle.dvm.reasons import Reason, Refused
from airflow_provider_pgtrickle.dvm.schema import Schema

_CLOCK = {
    "now", "transaction_timestamp", "statement_timestamp", "clock_timestamp", "timeofday", "age",
    "current_setting", "current_user", "session_user", "current_database", "pg_backend_pid",
    "current_schema", "txid_current", "pg_current_xact_id", "pg_current_snapshot", "inet_client_addr",
}  # fmt: skip
_CLOCK_NODES = (
    exp.CurrentDate,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.CurrentUser,
    exp.Localtime,
    exp.Localtimestamp,
    exp.SessionUser,
)
_UNCAPTURED = {
    "MATVIEW": "a materialized view",
    "FOREIGN_TABLE": "a foreign table",
    "UNLOGGED_TABLE": "an unlogged table, which a crash empties",
}
_WHEN = "Materialize the plain columns and compare with the clock when reading; under AUTO it runs FULL."


class Impossible(Refused):
    """It can't be a stream table in any mode."""


def refuse(query: exp.Query, schema: Schema) -> exp.Query:
    """The query itself, or `Refused`; `Impossible` where not even FULL makes sense."""
    for node in query.walk():
        if isinstance(node, exp.TableSample):
            raise Impossible(Reason.TABLESAMPLE, "TABLESAMPLE", "Sample when reading: WHERE random() < fraction.")
        if isinstance(node, exp.Lock):
            raise Impossible(Reason.ROW_LOCKING, node.sql("postgres"), "Remove the locking clause.")
    _limits(query)
    _functions(query, schema)
    for table in query.find_all(exp.Table):
        key = table.meta.get(SOURCE_META)
        source = next((s for s in schema.sources.values() if s.key == key), None)
        if source is not None and not source.captured:
            kind = _UNCAPTURED[source.kind]
            raise Refused(Reason.NOT_CAPTURED, f"{source.schema}.{source.name} is {kind}", "It runs FULL.")
    return query


def _limits(query: exp.Query) -> None:
    """At the top it says what the table is to hold, so it must say so; below it an arbitrary choice is the user's."""
    for node in query.find_all(exp.Select, exp.SetOperation, exp.Subquery):
        limited = node.args.get("limit") or node.args.get("offset")
        if not limited or node.args.get("order"):
            continue
        what = limited.sql("postgres").strip()
        if node is query:
            remedy = "Add ORDER BY beside the LIMIT, or apply the LIMIT when reading the stream table."
            raise Impossible(Reason.LIMIT_WITHOUT_ORDER, what, remedy)
        if not shows_constants(node):
            raise Refused(Reason.LIMIT_WITHOUT_ORDER, what, "Add ORDER BY beside the LIMIT; until then it runs FULL.")


def _functions(query: exp.Query, schema: Schema) -> None:
    for node in query.walk():
        if isinstance(node, _CLOCK_NODES):
            raise Refused(Reason.TIME_DEPENDENT, node.sql("postgres"), _WHEN)
        if not isinstance(node, exp.Func):
            continue
        name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
        arguments = node.expressions if isinstance(node, exp.Anonymous) else []
        if name == "age" and len(arguments) != 1:
            continue
        if name in _CLOCK:
            raise Refused(Reason.TIME_DEPENDENT, f"{name}()", _WHEN)
        if name in ("rand", "random", "uuid", "gen_random_uuid", "nextval", "setval") or (
            schema.functions.get(name) == "v"
        ):
            raise Refused(
                Reason.VOLATILE_FUNCTION,
                f"{name}()",
                "Call it when reading, or store its result in a source column; under FULL it is evaluated anew.",
            )
