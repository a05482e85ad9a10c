"""Notices that something behind a query changed.

That may be columns, types, keys, bodies of views and functions, row-level security, partitions, labels of enums,
versions of collations or rules of time zones.

A fingerprint is a text that lists the objects behind a query, each with a digest. So it can be taken again without the
query, and a difference can be reported with the object's name. Only columns that the query names count; with `*` all of
them do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from psycopg import Connection

from airflow_provider_pgtrickle.engine.catalog import zone
from airflow_provider_pgtrickle.engine.catalog.functions import CALLED
from airflow_provider_pgtrickle.engine.catalog.probed import Probe

# A column that is dropped and added again, or rewritten by ALTER COLUMN … TYPE … USING, may keep its name and type, and
# no trigger fires for its changed values. Its number or the transaction that last altered it shows that.
_TABLES = """
    WITH wanted AS (
        SELECT ordinal, (value ->> 0)::oid AS relid, value -> 1 AS columns
        FROM jsonb_array_elements(%(tables)s::jsonb) WITH ORDINALITY AS t(value, ordinal)
    )
    SELECT w.ordinal::int - 1, md5(concat_ws('|', n.nspname, c.relname, c.relkind, c.relpersistence,
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
            SELECT array_agg(a.attname::text ORDER BY p.ordinal) AS columns, bool_and(a.attnotnull IS TRUE) AS sound
            FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS p(attnum, ordinal)
            LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = p.attnum AND a.attnum > 0
            WHERE p.ordinal <= i.indnkeyatts) AS k
         WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND k.sound
           -- A stream table's indexes come and go with its content, and no query is planned by them.
           AND NOT EXISTS (SELECT FROM pgtrickle.pgt_stream_tables t WHERE t.pgt_relid = c.oid)),
        (SELECT jsonb_agg(jsonb_build_array(p.polname, p.polcmd, p.polpermissive, p.polroles::text,
                                            p.polqual::text, p.polwithcheck::text) ORDER BY p.polname)
         FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid),
        (WITH RECURSIVE tree(oid, parent) AS (
            SELECT c.oid, 0::oid
            UNION SELECT i.inhrelid, i.inhparent FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid
            -- Those of a stream table come and go with its content, and it looks after them itself.
            WHERE NOT EXISTS (SELECT FROM pgtrickle.pgt_stream_tables s WHERE s.pgt_relid = c.oid))
         -- Whether a crash empties a part decides whether the table can be captured.
         SELECT jsonb_agg(jsonb_build_array(t.oid, t.parent, p.relpersistence) ORDER BY t.oid, t.parent)
         FROM tree t JOIN pg_catalog.pg_class p ON p.oid = t.oid),
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
    WHERE r.ev_class = ANY(%(oids)s::oid[]) AND r.rulename = '_RETURN'
"""

# A function's digest covers the functions that it calls, too.
_FUNCTIONS = f"""
    WITH RECURSIVE {CALLED}
    SELECT c.root::bigint, md5(string_agg(concat_ws('|', p.oid, n.nspname, p.proname, p.prolang, p.provolatile,
        p.proisstrict, p.prosrc, p.probin, p.prosqlbody::text, p.proconfig, p.proargtypes, p.pronargdefaults, a::text,
        -- Another one of its name, or of its operators', may be what the text of a query means from now on.
        (SELECT array_agg(o.oid ORDER BY o.oid) FROM pg_catalog.pg_proc o
         WHERE o.proname = p.proname AND o.pronamespace = p.pronamespace)::text,
        (SELECT array_agg(o.oid ORDER BY o.oid) FROM pg_catalog.pg_operator own
         JOIN pg_catalog.pg_operator o ON o.oprname = own.oprname AND o.oprnamespace = own.oprnamespace
         WHERE own.oprcode = p.oid)::text), ' ' ORDER BY p.oid))
    FROM called c
    JOIN pg_catalog.pg_proc p ON p.oid = c.oid
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    LEFT JOIN pg_catalog.pg_aggregate a ON a.aggfnoid = p.oid
    GROUP BY c.root
