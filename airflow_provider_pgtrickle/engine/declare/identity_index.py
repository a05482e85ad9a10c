"""The index on the columns that identify a keyed stream table's rows.

A difference looks stored rows up by it. If it is unique, PostgreSQL also checks with it that each identity has one row;
otherwise a query checks that.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from airflow_provider_pgtrickle.engine.declare import marked_index
from airflow_provider_pgtrickle.engine.names import QualifiedName

#: The index's comment, which tells it from users' own.
MARK = "pgtrickle: identity of the rows"

#: PostgreSQL allows no more columns in an index.
_MOST_COLUMNS = 32


def ensure(conn: psycopg.Connection, table: QualifiedName, identity: Sequence[str], *, keyed: bool) -> bool:
    """Make sure of the index if the identity is a key that an index can hold, and drop others of its kind.

    The result is whether the index is unique; `UniqueViolation` says that an identity has two rows.
    """
    wanted = tuple(identity) if keyed and 0 < len(identity) <= _MOST_COLUMNS else ()
    there = marked_index.marked(conn, table, MARK)
    if [index.columns for index in there] == ([wanted] if wanted else []):
        return any(index.unique for index in there)
    marked_index.drop(conn, table, there)
    if not wanted:
        return False
    if marked_index.create(conn, table, wanted, MARK, unique=True):
        return True
    # A partitioned table takes a unique index only with its partition key in it.
    marked_index.create(conn, table, wanted, MARK)
    return False


def proof(conn: psycopg.Connection, table: QualifiedName) -> str | None:
    """The name of the index by which PostgreSQL refuses a second row of an identity, if the table has it."""
    return next((index.bare_name for index in marked_index.marked(conn, table, MARK) if index.unique), None)


def drop(conn: psycopg.Connection, table: QualifiedName) -> bool:
    """Drop the index; whether there was one."""
    return marked_index.drop(conn, table, marked_index.marked(conn, table, MARK))
