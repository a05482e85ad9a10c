"""Which types PostgreSQL can group by."""

from __future__ import annotations

from collections.abc import Iterable

from psycopg import Connection

# A domain, array or composite can be compared when everything inside it can. Any other type can when it, or a type it
# is binary-coercible to (varchar → text), has a default operator class of btree. One of hash alone (xid) isn't enough:
# some types have only the other (bit), and PostgreSQL can't group by columns of both kinds at once. An equality
# operator outside pg_catalog doesn't count: the algebra writes `=`, which our sessions look up in pg_catalog alone, and
# for citext they would find that of text.
_COMPARABLE = """
    WITH RECURSIVE part(root, typid) AS (
        SELECT t, t FROM unnest(%s::oid[]) AS t
        UNION
        SELECT part.root, inside.typid
        FROM part
        JOIN pg_catalog.pg_type t ON t.oid = part.typid
        CROSS JOIN LATERAL (
            SELECT t.typbasetype WHERE t.typtype = 'd'
            UNION ALL
            SELECT t.typelem WHERE t.typsubscript = 'pg_catalog.array_subscript_handler'::regproc
            UNION ALL
            SELECT a.atttypid FROM pg_catalog.pg_attribute a
            WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
        ) AS inside(typid)
    )
    SELECT part.root::bigint
    FROM part
    JOIN pg_catalog.pg_type t ON t.oid = part.typid
    GROUP BY part.root
    HAVING bool_and(
        t.typtype IN ('d', 'c', 'e', 'r', 'm')
        OR t.typsubscript = 'pg_catalog.array_subscript_handler'::regproc
        OR EXISTS (
            SELECT FROM pg_catalog.pg_opclass o
            JOIN pg_catalog.pg_am am ON am.oid = o.opcmethod AND am.amname = 'btree'
            WHERE o.opcdefault AND (
                o.opcintype = t.oid
                OR EXISTS (
                    SELECT FROM pg_catalog.pg_cast k
                    WHERE k.castsource = t.oid AND k.casttarget = o.opcintype
                      AND k.castmethod = 'b' AND k.castcontext = 'i'))
        ) AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_opclass o
            JOIN pg_catalog.pg_am am ON am.oid = o.opcmethod AND am.amname IN ('btree', 'hash')
            JOIN pg_catalog.pg_amop m ON m.amopfamily = o.opcfamily AND m.amoplefttype = o.opcintype
                AND m.amoprighttype = o.opcintype AND m.amopstrategy = CASE am.amname WHEN 'btree' THEN 3 ELSE 1 END
            JOIN pg_catalog.pg_operator q ON q.oid = m.amopopr
            WHERE o.opcdefault AND o.opcintype = t.oid AND q.oprnamespace <> 'pg_catalog'::regnamespace)
    )
"""


def types_with_equality(conn: Connection, typids: Iterable[int]) -> set[int]:
    """Those of `typids` whose values can stand in GROUP BY, DISTINCT and EXCEPT."""
    return {row[0] for row in conn.execute(_COMPARABLE, [list(typids)])}
