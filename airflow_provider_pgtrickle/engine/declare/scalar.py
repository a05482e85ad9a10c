"""The one value of a statement that always has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

import psycopg


def scalar(conn: psycopg.Connection, statement: LiteralString, parameters: Sequence[Any] = ()) -> Any:
    """First column of the first row."""
    row = conn.execute(statement, parameters).fetchone()
    assert row is not None
    return row[0]
