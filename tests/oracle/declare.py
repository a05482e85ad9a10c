"""What a query is to PostgreSQL: canonical text, output columns, and the relations behind it.

A small declaration of the oracle's own: it asks the server the same questions as `catalog.probe`, by other words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.probe import compared_and_read
from airflow_provider_pgtrickle.engine.catalog.references import STEADY
from airflow_provider_pgtrickle.engine.dvm.clock import FUNCTIONS
from airflow_provider_pgtrickle.engine.dvm.schema import READS_CLOCK, Schema, Source, SourceColumn
from tests.answers import only


@dataclass(frozen=True)
class Declared:
    canonical: str
    columns: tuple[tuple[str, str, int], ...]
    """Name, type and collation of each output column."""
    schema: Schema


_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atttypid, a.attcollation::int8,
       coalesce((SELECT c.collisdeterministic FROM pg_collation c WHERE c.oid = a.attcollation), true)
FROM pg_attribute a WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""
_KEYS = """
SELECT i.indisprimary, array_agg(a.attname::text ORDER BY k.position), bool_and(a.attnotnull)
FROM pg_index i, unnest(i.indkey) WITH ORDINALITY k(attnum, position), pg_attribute a
WHERE i.indrelid = %s AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL
  AND k.position <= i.indnkeyatts AND a.attrelid = i.indrelid AND a.attnum = k.attnum
GROUP BY i.indexrelid, i.indisprimary"""
# Names alone are looked at here, and age(a, b) is no function of the clock; no query calls age(a).
_STEADY = STEADY | {"age"}
_CLOCK_WORDS = r"\b(?:CURRENT_DATE|CURRENT_TIME|CURRENT_TIMESTAMP|LOCALTIME|LOCALTIMESTAMP)\b"
_HEIRS = """
SELECT c.oid::text, ARRAY(SELECT i.inhrelid::oid::text FROM pg_inherits i WHERE i.inhparent = c.oid ORDER BY 1)
FROM pg_class c WHERE c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits i WHERE c.oid IN (i.inhparent, i.inhrelid))"""
_FUNCTIONS = """
SELECT proname, CASE max(CASE provolatile WHEN 'i' THEN 0 WHEN 's' THEN 1 ELSE 2 END)
                WHEN 0 THEN 'i' WHEN 1 THEN 's' ELSE 'v' END,
       bool_or(prokind = 'a'), bool_or(proretset)
FROM pg_proc WHERE proname = ANY (%s) GROUP BY proname"""


class Misprinted(Exception):
    """PostgreSQL prints a text that reads other columns than the query, or that it can't read itself."""


def _refuse_misprint(conn: psycopg.Connection, schema_name: str, relid: int, canonical: str) -> None:
    again = sql.Identifier(schema_name, "st_again")
    try:
        with conn.transaction():
            conn.execute(sql.SQL("CREATE VIEW {} AS {}").format(again, sql.SQL(canonical)))
    except psycopg.ProgrammingError as error:
        raise Misprinted(canonical) from error
    (other,) = only(conn.execute("SELECT %s::regclass::oid::int8", (again.as_string(conn),)))
    if compared_and_read(conn, relid) != compared_and_read(conn, other):
        raise Misprinted(canonical)