"""  # noqa: S608 - two constants

# A type's digest covers what it is made of, too: elements, fields, the type below a domain.
_TYPES = """
    WITH RECURSIVE used(root, oid) AS (
        SELECT t, t FROM unnest(%(oids)s::oid[]) AS t
        UNION
        SELECT u.root, below.oid
        FROM used u
        JOIN pg_catalog.pg_type t ON t.oid = u.oid
        CROSS JOIN LATERAL (
            SELECT t.typelem AS oid UNION ALL SELECT t.typbasetype
            UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
            UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0
        ) AS below
        WHERE below.oid <> 0
    )
    SELECT u.root::bigint, md5(string_agg(concat_ws('|', t.oid, n.nspname, t.typname, t.typtypmod, t.typcollation,
        (SELECT string_agg(e.enumlabel || ' ' || e.oid, ',' ORDER BY e.enumsortorder)
         FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid),
        (SELECT string_agg(concat_ws(' ', a.attnum, a.attname, a.atttypid, a.atttypmod, a.attcollation), ','
                           ORDER BY a.attnum)
         FROM pg_catalog.pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped),
        (SELECT string_agg(k.conbin::text, ',' ORDER BY k.oid)
         FROM pg_catalog.pg_constraint k WHERE k.contypid = t.oid)), ' ' ORDER BY t.oid))
    FROM used u
    JOIN pg_catalog.pg_type t ON t.oid = u.oid
    JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
    GROUP BY u.root
