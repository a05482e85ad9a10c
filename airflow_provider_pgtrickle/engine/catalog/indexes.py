"""Indexes by which a query's delta would look rows up, and that its sources lack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.dvm.schema import Source

_LEADING = """
SELECT a.attname
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid = %s AND i.indisvalid AND i.indpred IS NULL
"""


def missing(
    conn: psycopg.Connection[Any], sources: Mapping[str, Source], wanted: Iterable[tuple[str, tuple[str, ...]]]
) -> list[str]:
    """A CREATE INDEX statement for each lookup whose columns no index of the source begins with."""
    statements = []
    for key, columns in sorted(wanted):
        source = sources[key]
        if source.kind != "TABLE":
            continue
        led = {name for (name,) in conn.execute(_LEADING, (source.relid,)).fetchall()}
        if led.isdisjoint(columns):
            statement = sql.SQL("CREATE INDEX ON {} ({})").format(
                sql.Identifier(source.schema, source.name), sql.SQL(", ").join(map(sql.Identifier, columns))
            )
            statements.append(statement.as_string(None))
    return statements
