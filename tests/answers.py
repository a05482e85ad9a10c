"""What PostgreSQL answers, where the test knows that there is an answer."""

from __future__ import annotations

from typing import TypeVar

import psycopg

_Row = TypeVar("_Row")


def only(cursor: psycopg.Cursor[_Row]) -> _Row:
    """The row of a query that yields one."""
    row = cursor.fetchone()
    assert row is not None, "no row"
    return row
