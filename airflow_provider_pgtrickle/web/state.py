"""What the page shows of a database. It is read-only and short, and shows nothing of the connection itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row, tuple_row

from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.catalog.planned import planned
from airflow_provider_pgtrickle.engine.declare import dependencies
from airflow_provider_pgtrickle.engine.dvm.explain import Explanation, readable
from airflow_provider_pgtrickle.engine.errors import UnknownStreamTable
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.hooks.pgtrickle import PgTrickleHook

#: Seconds for one statement and for connecting, so that the page and the database don't block each other.
LONGEST_STATEMENT = 10
_CONNECT = 5

# A warm table takes twice its time; one that is refreshed on demand, or not at all, has no target and is never late.
# Options that not every release of the catalog has are read through JSON, where a missing column is NULL.
_TABLES: LiteralString = """
SELECT st.pgt_id, st.pgt_schema || '.' || st.pgt_name AS name,
       pg_catalog.format('%I.%I', st.pgt_schema, st.pgt_name) AS quoted, st.status, st.refresh_mode, st.schedule,
       coalesce(w.tier, st.tier) AS effective_tier,
       extract(epoch FROM CASE coalesce(w.tier, st.tier) WHEN 'hot' THEN 1 WHEN 'warm' THEN 2 END
                          * coalesce(st.effective_schedule, e.every))::float8 AS target_seconds,
       st.is_populated, st.is_live, st.tier, to_jsonb(st) ->> 'placement' AS placement, a.data_timestamp,
       CASE WHEN a.data_timestamp IS NOT NULL
            THEN greatest(extract(epoch FROM now() - a.data_timestamp)::float8, 0) END AS staleness_seconds,
       st.last_refresh_at, st.consecutive_errors, st.last_error, st.is_gated, st.gated_reason,
       st.needs_reinit, st.reinit_reason, st.differentiable, st.refusal,
       h.action AS last_action, h.status AS last_status, h.duration_ms AS last_duration_ms,
       h.fallback_reason AS last_reason, h.initiated_by AS last_initiated_by,
       EXISTS (SELECT FROM pgtrickle.pgt_refresh_history r
               WHERE r.pgt_id = st.pgt_id AND r.status = 'RUNNING') AS is_running
FROM pgtrickle.pgt_stream_tables st
JOIN pgtrickle.pgt_data_timestamps a USING (pgt_id)
LEFT JOIN pgtrickle.pgt_effective_schedules e USING (pgt_id)
LEFT JOIN pgtrickle.pgt_tiers w USING (pgt_id)
LEFT JOIN LATERAL (
    SELECT action, status, duration_ms, fallback_reason, initiated_by FROM pgtrickle.pgt_refresh_history
    WHERE pgt_id = st.pgt_id AND status <> 'RUNNING'
    ORDER BY refresh_id DESC
    LIMIT 1
) h ON true
WHERE NOT st.is_hidden
ORDER BY 2
"""

_READS: LiteralString = """
SELECT DISTINCT r.pgt_id, coalesce(s.pgt_schema, r.source_schema) || '.' || coalesce(s.pgt_name, r.source_name)
           AS source,
       r.source_type, r.cdc_mode, s.pgt_id AS source_pgt_id
