"""Indexes by which a query's delta would look rows up, and that its sources lack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.dvm.schema import Source

_COLUMNS = """
SELECT (SELECT array_agg(a.attname::text ORDER BY k.ordinal)
          FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, ordinal)
          LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum > 0
         WHERE k.ordinal <= i.indnkeyatts)
FROM pg_catalog.pg_index i
WHERE i.indrelid = %s AND i.indisvalid AND i.indpred IS NULL
"""


def missing(
    conn: psycopg.Connection[Any],
    sources: Mapping[str, Source],
    wanted: Iterable[tuple[str, tuple[str, ...]]],
    ranges: Iterable[tuple[str, tuple[str, ...], str]] = (),
) -> list[str]:
    """A CREATE INDEX statement for each lookup whose columns no index of the source begins with.

    Where rows are looked up from a place on, the index has to have all of these columns, and the place's next.
    """
    statements = []
    for key, columns in sorted(wanted):
        if (source := sources[key]).kind == "TABLE" and not any(index[0] in columns for index in _of(conn, source)):
            statements.append(_statement(source, columns))
    for key, columns, place in sorted(ranges):
        begun, source = len(columns), sources[key]
        serving = (i for i in _of(conn, source) if {*i[:begun]} == {*columns} and i[begun : begun + 1] == [place])
        if source.kind == "TABLE" and next(serving, None) is None:
            statements.append(_statement(source, (*columns, place)))
    return statements


def _of(conn: psycopg.Connection[Any], source: Source) -> list[list[str | None]]:
    """The columns of each index of a source; None stands for an expression."""
    return [columns for (columns,) in conn.execute(_COLUMNS, (source.relid,)).fetchall()]


def _statement(source: Source, columns: Iterable[str]) -> str:
    statement = sql.SQL("CREATE INDEX ON {} ({})").format(
        sql.Identifier(source.schema, source.name), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    return statement.as_string(None)
