"""Remove changes that every reader has consumed, and staging tables that nobody will read."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from psycopg import Connection, sql

from airflow_provider_pgtrickle.engine.catalog.faults import translating
from airflow_provider_pgtrickle.engine.catalog.locks import try_lock_for_transaction
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES

# A reader without a frontier for the source has consumed nothing yet; a live one has consumed all that is committed.
_CONSUMERS = sql.SQL("""
    SELECT coalesce('changes_pgt_' || d.source_pgt_id, t.buffer),
           array_agg(DISTINCT CASE WHEN s.is_live THEN pg_catalog.pg_current_snapshot()::text
               ELSE s.frontier #>> ARRAY['sources',
                   coalesce('pgt_' || d.source_pgt_id, d.source_relid::text), 'snapshot'] END)
    FROM pgtrickle.pgt_dependencies d
    JOIN pgtrickle.pgt_stream_tables s USING (pgt_id)
    LEFT JOIN pgtrickle.pgt_change_tracking t ON t.source_relid = d.source_relid
    WHERE (d.source_pgt_id IS NOT NULL OR t.buffer IS NOT NULL) AND {wanted}
      AND to_regclass(format('pgtrickle_changes.%%I', coalesce('changes_pgt_' || d.source_pgt_id, t.buffer)))
          IS NOT NULL
    GROUP BY 1 ORDER BY 1
""")
_ALL = sql.SQL("true")
# Found by their indexes: a refresh cleans up after itself, however many other stream tables there are.
_SOME = sql.SQL("(d.source_pgt_id = ANY(%(stream_tables)s::bigint[]) OR d.source_relid = ANY(%(tables)s::oid[]))")

# A staging table's name holds the id of its stream table, whose refresh holds the advisory lock of that id.
_STAGES = r"""
    SELECT n.nspname, c.relname, (regexp_match(c.relname, 'stage_(\d+)_'))[1]::bigint
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE (n.nspname = 'pgtrickle_changes' AND c.relname ~ '^stage_\d+_'
           -- Of a role that only refreshes.
           OR n.nspname = current_user AND c.relname ~ '^__pgt_stage_\d+_')
      AND c.relkind = 'r' AND pg_catalog.pg_has_role(c.relowner, 'USAGE')
"""


def clean_buffers(conn: Connection, only: Collection[str] | None = None) -> dict[str, int]:
    """Delete changes that the frontiers of all readers see; the number per buffer.

    `only`: the sources whose buffers are meant, by their keys in a frontier; None: all. Snapshots have no order, so
    there is no oldest frontier: a row is deleted when *each* of them sees it.
    """
    deleted = {}
    statement = _CONSUMERS.format(wanted=_ALL if only is None else _SOME)
    stream_tables = [int(key.removeprefix("pgt_")) for key in only or () if key.startswith("pgt_")]
    tables = [int(key) for key in only or () if not key.startswith("pgt_")]
    with translating():
        for buffer, snapshots in conn.execute(statement, {"stream_tables": stream_tables, "tables": tables}).fetchall():
            deleted[buffer] = 0 if None in snapshots else _delete_seen(conn, buffer, snapshots)
    return deleted


def sample_buffers(conn: Connection) -> None:
    """Note how much stands in each buffer, unless that was noted lately: what grows is seen only over time."""
    with translating():
        conn.execute("SELECT pgtrickle.pgt_sample_buffers()")


def _delete_seen(conn: Connection, buffer: str, snapshots: Iterable[str]) -> int:
    # The upper bound on xid is for the index. It holds for every row that all snapshots see. What is older than all of
    # them is seen by all, and needn't be held against each. Transaction 0 is a mark.
    statement = sql.SQL("""
        DELETE FROM {} AS b
        WHERE b.xid > '0' AND b.xid < (SELECT min(pg_snapshot_xmax(s)) FROM unnest(%(snapshots)s::pg_snapshot[]) AS s)
          AND (b.xid < (SELECT min(pg_snapshot_xmin(s)) FROM unnest(%(snapshots)s::pg_snapshot[]) AS s)
               OR NOT EXISTS (SELECT FROM unnest(%(snapshots)s::pg_snapshot[]) AS s
                              WHERE NOT pg_visible_in_snapshot(b.xid, s)))
    """).format(sql.Identifier(CHANGES, buffer))
    return conn.execute(statement, {"snapshots": list(snapshots)}).rowcount


def drop_orphan_stages(conn: Connection) -> list[str]:
    """Drop the staging tables of refreshes that are over; their names."""
    dropped = []
    with translating():
        for schema, stage, pgt_id in conn.execute(_STAGES).fetchall():
            with conn.transaction():
                if try_lock_for_transaction(conn, pgt_id):
                    conn.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(schema, stage)))
                    dropped.append(stage)
    return dropped
