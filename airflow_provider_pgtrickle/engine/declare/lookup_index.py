"""Indexes by which a recursion's change looks its stored rows up: by what its step joins."""

from __future__ import annotations

from collections.abc import Iterable

import psycopg

from airflow_provider_pgtrickle.engine.declare import marked_index
from airflow_provider_pgtrickle.engine.names import QualifiedName

#: The indexes' comment, which tells them from the user's own.
MARK = "pgtrickle: rows are looked up by it"


def ensure(conn: psycopg.Connection, table: QualifiedName, lookups: Iterable[tuple[str, ...]]) -> None:
    """Have an index for each look-up, and no others of their kind."""
    wanted = {columns for columns in lookups if columns}
    there = marked_index.marked(conn, table, MARK)
    marked_index.drop(conn, table, [index for index in there if index.columns not in wanted])
    for columns in sorted(wanted - {index.columns for index in there}):
        marked_index.create(conn, table, columns, MARK)


def drop(conn: psycopg.Connection, table: QualifiedName) -> bool:
    """Give the indexes up; whether there was one."""
    return marked_index.drop(conn, table, marked_index.marked(conn, table, MARK))