FROM pgtrickle.pgt_reads r LEFT JOIN pgtrickle.pgt_stream_tables s ON s.pgt_id = r.source_pgt_id
ORDER BY 2, 1
"""

_PENDING: LiteralString = """
SELECT stream_table, source_table, pending_rows, buffer_bytes FROM pgtrickle.change_buffer_sizes()
"""

_GROWTH: LiteralString = """
SELECT source, since, samples, low_before, low_since, rows, bytes, grows FROM pgtrickle.pgt_buffer_growth
ORDER BY grows DESC, low_since - low_before DESC NULLS LAST, source
"""

# Ids follow time, and the history has no index on time: the last refreshes are found by their ids.
_COSTS: LiteralString = """
WITH recent AS (
    SELECT *, action IN ('FULL', 'REINITIALIZE') AND fallback_reason IS NOT NULL
              AND fallback_reason NOT IN ('never_populated', 'forced', 'predicted_cheaper', 'query_altered',
                                          'content_differs') AS is_avoidable
    FROM pgtrickle.pgt_refresh_history
    WHERE refresh_id > (SELECT max(refresh_id) - 50000 FROM pgtrickle.pgt_refresh_history)
      AND start_time > now() - make_interval(hours => %(hours)s)
)
SELECT st.pgt_schema || '.' || st.pgt_name AS name, count(*) FILTER (WHERE h.status = 'COMPLETED') AS refreshes,
       coalesce(sum(h.duration_ms), 0) AS total_ms, max(h.duration_ms) AS longest_ms,
       coalesce(sum(h.rows_read), 0)::bigint AS rows_read,
       count(*) FILTER (WHERE h.status = 'FAILED') AS failures,
       (array_agg(h.error_message ORDER BY h.refresh_id DESC) FILTER (WHERE h.status = 'FAILED'))[1] AS failure,
       max(h.end_time) FILTER (WHERE h.status = 'FAILED') AS failed_at,
       count(*) FILTER (WHERE h.is_avoidable) AS avoidable,
       coalesce(sum(h.duration_ms) FILTER (WHERE h.is_avoidable), 0) AS avoidable_ms,
       (array_agg(h.fallback_reason ORDER BY h.refresh_id DESC) FILTER (WHERE h.is_avoidable))[1] AS avoidable_reason,
       avg(h.duration_ms) FILTER (WHERE h.action = 'DIFFERENTIAL') AS differential_ms,
       avg(h.source_changes) FILTER (WHERE h.status = 'COMPLETED' AND h.source_changes > 0) AS usual_changes
FROM recent h JOIN pgtrickle.pgt_stream_tables st USING (pgt_id)
WHERE NOT st.is_hidden
GROUP BY st.pgt_id
ORDER BY 3 DESC
"""

_TABLE: LiteralString = """
SELECT st.pgt_id, st.pgt_schema || '.' || st.pgt_name AS name,
       pg_catalog.format('%%I.%%I', st.pgt_schema, st.pgt_name) AS quoted,
       pg_catalog.obj_description(st.pgt_relid, 'pg_class') AS description,
       st.original_query, st.refusal, st.status, st.refresh_mode, st.schedule, st.differentiable,
       coalesce(w.tier, st.tier) AS effective_tier,
       extract(epoch FROM CASE coalesce(w.tier, st.tier) WHEN 'hot' THEN 1 WHEN 'warm' THEN 2 END
                          * coalesce(st.effective_schedule, e.every))::float8 AS target_seconds,
       st.tier,
       st.partition_by || coalesce(', every ' || (to_jsonb(st) ->> 'partition_every'), '')
           || coalesce(', keeping ' || (to_jsonb(st) ->> 'keep'), '') AS partition_by,
       st.append_only, st.verify_every, st.requested_cdc_mode, st.diamond_consistency,
       to_jsonb(st) ->> 'placement' AS placement, to_jsonb(st) ->> 'unit' AS unit,
       to_jsonb(st) ->> 'append_only_ended' AS append_only_ended,
       to_jsonb(st) ->> 'float_sums' AS float_sums, to_jsonb(st) ->> 'timezone' AS timezone,
       to_jsonb(st) ->> 'frozen_before' AS frozen_before, to_jsonb(st) ->> 'frozen_breach' AS frozen_breach,
       st.declared_by,
       st.is_populated, st.is_live, a.data_timestamp,
       CASE WHEN a.data_timestamp IS NOT NULL
            THEN greatest(extract(epoch FROM now() - a.data_timestamp)::float8, 0) END AS staleness_seconds,
       st.last_refresh_at, st.consecutive_errors, st.last_error, st.is_gated, st.gated_reason,
       st.needs_reinit, st.reinit_reason, st.created_at,
       size.bytes, size.rows AS estimated_rows, v.status AS verified, v.ended_at AS verified_at,
       EXISTS (SELECT FROM pgtrickle.pgt_refresh_history r
               WHERE r.pgt_id = st.pgt_id AND r.status = 'RUNNING') AS is_running
