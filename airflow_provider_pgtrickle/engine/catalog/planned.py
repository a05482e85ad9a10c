"""What PostgreSQL's planner thinks of a statement, which isn't run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg.rows import scalar_row

if TYPE_CHECKING:
    import psycopg


def planned(conn: psycopg.Connection[Any], statement: str) -> dict[str, Any]:
    """The plan's top node as EXPLAIN tells it: its `Total Cost`, its `Plan Rows`, and its `Plans` below."""
    with conn.cursor(row_factory=scalar_row) as cursor:
        # A query may hold a percent sign, and has no parameters.
        told = cursor.execute(b"EXPLAIN (FORMAT JSON) " + statement.encode()).fetchone()
    assert told is not None
    return dict(told[0]["Plan"])
