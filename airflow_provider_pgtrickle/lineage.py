"""OpenLineage of a refresh: the tables and columns that a stream table is made of, its SQL, and the rows written.

Column lineage follows the canonical query through views, CTEs, subqueries and set operations. A column that sqlglot
can't follow (through a recursive CTE) has no lineage.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, lineage

from airflow_provider_pgtrickle.engine.names import QualifiedName

if TYPE_CHECKING:
    pass

_log = logging.getLogger(__name__)

_TABLE = """
SELECT pgt_id, pgt_relid, original_query, defining_query
FROM pgtrickle.pgt_stream_tables
WHERE pgt_schema = %s AND pgt_name = %s
"""

# Only visible columns have lineage; hidden ones are our own bookkeeping.
_COLUMNS = """
SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod)
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE a.attnum > 0 AND NOT a.attisdropped AND NOT starts_with(a.attname, '__pgt_') AND a.attrelid = ANY (%s)
ORDER BY a.attrelid, a.attnum
"""

_SOURCES = "SELECT source_relid, source_type FROM pgtrickle.pgt_reads_of(ARRAY[%s::bigint])"

_VIEWS = """
SELECT n.nspname, c.relname, pg_get_viewdef(c.oid)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY (%s) AND c.relkind = 'v'
"""


@dataclass(frozen=True)
class Origin:
    """A column that an output column is made of."""

    relation: QualifiedName
    column: str
    how: str
    """IDENTITY, TRANSFORMATION or AGGREGATION."""


@dataclass(frozen=True)
class Relation:
    name: QualifiedName
    columns: tuple[tuple[str, str], ...]
    """Names with their types."""


@dataclass(frozen=True)
class Lineage:
    """The lineage of one stream table."""

    output: Relation
    inputs: tuple[Relation, ...]
    sql: str
    """The query as its author wrote it."""
    origins: Mapping[str, tuple[Origin, ...]]
    """The origins of each output column that could be followed."""


def describe(connection: psycopg.Connection[Any], name: QualifiedName) -> Lineage | None:
    """The lineage of a stream table as the catalog knows it; None where there is no such table."""
    table = connection.execute(_TABLE, [name.schema, name.name]).fetchone()
    if table is None:
        return None
    pgt_id, relid, original, canonical = table
    dependencies = connection.execute(_SOURCES, [pgt_id]).fetchall()
    views = {
        QualifiedName(schema, view): text
        for schema, view, text in connection.execute(_VIEWS, [[oid for oid, _ in dependencies]]).fetchall()
    }
    columns: dict[QualifiedName, list[tuple[str, str]]] = {}
    for schema, relation, column, type_ in connection.execute(
        _COLUMNS, [[relid, *(oid for oid, _ in dependencies)]]
    ).fetchall():
        columns.setdefault(QualifiedName(schema, relation), []).append((column, type_))
    relations = {relation: Relation(relation, tuple(named)) for relation, named in columns.items()}
    output = relations.pop(name, Relation(name, ()))
    inputs = tuple(relation for key, relation in sorted(relations.items()) if key not in views)
    return Lineage(output, inputs, original, column_origins(canonical, tuple(relations.values()), views))


def column_origins(
    query: str, relations: tuple[Relation, ...], views: Mapping[QualifiedName, str]
) -> dict[str, tuple[Origin, ...]]:
    """The base columns behind each output column of a canonical query."""
    try:
        tree = _inlined(sqlglot.parse_one(query, dialect="postgres"), views)
        nodes = lineage(None, tree, _schema(relations), dialect="postgres", trim_selects=False)
    except (SqlglotError, RecursionError) as unknown:
        _log.info("No column lineage: %s", unknown)
        return {}
    origins = {column: tuple(sorted(_origins(node), key=_order)) for column, node in nodes.items()}
    return {column: found for column, found in origins.items() if found}


def _inlined(tree: exp.Expr, views: Mapping[QualifiedName, str]) -> exp.Expr:
    """The query with views replaced by their queries, to a fixpoint. Only views, not CTEs, have qualified names."""

    def inline(node: exp.Expr) -> exp.Expr:
        text = views.get(QualifiedName(node.db, node.name)) if isinstance(node, exp.Table) else None
        if text is None:
            return node
        view = _inlined(sqlglot.parse_one(text, dialect="postgres"), views)
        alias = node.args.get("alias") or exp.TableAlias(this=node.this.copy())
        return exp.Subquery(this=view, alias=alias.copy())

    return tree.transform(inline)


def _schema(relations: tuple[Relation, ...]) -> dict[str, dict[str, dict[str, str]]]:
    schema: dict[str, dict[str, dict[str, str]]] = {}
    for relation in relations:
        columns = {f'"{column}"': "unknown" for column, _ in relation.columns}
        schema.setdefault(f'"{relation.name.schema}"', {})[f'"{relation.name.name}"'] = columns
    return schema


def _origins(node: Node) -> set[Origin]:
    """The leaves under an output column, with what happened to them on the way."""
    found: set[Origin] = set()
    to_visit = [(node, "IDENTITY")]
    while to_visit:
        at, how = to_visit.pop()
        if isinstance(at.expression, exp.Table):
            relation = QualifiedName(at.expression.db, at.expression.name)
            found.add(Origin(relation, exp.to_column(at.name, dialect="postgres").name, how))
            continue
        here = _worst(how, _transformation(at.expression))
        to_visit.extend((below, here) for below in at.downstream)
    return found


_RANK = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")


def _worst(one: str, other: str) -> str:
    return max(one, other, key=_RANK.index)


def _transformation(expression: exp.Expr) -> str:
    value = expression.unalias().unnest()
    if isinstance(value, exp.Column | exp.Star | exp.Query):
        return "IDENTITY"
    if value.find(exp.AggFunc) and not value.find(exp.Window):
        return "AGGREGATION"
    return "TRANSFORMATION"


def _order(origin: Origin) -> tuple[QualifiedName, str, str]:
    return origin.relation, origin.column, origin.how
