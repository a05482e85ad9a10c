"""The change buffer of a stream table: its refreshes write there for the stream tables that read it."""

from __future__ import annotations

from psycopg import Connection, sql

from airflow_provider_pgtrickle.engine.capture.buffer import (
    create_buffer,
    definition,
    described,
    has_persistence,
    keep_persistence,
    may_be_unlogged,
    present_columns,
)
from airflow_provider_pgtrickle.engine.capture.layout import captured_columns
from airflow_provider_pgtrickle.engine.capture.maintained import end_readers
from airflow_provider_pgtrickle.engine.catalog.faults import translating
from airflow_provider_pgtrickle.engine.catalog.records import StreamTable
from airflow_provider_pgtrickle.engine.dvm.buffers import CHANGES, buffer_name
from airflow_provider_pgtrickle.engine.errors import RefreshError
from airflow_provider_pgtrickle.engine.names import QualifiedName

_READERS = """
    SELECT array_agg(DISTINCT d.pgt_id) FROM pgtrickle.pgt_dependencies d WHERE d.source_pgt_id = %s
"""

_OWN = {"change_id", "xid", "lsn", "action", "pk_hash"}


def st_buffer_name(pgt_id: int) -> QualifiedName:
    return QualifiedName(CHANGES, buffer_name(f"pgt_{pgt_id}"))


def ensure_st_buffer(conn: Connection, st: StreamTable, reader: int | None = None) -> QualifiedName:
    """Make sure of a buffer that fits the stream table's visible columns; one that fits keeps its rows.

    `reader`: a stream table that begins to read it.
    """
    if st.relid is None:
        raise RefreshError("It has no table yet, so nothing can follow its changes", stream_table=str(st.qualified))
    buffer = st_buffer_name(st.id)
    with translating(str(st.qualified)), conn.transaction():
        columns = captured_columns(conn, st.relid, [c.name for c in st.visible])
        wanted = {c.new: described(conn, c) for c in columns}
        present = present_columns(conn, buffer)
        fits = {name: kind for name, kind in present.items() if name not in _OWN} == wanted
        row = conn.execute(_READERS, [st.id]).fetchone()
        readers = {*(row[0] or () if row else ()), *([reader] if reader is not None else ())}
        unlogged = may_be_unlogged(conn, readers)
        if present and fits and has_persistence(conn, buffer, unlogged=unlogged):
            return buffer
        # The readers are rebuilt because the columns changed, so nobody reads these rows any more.
        drop_st_buffer(conn, st.id)
        create_buffer(conn, buffer, unlogged=unlogged)
        additions: list[sql.Composable] = [sql.SQL("ADD COLUMN pk_hash bigint NOT NULL")]
        additions += [
            sql.SQL("ADD COLUMN {} {}").format(sql.Identifier(column.new), definition(column)) for column in columns
        ]
        conn.execute(sql.SQL("ALTER TABLE {} {}").format(buffer.sql, sql.SQL(", ").join(additions)))
        keep_persistence(conn, buffer, unlogged=unlogged, mark={"pk_hash": 0})
    return buffer


def drop_st_buffer(conn: Connection, pgt_id: int) -> None:
    """Drop the buffer, and with it what a restored database has left of functions that take its rows.

    Tables that writers maintain from these rows end first.
    """
    end_readers(conn, pgt_id)
    conn.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(st_buffer_name(pgt_id).sql))
