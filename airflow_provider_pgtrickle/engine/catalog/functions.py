"""What is behind users' functions: the functions that they call, and whether any of these may read a table.

PostgreSQL records what a body written as BEGIN ATOMIC depends on, but nothing about a body that is text. So the text is
searched for names. A name that matches by accident costs a FULL refresh; an overlooked one would make the answer
wrong.
"""

from __future__ import annotations

from collections.abc import Iterable

from psycopg import Connection

from airflow_provider_pgtrickle.engine.catalog.relations import FIRST_USER_OID

#: `called(root, oid)`: each of the functions %(oids)s and, to a fixpoint, the users' functions behind it.
CALLED = r"""
    called(root, oid) AS (
        SELECT f::oid, f::oid FROM unnest(%(oids)s::oid[]) AS f
        UNION
        SELECT c.root, behind.oid
        FROM called c
        JOIN pg_catalog.pg_proc p ON p.oid = c.oid
        CROSS JOIN LATERAL (
            SELECT d.refobjid AS oid FROM pg_catalog.pg_depend d
            WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid
              AND d.refclassid = 'pg_catalog.pg_proc'::regclass
            UNION ALL
            SELECT o.oprcode FROM pg_catalog.pg_depend d
            JOIN pg_catalog.pg_operator o ON o.oid = d.refobjid
            WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid
              AND d.refclassid = 'pg_catalog.pg_operator'::regclass
            UNION ALL
            SELECT part FROM pg_catalog.pg_aggregate a
            CROSS JOIN LATERAL unnest(ARRAY[a.aggtransfn::oid, a.aggfinalfn, a.aggcombinefn, a.aggserialfn,
                                            a.aggdeserialfn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn]) AS part
            WHERE a.aggfnoid = p.oid
            UNION ALL
            -- Our sessions look names up in pg_catalog, so a body names the schema, or the function sets its own path.
            SELECT q.oid FROM pg_catalog.pg_proc q JOIN pg_catalog.pg_namespace n ON n.oid = q.pronamespace
            WHERE p.prosqlbody IS NULL AND p.prokind <> 'a' AND q.oid >= 16384
              AND strpos(lower(p.prosrc), lower(q.proname)) > 0
              AND (q.proname !~ '^\w+$' OR p.prosrc ~* ('\m' || q.proname || '\M'))
              AND (strpos(lower(p.prosrc), lower(n.nspname)) > 0 OR p.proconfig::text LIKE '%%search_path%%')
        ) AS behind
        WHERE behind.oid >= 16384
    )
"""

# A function in C is trusted to be what its label says. A body that builds its statements at run time may read any
# table.
_READERS = f"""
    WITH RECURSIVE {CALLED}
    SELECT DISTINCT c.root::bigint
    FROM called c
    JOIN pg_catalog.pg_proc p ON p.oid = c.oid
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang
    WHERE CASE
        WHEN l.lanname IN ('internal', 'c') OR p.prokind = 'a' THEN false
        WHEN p.prosqlbody IS NOT NULL THEN EXISTS (
            SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_class r ON r.oid = d.refobjid
            WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid
              AND d.refclassid = 'pg_catalog.pg_class'::regclass AND r.relkind IN ('r', 'p', 'v', 'm', 'f', 'S'))
        ELSE p.prosrc ~* '\\m(execute|plpy|spi_\\w+|dblink\\w*|nextval|currval|lastval|query_to_xml\\w*)\\M'
          OR p.prosrc ~* '\\m(from|join|using|into|update|table|rowtype)\\M' AND EXISTS (
            SELECT FROM pg_catalog.pg_class r
            WHERE r.relkind IN ('r', 'p', 'v', 'm', 'f') AND strpos(lower(p.prosrc), lower(r.relname)) > 0
              AND (r.relname !~ '^\\w+$' OR p.prosrc ~* ('\\m' || r.relname || '\\M')))
    END
"""  # noqa: S608 - two constants


def that_may_read_tables(conn: Connection, functions: Iterable[int]) -> frozenset[int]:
    """Those of `functions` whose answer may depend on rows of a table, whatever their label promises."""
    own = [oid for oid in functions if oid >= FIRST_USER_OID]
    if not own:
        return frozenset()
    return frozenset(oid for (oid,) in conn.execute(_READERS, {"oids": own}))
