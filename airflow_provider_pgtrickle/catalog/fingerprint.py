"""Notice that something behind a query changed: columns, types, keys, bodies of views and functions, RLS, partitions.

A fingerprint is text that names the objects it was taken of, each with a digest, so it can be taken again of the same
objects without the query, and a difference can be told by name. Only columns that the query names count; a query that
says `*` is about all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from psycopg import Connection

from airflow_provider_pgtrickle.catalog.probed import Probe
from airflow_provider_pgtrickle.catalog.records import Dependency

# A column's number and the transaction that last altered it tell of what leaves name and type alone, yet changes every
# row without a trigger: dropped and added again, or rewritten by ALTER COLUMN … TYPE … USING.
_TABLES = """
    WITH wanted AS (
        SELECT key::oid AS relid, value AS columns FROM jsonb_each(%s)
    )
    SELECT c.oid::bigint, md5(concat_ws('|', n.nspname, c.relname, c.relkind, c.relpersistence,
        c.relrowsecurity, c.relforcerowsecurity,
        (SELECT jsonb_agg(jsonb_build_array(a.attname, a.atttypid, a.atttypmod, a.attcollation, a.attnotnull,
                                            a.attgenerated, d.adbin::text, a.attnum, a.xmin::text) ORDER BY a.attnum)
         FROM pg_catalog.pg_attribute a
         LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.attgenerated <> ''
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
           AND (w.columns = 'null' OR w.columns ? a.attname)),
        (SELECT jsonb_agg(jsonb_build_array(i.indisprimary, k.columns) ORDER BY i.indisprimary, k.columns)
         FROM pg_catalog.pg_index i
         CROSS JOIN LATERAL (
            SELECT array_agg(a.attname::text ORDER BY p.place) AS columns, bool_and(a.attnotnull IS TRUE) AS sound
            FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS p(attnum, place)
            LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = p.attnum AND a.attnum > 0
            WHERE p.place <= i.indnkeyatts) AS k
         WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND k.sound
           -- A stream table's indexes come and go with its content, and no query is planned by them.
           AND NOT EXISTS (SELECT FROM pgtrickle.pgt_stream_tables t WHERE t.pgt_relid = c.oid)),
        (SELECT jsonb_agg(jsonb_build_array(p.polname, p.polcmd, p.polpermissive, p.polroles::text,
                                            p.polqual::text, p.polwithcheck::text) ORDER BY p.polname)
         FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid),
        (WITH RECURSIVE tree(oid, parent) AS (
            SELECT c.oid, 0::oid
            UNION SELECT i.inhrelid, i.inhparent FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid)
         SELECT jsonb_agg(jsonb_build_array(oid, parent) ORDER BY oid, parent) FROM tree),
        (SELECT jsonb_agg(i.inhparent ORDER BY i.inhparent) FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid)
    ))
    FROM wanted w
    JOIN pg_catalog.pg_class c ON c.oid = w.relid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
"""

_VIEWS = """
    SELECT r.ev_class::bigint, md5(concat_ws('|', n.nspname, c.relname, c.reloptions, r.ev_action::text))
    FROM pg_catalog.pg_rewrite r
    JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE r.ev_class = ANY(%s::oid[]) AND r.rulename = '_RETURN'
"""

_FUNCTIONS = """
    SELECT p.oid::bigint, md5(concat_ws('|', n.nspname, p.proname, p.prolang, p.provolatile, p.proisstrict, p.prosrc,
                                        p.probin, p.prosqlbody::text, p.proconfig, a::text))
    FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    LEFT JOIN pg_catalog.pg_aggregate a ON a.aggfnoid = p.oid
    WHERE p.oid = ANY(%s::oid[])
"""


def fingerprint(conn: Connection, subject: Probe | Iterable[Dependency], *others: Probe) -> str:
    """The present state of everything behind queries just probed, or behind a stream table, by its dependencies.

    Of dependencies it equals the stream table's stored fingerprint as long as nothing changed.
    """
    if isinstance(subject, Probe):
        probes = (subject, *others)
        tables: dict[str, list[str] | None] = {}
        for probe in probes:
            for source in probe.sources:
                named = None if probe.open_ended else probe.columns_used[source.relid]
                before = tables.get(str(source.relid), [])
                tables[str(source.relid)] = None if named is None or before is None else sorted({*before, *named})
        views = {view for probe in probes for view in probe.views}
        functions = {function for probe in probes for function in probe.function_oids}
        return _dump(_taken(conn, tables, views, functions))
    ids = sorted({dependency.pgt_id for dependency in subject})
    row = conn.execute(
        "SELECT fingerprint FROM pgtrickle.pgt_stream_tables WHERE pgt_id = ANY(%s) LIMIT 1", [ids]
    ).fetchone()
    return again(conn, row[0]) if row and row[0] else ""


def again(conn: Connection, stored: str) -> str:
    """The fingerprint of the same objects, now."""
    before = json.loads(stored)
    tables = {relid: table["columns"] for relid, table in before["tables"].items()}
    return _dump(_taken(conn, tables, map(int, before["views"]), map(int, before["functions"])))


def changed(conn: Connection, stored: str) -> tuple[str, ...]:
    """What differs from a stored fingerprint, in words; empty where nothing does."""
    before, now = json.loads(stored), json.loads(again(conn, stored))
    words = []
    for kind, catalog in (("tables", "regclass"), ("views", "regclass"), ("functions", "regprocedure")):
        for oid, digest in before[kind].items():
            if now[kind][oid] == digest:
                continue
            # An oid whose object is gone prints as the number itself.
            row = conn.execute(f"SELECT %s::oid::{catalog}::text", [oid]).fetchone()
            name = row[0] if row else oid
            words.append(f"{kind[:-1]} {name} was dropped" if name == oid else f"{kind[:-1]} {name} changed")
    return tuple(words)


def _taken(
    conn: Connection, tables: dict[str, list[str] | None], views: Iterable[int], functions: Iterable[int]
) -> dict[str, Any]:
    views, functions = list(views), list(functions)
    digests = {str(oid): digest for oid, digest in conn.execute(_TABLES, [json.dumps(tables)])}
    return {
        "tables": {oid: {"columns": columns, "digest": digests.get(oid)} for oid, columns in tables.items()},
        "views": _digests(conn, _VIEWS, views),
        "functions": _digests(conn, _FUNCTIONS, functions),
    }


def _digests(conn: Connection, statement: str, oids: list[int]) -> dict[str, str | None]:
    if not oids:
        return {}
    found: dict[int, str] = dict(conn.execute(statement, [oids]).fetchall())
    return {str(oid): found.get(oid) for oid in oids}


def _dump(taken: dict[str, Any]) -> str:
    return json.dumps(taken, sort_keys=True, separators=(",", ":"))