FROM pgtrickle.pgt_stream_tables st
JOIN pgtrickle.pgt_data_timestamps a USING (pgt_id)
CROSS JOIN LATERAL (
    SELECT sum(pg_catalog.pg_total_relation_size(c.oid))::bigint AS bytes,
           CASE WHEN bool_and(c.reltuples >= 0) THEN sum(c.reltuples)::bigint END AS rows
    FROM pg_catalog.pg_class c
    WHERE c.oid = st.pgt_relid AND c.relkind <> 'p'
       OR c.oid IN (SELECT p.relid FROM pg_catalog.pg_partition_tree(st.pgt_relid) p WHERE p.isleaf)
) size
LEFT JOIN LATERAL pgtrickle.pgt_tiers_of(ARRAY[st.pgt_id]) w ON true
LEFT JOIN LATERAL (
    SELECT every FROM pgtrickle.pgt_effective_schedules s
    WHERE s.pgt_id = st.pgt_id AND st.effective_schedule IS NULL
) e ON true
LEFT JOIN LATERAL (
    SELECT status, ended_at FROM pgtrickle.pgt_verifications
    WHERE pgt_id = st.pgt_id ORDER BY verification_id DESC LIMIT 1
) v ON true
WHERE st.pgt_schema = %s AND st.pgt_name = %s
"""

_SOURCES: LiteralString = """
SELECT s.source_table AS name, s.source_type, s.cdc_mode, s.columns_used, t.pgt_id IS NOT NULL AS is_stream_table,
       CASE WHEN t.pgt_id IS NOT NULL THEN pg_catalog.format('%%I.%%I', t.pgt_schema, t.pgt_name) END AS quoted,
       CASE WHEN c.reltuples >= 0 THEN c.reltuples::bigint END AS estimated_rows
FROM pgtrickle.list_sources(%s) s
LEFT JOIN pgtrickle.pgt_stream_tables t ON t.pgt_relid = s.source_oid AND NOT t.is_hidden
LEFT JOIN pg_catalog.pg_class c ON c.oid = s.source_oid
ORDER BY 1
"""

_READERS: LiteralString = """
SELECT DISTINCT t.pgt_schema || '.' || t.pgt_name AS name,
       pg_catalog.format('%%I.%%I', t.pgt_schema, t.pgt_name) AS quoted
FROM pgtrickle.pgt_reads r JOIN pgtrickle.pgt_stream_tables t USING (pgt_id)
WHERE r.source_pgt_id = %s
ORDER BY 1
"""

_HISTORY: LiteralString = """
SELECT refresh_id, start_time, end_time, action, status, fallback_reason, initiated_by, run_token, unit, rows_inserted,
       rows_updated, rows_deleted, source_changes, rows_read, reads, spark_jobs, duration_ms, phases, data_timestamp,
       error_message, plan IS NOT NULL AS has_plan, h.way, h.candidates, h.actual_ms
FROM pgtrickle.pgt_refresh_history h
WHERE pgt_id = %s
ORDER BY refresh_id DESC
LIMIT %s
"""

# A server that crashed has no samples, and the page still has the table.
_WRITERS: LiteralString = """
SELECT source, count(*) AS statements, avg(rows)::float8 AS mean_rows, avg(duration_ms) AS mean_ms,
       max(duration_ms) AS longest_ms, max(at) AS last_at
