"""Facts about relations, read from PostgreSQL's catalogs: columns, keys, kinds, sizes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from airflow_provider_pgtrickle.engine.catalog.types import types_with_equality
from airflow_provider_pgtrickle.engine.dvm.schema import Source, SourceColumn
from airflow_provider_pgtrickle.engine.names import RESERVED_PREFIX

#: Objects below this oid came with the server.
FIRST_USER_OID = 16384

_RELATIONS = """
    SELECT c.oid::bigint AS relid, n.nspname AS schema, c.relname AS name, c.relkind AS relkind,
           s.pgt_id, s.storage, CASE WHEN s.frozen_rows IS NOT NULL THEN s.identity END AS key_of_copy,
           c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid) AS has_children,
           size.estimated_rows, size.has_foreign_members, size.has_unlogged_members
    FROM pg_catalog.pg_class c
    CROSS JOIN LATERAL (
        WITH RECURSIVE tree(oid) AS (
            SELECT c.oid UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid)
        SELECT CASE WHEN min(m.reltuples) < 0 THEN -1 ELSE coalesce(sum(m.reltuples), -1) END::float8 AS estimated_rows,
               bool_or(m.relkind = 'f') AS has_foreign_members,
               bool_or(m.relpersistence = 'u') AS has_unlogged_members
        FROM tree t JOIN pg_catalog.pg_class m ON m.oid = t.oid
        WHERE m.relkind <> 'p') AS size
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pgtrickle.pgt_stream_tables s ON s.pgt_relid = c.oid
    WHERE c.oid = ANY(%s)
"""

_COLUMNS = """
    SELECT a.attrelid::bigint AS relid, a.attname AS name, a.atttypid::bigint AS typid, a.attnotnull AS not_null,
           pg_catalog.format_type(a.atttypid, a.atttypmod) AS type,
           coalesce(c.collisdeterministic, true) AS deterministic
    FROM pg_catalog.pg_attribute a
    LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
    WHERE a.attrelid = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attrelid, a.attnum
"""

# Only keys that hold in every committed state count: valid, not partial, over plain NOT NULL columns. A deferrable key
# does.
_KEYS = """
    SELECT i.indrelid::bigint AS relid, i.indisprimary AS is_primary,
           array_agg(a.attname::text ORDER BY k.ordinal) AS columns
    FROM pg_catalog.pg_index i
    CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, ordinal)
    LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND a.attnum > 0
    WHERE i.indrelid = ANY(%s) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND k.ordinal <= i.indnkeyatts
    GROUP BY i.indexrelid, i.indrelid, i.indisprimary
    HAVING bool_and(a.attnotnull IS TRUE)
    ORDER BY i.indexrelid
"""

_KINDS = {"r": "TABLE", "p": "TABLE", "m": "MATVIEW", "f": "FOREIGN_TABLE"}


def read_sources(conn: Connection, relids: Iterable[int]) -> dict[int, Source]:
    """The tables among `relids`, with type names as the session's search_path prints them."""
    wanted = list(relids)
    with conn.cursor(row_factory=dict_row) as cursor:
        relations = cursor.execute(_RELATIONS, [wanted]).fetchall()
        columns = _by_relation(cursor.execute(_COLUMNS, [wanted]).fetchall())
        keys = _by_relation(cursor.execute(_KEYS, [wanted]).fetchall())
    comparable = types_with_equality(conn, {c["typid"] for rows in columns.values() for c in rows})
    return {
        row["relid"]: _source(row, columns.get(row["relid"], []), keys.get(row["relid"], []), comparable)
        for row in relations
        if row["relkind"] in _KINDS
    }


def _source(
    row: dict[str, Any], columns: list[dict[str, Any]], keys: list[dict[str, Any]], comparable: set[int]
) -> Source:
    stream_table = row["pgt_id"] is not None
    own_keys: tuple[tuple[str, ...], ...] = ()
    if row["has_children"]:
        # A key of an inheritance parent says nothing about its children's rows, which a query of it sees too.
        own_keys = tuple(tuple(k["columns"]) for k in sorted(keys, key=lambda k: not k["is_primary"]))
        keys = []
    internal = {c["name"] for c in row["storage"] or () if c["role"] != "visible"}
    hidden = tuple(
        (position, c["name"])
        for position, c in enumerate(columns)
        if stream_table and (c["name"] in internal or c["name"].startswith(RESERVED_PREFIX))
    )
    unseen = {name for _, name in hidden}
    return Source(
        key=f"pgt_{row['pgt_id']}" if stream_table else str(row["relid"]),
        schema=row["schema"],
        name=row["name"],
        columns=tuple(
            SourceColumn(c["name"], c["type"], c["not_null"], c["typid"] in comparable, c["deterministic"])
            for c in columns
            if c["name"] not in unseen
        ),
        primary_key=next((tuple(k["columns"]) for k in keys if k["is_primary"] and not stream_table), ()),
        unique_keys=(
            _keys_of_stream_table(row)
            if stream_table
            else tuple(tuple(k["columns"]) for k in keys if not k["is_primary"])
        ),
        kind="STREAM_TABLE" if stream_table else _kind(row),
        relid=row["relid"],
        pgt_id=row["pgt_id"],
        estimated_rows=row["estimated_rows"],
        hidden=hidden,
        own_keys=own_keys,
    )


def _keys_of_stream_table(row: dict[str, Any]) -> tuple[tuple[str, ...], ...]:
    """A copy has its table's key, and queries are planned by it. Of others none is relied on."""
    return (tuple(row["key_of_copy"]),) if row["key_of_copy"] else ()


def _kind(row: dict[str, Any]) -> str:
    """A table is captured whole or not at all, so one partition or child whose changes can't be captured decides."""
    if row["has_foreign_members"]:
        return "FOREIGN_TABLE"
    # A crash of the server empties an unlogged table, and no trigger fires.
    return "UNLOGGED_TABLE" if row["has_unlogged_members"] else _KINDS[row["relkind"]]


def _by_relation(rows: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    grouped: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(row["relid"], []).append(row)
    return grouped
