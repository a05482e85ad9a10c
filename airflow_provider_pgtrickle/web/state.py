"""What the page shows of a database. It is read-only and short, and shows nothing of the connection itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row

from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import UnknownStreamTable
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.hooks.pgtrickle import PgTrickleHook

#: Seconds for one statement and for connecting, so that the page and the database don't block each other.
LONGEST_STATEMENT = 10
_CONNECT = 5

_TABLES = """
SELECT st.pgt_schema || '.' || st.pgt_name AS name,
       pg_catalog.format('%I.%I', st.pgt_schema, st.pgt_name) AS quoted, st.status, st.refresh_mode, st.schedule,
       st.is_populated, a.data_timestamp,
       CASE WHEN a.data_timestamp IS NOT NULL
            THEN greatest(extract(epoch FROM now() - a.data_timestamp)::float8, 0) END AS staleness_seconds,
       st.last_refresh_at, st.consecutive_errors, st.last_error, st.is_gated, st.needs_reinit,
       h.action AS last_action, h.duration_ms AS last_duration_ms
FROM pgtrickle.pgt_stream_tables st
CROSS JOIN LATERAL (
    SELECT CASE WHEN st.is_live THEN pgtrickle.pgt_data_timestamp(st.pgt_id) ELSE st.data_timestamp END
        AS data_timestamp
) a
LEFT JOIN LATERAL (
    SELECT action, duration_ms FROM pgtrickle.pgt_refresh_history
    WHERE pgt_id = st.pgt_id AND status <> 'RUNNING'
    ORDER BY refresh_id DESC
    LIMIT 1
) h ON true
WHERE NOT st.is_hidden
ORDER BY 1
"""

_TABLE = """
SELECT pgt_id, pgt_schema || '.' || pgt_name AS name, original_query, refusal, status, refresh_mode, last_error
FROM pgtrickle.pgt_stream_tables
WHERE pgt_schema = %s AND pgt_name = %s
"""

_SOURCES = """
SELECT source_table AS name, source_type, cdc_mode, columns_used
FROM pgtrickle.list_sources(%s)
ORDER BY 1
"""

_HISTORY = """
SELECT refresh_id, start_time, end_time, action, status, fallback_reason, initiated_by, rows_inserted, rows_updated,
       rows_deleted, source_changes, rows_read, reads, spark_jobs, duration_ms, data_timestamp, error_message
FROM pgtrickle.pgt_refresh_history
WHERE pgt_id = %s
ORDER BY refresh_id DESC
LIMIT %s
"""


def stream_tables(connection_id: str) -> list[dict[str, Any]]:
    with _session(connection_id) as session:
        return session.execute(_TABLES).fetchall()


def stream_table(connection_id: str, name: str, limit: int) -> dict[str, Any]:
    """One stream table with its sources and its last refreshes."""
    qualified = QualifiedName.parse(name)
    with _session(connection_id) as session:
        table = session.execute(_TABLE, [qualified.schema, qualified.name]).fetchone()
        if table is None:
            raise UnknownStreamTable(f"There is no stream table named {qualified}")
        pgt_id = table.pop("pgt_id")
        sources = session.execute(_SOURCES, [qualified.quoted]).fetchall()
        history = session.execute(_HISTORY, [pgt_id, limit]).fetchall()
    return {**table, "sources": sources, "history": history}


def explanation(connection_id: str, name: str) -> str:
    """The explanation as `pgtrickle explain` prints it."""
    hook = PgTrickleHook(postgres_conn_id=connection_id)
    with hook.get_client() as client:
        client.database = _database(hook)
        return str(client.explain_st(QualifiedName.parse(name).quoted))


def _database(hook: PgTrickleHook) -> Database:
    patience = {"connect_timeout": _CONNECT, "keepalives_idle": _CONNECT, "tcp_user_timeout": LONGEST_STATEMENT * 1000}
    return Database(make_conninfo(hook.dsn, **patience), statement_seconds=LONGEST_STATEMENT)


@contextmanager
def _session(connection_id: str) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    database = _database(PgTrickleHook(postgres_conn_id=connection_id))
    with database.connect(autocommit=True, application_name="pgtrickle page") as session:
        session.execute("SET default_transaction_read_only = on")
        session.row_factory = dict_row  # type: ignore[assignment]
        yield session  # type: ignore[misc]