FROM pgtrickle.pgt_immediate_stats
WHERE pgt_id = %s
GROUP BY source
ORDER BY source
"""


def count(connection_id: str) -> int | None:
    """How many stream tables there are; None without a catalog."""
    with _session(connection_id) as session:
        if not _is_installed(session):
            return None
        row = session.execute("SELECT count(*) AS n FROM pgtrickle.pgt_stream_tables WHERE NOT is_hidden").fetchone()
    assert row is not None
    return int(row["n"])


def stream_tables(connection_id: str) -> list[dict[str, Any]]:
    with _session(connection_id) as session:
        return session.execute(_TABLES).fetchall() if _is_installed(session) else []


def graph(connection_id: str) -> dict[str, Any]:
    """All stream tables, what each reads, and which are refreshed together."""
    with _session(connection_id) as session:
        if not _is_installed(session):
            return {"installed": False, "tables": [], "reads": [], "units": [], "owners": {}}
        tables = session.execute(_TABLES).fetchall()
        reads = session.execute(_READS).fetchall()
        owners = _owners(session)
        units = [unit for unit in dependencies.graph(_in_tuples(session)).units() if len(unit) > 1]
    names = {table["pgt_id"]: table["name"] for table in tables}
    edges = [{**read, "reader": names[read["pgt_id"]]} for read in reads if read["pgt_id"] in names]
    return {"installed": True, "tables": tables, "reads": edges, "units": units, "owners": owners}


def pending(connection_id: str) -> list[dict[str, Any]]:
    """Captured changes that no refresh has taken yet, by reader and source."""
    with _session(connection_id) as session:
        return session.execute(_PENDING).fetchall() if _is_installed(session) else []


def growth(connection_id: str) -> list[dict[str, Any]]:
    """How much stood in each buffer over the last day, those that grow first."""
    with _session(connection_id) as session:
        return session.execute(_GROWTH).fetchall() if _has(session, "pgtrickle.pgt_buffer_growth") else []


def costs(connection_id: str, hours: int) -> list[dict[str, Any]]:
    """What refreshes of the last hours took, by stream table, the dearest first."""
    with _session(connection_id) as session:
        return session.execute(_COSTS, {"hours": hours}).fetchall() if _is_installed(session) else []


def stream_table(connection_id: str, name: str, limit: int) -> dict[str, Any]:
    """One stream table with its sources, its readers and its last refreshes."""
    qualified = QualifiedName.parse(name)
    with _session(connection_id) as session:
        table = session.execute(_TABLE, [qualified.schema, qualified.name]).fetchone()
        if table is None:
            raise UnknownStreamTable(f"There is no stream table named {qualified}")
        pgt_id = table["pgt_id"]
        sources = session.execute(_SOURCES, [qualified.quoted]).fetchall()
        readers = session.execute(_READERS, [pgt_id]).fetchall()
        history = session.execute(_HISTORY, [pgt_id, limit]).fetchall()
        writers = session.execute(_WRITERS, [pgt_id]).fetchall() if table["refresh_mode"] == "IMMEDIATE" else []
        owner = _owners(session).get(table["name"])
    return {
        **table,
        "sources": sources,
        "readers": readers,
        "history": history,
        "writers": writers,
        "owner": owner,
    }


def refresh_plan(connection_id: str, name: str, refresh_id: int) -> str | None:
    """What one refresh had computed, as the history keeps it."""
    qualified = QualifiedName.parse(name)
    with _session(connection_id) as session:
        row = session.execute(
            "SELECT h.plan FROM pgtrickle.pgt_refresh_history h JOIN pgtrickle.pgt_stream_tables st USING (pgt_id)"
            " WHERE st.pgt_schema = %s AND st.pgt_name = %s AND h.refresh_id = %s",
            [qualified.schema, qualified.name, refresh_id],
        ).fetchone()
    if row is None:
        raise UnknownStreamTable(f"{qualified} has no refresh {refresh_id}")
    return None if row["plan"] is None else str(row["plan"])


def explanation(connection_id: str, name: str) -> str:
    """The explanation as `pgtrickle explain` prints it."""
    return str(_explained(PgTrickleHook(postgres_conn_id=connection_id), name))


def explain(connection_id: str, name: str) -> dict[str, Any]:
    """The same in its parts, with what PostgreSQL's planner thinks of the whole query."""
    explained = _explained(PgTrickleHook(postgres_conn_id=connection_id), name)
    # The explanation has refused code of others that wasn't accepted, which planning would run.
    return {**_parts(explained), "planned": _planned(connection_id, explained.full_sql)}