"""

# Oid 100 is the database's own collation.
_COLLATIONS = """
    SELECT c.oid::bigint, md5(concat_ws('|', n.nspname, c.collname,
        CASE WHEN c.oid = 100
             THEN (SELECT concat_ws('|', d.datcollate, pg_catalog.pg_database_collation_actual_version(d.oid))
                   FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
             ELSE concat_ws('|', c.collprovider, c.collisdeterministic, c.collcollate,
                            pg_catalog.pg_collation_actual_version(c.oid)) END))
    FROM pg_catalog.pg_collation c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace
    WHERE c.oid = ANY(%(oids)s::oid[])
"""

# The transactions that wrote the catalog rows of some tables, views and types and of all users' functions; and the
# tables' files, which TRUNCATE and a rewriting ALTER TABLE replace.
_MOMENT = """
    WITH RECURSIVE tree(oid) AS (
        SELECT r::oid FROM unnest(%(tables)s::oid[]) AS r
        UNION
        SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid
    ), part(line) AS (
        SELECT concat_ws(' ', 'file', c.oid, c.relfilenode, n.nspname, c.relname)
        FROM tree t
        JOIN pg_catalog.pg_class c ON c.oid = t.oid
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        UNION ALL
        SELECT concat_ws(' ', 'parent', i.inhrelid, i.inhparent, i.xmin)
        FROM tree t JOIN pg_catalog.pg_inherits i ON i.inhrelid = t.oid
        UNION ALL
        SELECT concat_ws(' ', 'column', a.attrelid, a.attnum, a.xmin) FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = ANY(%(tables)s::oid[]) AND a.attnum > 0
        UNION ALL
        SELECT concat_ws(' ', 'view', r.ev_class, r.xmin) FROM pg_catalog.pg_rewrite r
        WHERE r.ev_class = ANY(%(views)s::oid[])
        UNION ALL
        SELECT concat_ws(' ', 'function', p.oid, p.xmin) FROM pg_catalog.pg_proc p
        WHERE %(functions)s AND p.oid >= 16384
          -- Our own come and go with other stream tables, and no query calls them.
          AND p.pronamespace::regnamespace::text NOT IN ('pgtrickle', 'pgtrickle_changes')
        UNION ALL
        SELECT concat_ws(' ', 'type', t.oid, t.xmin, e.oid, e.xmin, a.attnum, a.xmin)
        FROM pg_catalog.pg_type t
        LEFT JOIN pg_catalog.pg_enum e ON e.enumtypid = t.oid
        LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = t.typrelid AND a.attnum > 0
        WHERE t.oid = ANY(%(types)s::oid[])
    )
    SELECT md5(string_agg(line, ',' ORDER BY line COLLATE "C")) FROM part
"""


_DIGESTS = {"views": _VIEWS, "functions": _FUNCTIONS, "types": _TYPES, "collations": _COLLATIONS}
_NAMED = {
    "tables": "regclass",
    "views": "regclass",
    "functions": "regprocedure",
    "types": "regtype",
    "collations": "regcollation",
}


def fingerprint(conn: Connection, *probes: Probe) -> str:
    """The fingerprint of everything behind queries that were just probed."""
    tables: dict[str, list[str] | None] = {}
    for probe in probes:
        for source in probe.sources:
            named = None if probe.open_ended else probe.columns_used[source.relid]
            before = tables.get(str(source.relid), [])
            tables[str(source.relid)] = None if named is None or before is None else sorted({*before, *named})
    objects = {
        "views": {view for probe in probes for view in probe.views},
        "functions": {function for probe in probes for function in probe.function_oids},
        "types": {typ for probe in probes for typ in probe.types},
        "collations": {collation for probe in probes for collation in probe.collations},
    }
    zones = zone.named_in(text for probe in probes for text in (probe.text, *probe.schema.views.values()))
    if (own := zone.of(conn)) is not None:
        zones.add(own)
    listed = {kind: [str(oid) for oid in oids] for kind, oids in objects.items()}
    return _taken(conn, [(tables, {**listed, "zones": sorted(zones)})])[0]


def again(conn: Connection, stored: str) -> str:
    """The present fingerprint of the objects that `stored` lists."""
    return all_again(conn, [stored])[0]


def all_again(conn: Connection, stored: Sequence[str]) -> list[str]:
    """The present fingerprints for many stored ones, with as many statements as for one."""
    wanted = []
    for before in map(json.loads, stored):
        tables = {relid: table["columns"] for relid, table in before["tables"].items()}
        wanted.append((tables, {kind: list(before.get(kind, ())) for kind in (*_DIGESTS, "zones")}))
    return _taken(conn, wanted)


def moment(conn: Connection, fingerprints: Iterable[str], tables: Iterable[int]) -> str:
    """A value that stays the same as long as nobody changes these tables or the objects of these fingerprints.

    A snapshot doesn't protect against DDL: it sees a table that is truncated or rewritten later as empty, and functions
    run as they are now. So what was read counts only if the moment is the same before and after reading.
    """
    taken = [json.loads(stored) for stored in fingerprints]
    of = {kind: sorted({int(oid) for one in taken for oid in one.get(kind, ())}) for kind in ("tables", *_DIGESTS)}
    row = conn.execute(
        _MOMENT,
        {
            "tables": [*of["tables"], *tables],
            "views": of["views"],
            "functions": bool(of["functions"]),
            "types": of["types"],
        },
    ).fetchone()
    assert row is not None
    return str(row[0])


def changed(conn: Connection, stored: str) -> tuple[str, ...]:
    """What differs from a stored fingerprint, in words; empty where nothing does."""
    before, now = json.loads(stored), json.loads(again(conn, stored))
    words = []
    for kind, catalog in _NAMED.items():
        for oid, digest in before.get(kind, {}).items():
            if now[kind][oid] == digest:
                continue
            # An oid whose object is gone prints as the number itself.
            row = conn.execute(f"SELECT %s::oid::{catalog}::text", [oid]).fetchone()
            name = row[0] if row else oid
            words.append(f"{kind[:-1]} {name} was dropped" if name == oid else f"{kind[:-1]} {name} changed")
    zones = before.get("zones", {})
    return (*words, *(f"zone {name} has other rules" for name in zones if now["zones"][name] != zones[name]))


def _taken(
    conn: Connection, wanted: Sequence[tuple[Mapping[str, list[str] | None], Mapping[str, Sequence[str]]]]
) -> list[str]:
    """Fingerprints of tables by relid, with the columns that count, and of other objects by kind, zones by name."""
    tables = sorted({(relid, json.dumps(columns)) for of, _ in wanted for relid, columns in of.items()})
    asked = [[relid, json.loads(columns)] for relid, columns in tables]
    found: dict[int, str] = dict(conn.execute(_TABLES, {"tables": json.dumps(asked)}).fetchall()) if asked else {}
    of_table = {table: found.get(ordinal) for ordinal, table in enumerate(tables)}
    of_kind = {
        kind: _digests(conn, statement, sorted({int(oid) for _, objects in wanted for oid in objects[kind]}))
        for kind, statement in _DIGESTS.items()
    }
    taken = []
    for of, objects in wanted:
        listed: dict[str, Mapping[str, Any]] = {
            "tables": {
                relid: {"columns": columns, "digest": of_table[relid, json.dumps(columns)]}
                for relid, columns in of.items()
            },
            **{kind: {oid: of_kind[kind].get(int(oid)) for oid in objects[kind]} for kind in _DIGESTS},
        }
        if zones := objects["zones"]:
            # Most queries have none, and their fingerprints don't speak of it.
            listed["zones"] = {name: zone.rules(conn, name) for name in zones}
        taken.append(json.dumps(listed, sort_keys=True, separators=(",", ":")))
    return taken


def _digests(conn: Connection, statement: str, oids: list[int]) -> dict[int, str]:
    return dict(conn.execute(statement, {"oids": oids}).fetchall()) if oids else {}
