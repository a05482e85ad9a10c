"""Tables that writers maintain, as far as they depend on another stream table's change buffer.

Functions take the rows of that buffer, and go with it. So their tables end before it, and with them all that are bound
to them by a source: their functions call each other.
"""

from __future__ import annotations

from collections.abc import Iterable

from psycopg import Connection, sql

from airflow_provider_pgtrickle.engine.capture.layout import lock_members
from airflow_provider_pgtrickle.engine.capture.tracking import track
from airflow_provider_pgtrickle.engine.catalog.relations import read_sources
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES
from airflow_provider_pgtrickle.engine.names import QualifiedName

_BOUND = """
    WITH RECURSIVE shared(pgt_id, key, is_read) AS (
        SELECT d.pgt_id, coalesce('pgt_' || d.source_pgt_id, d.source_relid::text), true
          FROM pgtrickle.pgt_dependencies d JOIN pgtrickle.pgt_stream_tables t USING (pgt_id) WHERE t.is_live
        UNION ALL
        SELECT t.pgt_id, 'pgt_' || t.pgt_id, false FROM pgtrickle.pgt_stream_tables t WHERE t.is_live
    ), bound(pgt_id) AS (
        SELECT pgt_id FROM shared WHERE key = %(key)s AND is_read
        UNION
        SELECT other.pgt_id FROM bound JOIN shared mine USING (pgt_id) JOIN shared other USING (key)
    )
    SELECT pgt_id FROM bound ORDER BY pgt_id
"""

_TABLES = """
    SELECT source_relid::bigint, min(pgt_id), array_agg(c) FILTER (WHERE c IS NOT NULL)
      FROM pgtrickle.pgt_dependencies LEFT JOIN LATERAL unnest(columns_used) AS c ON true
     WHERE pgt_id = ANY(%s) AND source_pgt_id IS NULL GROUP BY 1 ORDER BY 1
"""


def end_readers(conn: Connection, pgt_id: int) -> None:
    """Let writers no longer maintain what reads this stream table; the next refresh computes it anew."""
    ids = [found for (found,) in conn.execute(_BOUND, {"key": f"pgt_{pgt_id}"})]
    if not ids:
        return
    read = conn.execute(_TABLES, [ids]).fetchall()
    sources = read_sources(conn, [relid for relid, _, _ in read])
    for relid in sorted(sources):
        lock_members(conn, QualifiedName(sources[relid].schema, sources[relid].name))
    conn.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET is_live = false, frontier = NULL WHERE pgt_id = ANY(%s)", (ids,)
    )
    conn.execute("DELETE FROM pgtrickle.pgt_immediate WHERE pgt_id = ANY(%s)", (ids,))
    erase_sources(conn, [*map(str, sources), *(f"pgt_{found}" for found in (pgt_id, *ids))])
    for found in ids:
        erase(conn, found)
    for relid, reader, columns in read:
        if relid in sources:
            track(conn, sources[relid], columns or (), reader)


def erase_sources(conn: Connection, keys: Iterable[str]) -> None:
    """Drop the functions of sources that no live table reads, where they are there, and the triggers that call them."""
    for name in (f"{kind}_{key}" for key in keys for kind in ("immediate", "begin", "hand_on")):
        conn.execute(sql.SQL("DROP FUNCTION IF EXISTS {} CASCADE").format(sql.Identifier(CHANGES, name)))


def erase(conn: Connection, pgt_id: int) -> None:
    """Drop the function that maintains the table and the type of its difference, where they are there."""
    conn.execute(sql.SQL("DROP FUNCTION IF EXISTS {}").format(sql.Identifier(CHANGES, f"maintain_{pgt_id}")))
    conn.execute(sql.SQL("DROP TYPE IF EXISTS {}").format(sql.Identifier(CHANGES, f"difference_{pgt_id}")))