def _explained(hook: PgTrickleHook, name: str) -> Explanation:
    with hook.get_client() as client:
        client.database = database_of(hook)
        return client.explain_st(QualifiedName.parse(name).quoted)


def _parts(explained: Explanation) -> dict[str, Any]:
    statements = [{"title": "The whole content", "sql": readable(explained.full_sql)}]
    if explained.delta_sql is not None:
        statements.append({"title": "The change, if every source has changed", "sql": readable(explained.delta_sql)})
    statements += [{"title": f"Read: {what}", "sql": readable(text)} for what, text in explained.leaves]
    return {
        "differentiable": explained.differentiable,
        "reason": explained.reason,
        "sink": explained.sink,
        "because": explained.because,
        "identity": list(explained.identity),
        "keyed": explained.keyed,
        "hidden": list(explained.hidden),
        "operator_tree": explained.operator_tree,
        "statements": statements,
        "missing_indexes": [f"{statement};" for statement in explained.missing_indexes],
        "writers": [str(writer) for writer in explained.writers],
        # Of tables whose changes are computed where that is cheapest.
        "ways": [str(way) for way in getattr(explained, "ways", ())],
        "parts": [{"name": name, "query": readable(query), **_parts(part)} for name, query, part in explained.parts],
    }


def _planned(connection_id: str, statement: str) -> dict[str, Any] | None:
    """The planner's tree with its costs; None where it can't plan the statement by itself."""
    try:
        with _session(connection_id) as session:
            return _node(planned(session, statement))
    except psycopg.Error:
        return None


def _node(plan: dict[str, Any]) -> dict[str, Any]:
    relation = plan.get("Relation Name")
    return {
        "kind": plan["Node Type"],
        "relation": relation and (f"{plan['Schema']}.{relation}" if "Schema" in plan else relation),
        "cost": plan["Total Cost"],
        "rows": plan["Plan Rows"],
        "inputs": [_node(child) for child in plan.get("Plans", ())],
    }


def _owners(session: psycopg.Connection[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Which file declares each table that one declares."""
    rows = session.execute(
        "SELECT st.pgt_schema || '.' || st.pgt_name AS name, o.bundle, o.file, o.graph, o.removed_at"
        " FROM pgtrickle.pgt_owners o JOIN pgtrickle.pgt_stream_tables st USING (pgt_id)"
    ).fetchall()
    return {row.pop("name"): row for row in rows}


def _in_tuples(session: psycopg.Connection[dict[str, Any]]) -> psycopg.Connection[Any]:
    """The session as the rest of the package takes it."""
    session.row_factory = tuple_row  # type: ignore[assignment]
    return session


def _is_installed(session: psycopg.Connection[dict[str, Any]]) -> bool:
    return _has(session, "pgtrickle.pgt_stream_tables")


def _has(session: psycopg.Connection[dict[str, Any]], relation: str) -> bool:
    row = session.execute("SELECT pg_catalog.to_regclass(%s) IS NOT NULL AS found", [relation]).fetchone()
    return row is not None and bool(row["found"])


def database_of(hook: PgTrickleHook) -> Database:
    """The database, each of whose statements ends before long."""
    patience = {"connect_timeout": _CONNECT, "keepalives_idle": _CONNECT, "tcp_user_timeout": LONGEST_STATEMENT * 1000}
    return Database(make_conninfo(hook.dsn, **patience), statement_seconds=LONGEST_STATEMENT)


@contextmanager
def _session(connection_id: str) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    database = database_of(PgTrickleHook(postgres_conn_id=connection_id))
    with database.connect(autocommit=True, application_name="pgtrickle page") as session:
        session.execute("SET default_transaction_read_only = on")
        session.row_factory = dict_row  # type: ignore[assignment]
        yield session  # type: ignore[misc]
