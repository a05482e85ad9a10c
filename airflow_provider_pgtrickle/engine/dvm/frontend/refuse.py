"""A query that can't be a stream table, or can't be maintained by differences, is refused before anything is built."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import call_name
from airflow_provider_pgtrickle.engine.dvm.expressions import SOURCE_META, render, returns_set, unparen
from airflow_provider_pgtrickle.engine.dvm.frames import called
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
    _windows(query, schema)
    _endless(query, schema)
    sources = schema.by_key
    for table in query.find_all(exp.Table):
        source = sources.get(table.meta.get(SOURCE_META, ""))
        if source is not None and not source.captured:
            kind = _UNCAPTURED[source.kind]
            raise Refused(Reason.NOT_CAPTURED, f"{source.schema}.{source.name} is {kind}", "It runs FULL.")
    return query


def _limits(query: exp.Query) -> None:
    """Refuse a LIMIT without ORDER BY.

    At the top it decides what the table holds, so the choice of rows must be defined: it is refused in every mode.
    Below the top an arbitrary choice is the user's own: FULL remains. Rows that all look alike need no order, and
    VALUES have that in which they are written.
    """
    for node in query.find_all(exp.Select, exp.SetOperation, exp.Subquery):
        limited = node.args.get("limit") or node.args.get("offset")
        if not limited or node.args.get("order"):
            continue
        what = render(limited).strip()
        if node is query:
            remedy = "Add ORDER BY beside the LIMIT, or apply the LIMIT when reading the stream table."
            raise Impossible(Reason.LIMIT_WITHOUT_ORDER, what, remedy)
        if not (shows_constants(node) or _is_written_out(node)):
            raise Refused(Reason.LIMIT_WITHOUT_ORDER, what, "Add ORDER BY beside the LIMIT; until then it runs FULL.")


def _is_written_out(query: exp.Expr) -> bool:
    """Whether a query is nothing but VALUES."""
    rows = query.args["from_"].this if isinstance(query, exp.Select) and query.args.get("from_") else None
    if not isinstance(rows, exp.Values):
        return False
    return not any(query.args.get(c) for c in ("joins", "where", "group", "having", "distinct"))


def _windows(query: exp.Query, schema: Schema) -> None:
    """Refuse window functions of the user's: nobody knows what rows that tie mean to them."""
    for window in query.find_all(exp.Window):
        function = called(window)
        if isinstance(function, exp.Dot) and function.expression.name.lower() not in schema.aggregates:
            what = f"{render(function)} is no window function of PostgreSQL's own"
            raise Refused(Reason.AMBIGUOUS_ORDER, what, "It runs FULL.")


def _endless(query: exp.Query, schema: Schema) -> None:
    """Refuse a recursion each of whose rows has a next one, as in SELECT 1 UNION ALL SELECT n + 1 FROM r.

    PostgreSQL answers such a query if EXISTS, a LIMIT or the like asks for few of the rows; a difference asks for all.
    """
    for cte in query.find_all(exp.CTE):
        union, name = cte.this, cte.alias
        if not isinstance(union, exp.Union) or any(union.args.get(c) for c in ("limit", "offset")):
            continue
        step = union.expression
        read = [t for t in step.find_all(exp.Table) if t.name == name and not t.db]
        if isinstance(step, exp.Select) and read and not _may_end(union, step, read[0].alias_or_name, schema):
            detail = f"each row of {name} has a next one"
            raise Refused(Reason.ENDLESS, detail, "Bound it: WHERE depth < 100, or by what a table holds.")


def _may_end(union: exp.Union, step: exp.Select, alias: str, schema: Schema) -> bool:
    """Whether a row may have no next one: anything but the list of columns asks for its values, or makes sets of them.

    Under UNION it also ends if the list computes nothing, because then the values are all among those in the tables.
    """
    if any(step.args.get(c) for c in ("limit", "offset")) or any(j.args.get("using") for j in step.find_all(exp.Join)):
        return True
    items = [unparen(i.this if isinstance(i, exp.Alias) else i) for i in step.expressions]
    if union.args.get("distinct") is not False and not any(_computes(i) for i in items):
        return True
    if any(returns_set(i) or call_name(c) in schema.set_returning for i in items for c in (i, *i.find_all(exp.Func))):
        return True
    shown = {id(c) for i in items for c in i.find_all(exp.Column)}
    return any(c.table in (alias, "") for c in step.find_all(exp.Column) if id(c) not in shown)


def _computes(item: exp.Expr) -> bool:
    return not isinstance(item, exp.Column) and item.find(exp.Column) is not None


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