def declare(conn: psycopg.Connection, schema_name: str, query: str) -> Declared:
    """The query, taken through a view that is gone again."""
    probe = sql.Identifier(schema_name, "st_probe")
    with conn.transaction(force_rollback=True):
        conn.execute(sql.SQL("CREATE VIEW {} AS {}").format(probe, sql.SQL(query)))
        (relid,) = only(conn.execute("SELECT %s::regclass::oid::int8", (probe.as_string(conn),)))
        columns = conn.execute(_COLUMNS, (relid,)).fetchall()
        conn.execute("SET LOCAL search_path = pg_catalog")
        canonical = _view_text(conn, relid)
        _refuse_misprint(conn, schema_name, relid, canonical)
    relations = conn.execute(
        "SELECT c.oid::int8, c.relname, c.relkind, c.reltuples FROM pg_class c JOIN pg_namespace n"
        " ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind IN ('r', 'p', 'v', 'm')"
        " AND c.relname !~ '^(changes_|st_)'",
        (schema_name,),
    ).fetchall()
    sources, views, view_columns = {}, {}, {}
    for oid, name, kind, estimate in relations:
        if kind == "v":
            with conn.transaction(force_rollback=True):
                conn.execute("SET LOCAL search_path = pg_catalog")
                views[schema_name, name] = _view_text(conn, oid)
            view_columns[schema_name, name] = tuple(row[0] for row in conn.execute(_COLUMNS, (oid,)))
        else:
            sources[schema_name, name] = _source(conn, schema_name, oid, name, kind, estimate)
    keys = {source.key for source in sources.values()}
    heirs = {parent: tuple(children) for parent, children in conn.execute(_HEIRS) if parent in keys}
    for place, source in sources.items():
        if heirs.get(source.key):
            # A key of the parent says nothing about its children's rows.
            own = tuple(key for key in (source.primary_key, *source.unique_keys) if key)
            sources[place] = replace(source, primary_key=(), unique_keys=(), own_keys=own)
    words = sorted(set(re.findall(r'[a-z_][a-z_0-9]*(?="?\()', " ".join([canonical, *views.values()]).lower())))
    functions = conn.execute(_FUNCTIONS, (words,)).fetchall()
    return Declared(
        canonical,
        tuple((name, kind, collation) for name, kind, _, _, collation, _ in columns),
        Schema(
            sources=sources,
            views=views,
            functions={name: "i" if name in _STEADY and v == "s" else v for name, v, _, _ in functions}
            | {name: READS_CLOCK for name, _, _, _ in functions if name in FUNCTIONS}
            | dict.fromkeys(re.findall(_CLOCK_WORDS, " ".join([canonical, *views.values()])), READS_CLOCK),
            aggregates=frozenset(name for name, _, aggregates, _ in functions if aggregates),
            set_returning=frozenset(name for name, _, _, returns_set in functions if returns_set),
            view_columns=view_columns,
            heirs=heirs,
            keeps_equal_keys_apart=conn.info.server_version >= 180000,
            is_local=conn.info.parameter_status("TimeZone") != "UTC",
        ),
    )


def _view_text(conn: psycopg.Connection, oid: int) -> str:
    conn.execute("SET LOCAL quote_all_identifiers = on")
    (text,) = only(conn.execute("SELECT pg_get_viewdef(%s::int8::oid)", (oid,)))
    conn.execute("SET LOCAL quote_all_identifiers = off")
    # PostgreSQL prints CYCLE … TO 'Y'::text DEFAULT …, which it can't read.
    return re.sub(r"(TO|DEFAULT) ('[^']*')::(\S+)(?= DEFAULT | USING )", r"\1 \3 \2", str(text).strip().rstrip(";"))


def _source(conn: psycopg.Connection, schema: str, oid: int, name: str, kind: str, estimate: float) -> Source:
    columns = tuple(
        SourceColumn(column, type_name, not_null, _has_equality(conn, type_oid), deterministic)
        for column, type_name, not_null, type_oid, _, deterministic in conn.execute(_COLUMNS, (oid,)).fetchall()
    )
    keys = conn.execute(_KEYS, (oid,)).fetchall()
    return Source(
        key=str(oid),
        schema=schema,
        name=name,
        columns=columns,
        primary_key=next((tuple(names) for primary, names, _ in keys if primary), ()),
        unique_keys=tuple(tuple(names) for primary, names, not_null in keys if not primary and not_null),
        kind="MATVIEW" if kind == "m" else "TABLE",
        relid=oid,
        estimated_rows=estimate,
    )


def _has_equality(conn: psycopg.Connection, type_oid: int) -> bool:
    return _equality(conn, type_oid) if type_oid < 16384 else _try_equality(conn, type_oid)


@cache
def _equality(conn: psycopg.Connection, type_oid: int) -> bool:
    return _try_equality(conn, type_oid)


def _try_equality(conn: psycopg.Connection, type_oid: int) -> bool:
    (kind,) = only(conn.execute("SELECT format_type(%s::int8::oid, NULL)", (type_oid,)))
    try:
        with conn.transaction():
            conn.execute(sql.SQL("SELECT NULL::{0} GROUP BY NULL::{0}").format(sql.SQL(kind)))
        return True
    except psycopg.errors.UndefinedFunction:
        return False
