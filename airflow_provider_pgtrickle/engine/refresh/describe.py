"""What PostgreSQL knows of a statement before it runs: its columns' types, a source's pages."""

from __future__ import annotations

from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.search_path import read_only
from airflow_provider_pgtrickle.engine.dvm.schema import Source
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection


def columns(conn: Connection, statement: str) -> list[tuple[str, str]]:
    """Names and types, modifiers included, of a SELECT's columns. The statement is planned, not run."""
    with conn.cursor() as cursor, read_only(conn):
        cursor.execute(sql.SQL("SELECT * FROM ({}) AS d LIMIT 0").format(sql.SQL(statement)))
        result = cursor.pgresult
        assert result is not None
        found = [((result.fname(n) or b"").decode(), result.ftype(n), result.fmod(n)) for n in range(result.nfields)]
        rows = cursor.execute(
            "SELECT pg_catalog.format_type(t, m) FROM unnest(%s::oid[], %s::int[]) WITH ORDINALITY AS x(t, m, n)"
            " ORDER BY n",
            ([t for _, t, _ in found], [m for _, _, m in found]),
        ).fetchall()
    return [(name, type_name) for (name, _, _), (type_name,) in zip(found, rows, strict=True)]


def extent(conn: Connection, source: Source) -> tuple[str, str, int, float]:
    """(schema, table, pages, rows) as the last ANALYZE left them; a partitioned table has none of its own."""
    row = conn.execute(
        "SELECT relpages, reltuples FROM pg_catalog.pg_class WHERE oid = %s AND relkind = 'r'", (source.relid,)
    ).fetchone()
    pages, rows = row if row is not None else (0, 0.0)
    return source.schema, source.name, int(pages), float(rows)
