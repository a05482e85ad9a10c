"""Indexes on the columns that a recursion's step joins, by which its delta looks up stored rows."""

from __future__ import annotations

from collections.abc import Iterable

import psycopg

from airflow_provider_pgtrickle.engine.declare import marked_index
from airflow_provider_pgtrickle.engine.names import QualifiedName

#: The indexes' comment, which tells them from users' own.
MARK = "pgtrickle: rows are looked up by it"


def ensure(conn: psycopg.Connection, table: QualifiedName, lookups: Iterable[tuple[str, ...]]) -> None:
    """Make sure of an index for each lookup, and drop others of their kind."""
    wanted = {columns for columns in lookups if columns}
    there = marked_index.marked(conn, table, MARK)
    marked_index.drop(conn, table, [index for index in there if index.columns not in wanted])
    for columns in sorted(wanted - {index.columns for index in there}):
        marked_index.create(conn, table, columns, MARK)


def drop(conn: psycopg.Connection, table: QualifiedName) -> bool:
    """Drop the indexes; whether there was one."""
    return marked_index.drop(conn, table, marked_index.marked(conn, table, MARK))
