"""A member's uncommitted change, as a later member of the same unit reads it.

Readers on other sessions can't see what this transaction wrote. A small change therefore travels in the SQL
text, as arrays; a large one stays a temporary table, and then its reader runs in the coordinator's session.
"""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.records import StorageColumn
from airflow_provider_pgtrickle.engine.dvm import binding
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.dvm.types import as_text
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection
from airflow_provider_pgtrickle.engine.refresh.stage import names

MAX_LITERAL_ROWS = 50_000


@dataclass(frozen=True)
class PendingChange:
    """Rows of a member's difference, and how to read them."""

    rows: int
    here_only: bool
    """Only the coordinator's session can read it."""
    pending: binding.Pending | None


def publish(
    conn: Connection, difference: sql.Identifier, rows: int, visible: tuple[StorageColumn, ...], limit: int
) -> PendingChange:
    """Make a difference readable for later members of the unit."""
    if rows == 0:
        return PendingChange(0, False, None)
    if rows > limit:
        statement = sql.SQL("SELECT {} FROM {}").format(
            names((WEIGHT, ROW_ID, *(column.name for column in visible))), difference
        )
        return PendingChange(rows, True, binding.Pending(statement.as_string(conn)))
    return PendingChange(rows, False, binding.Pending(_literal(conn, difference, visible).as_string(conn)))


def _literal(conn: Connection, difference: sql.Identifier, visible: tuple[StorageColumn, ...]) -> sql.Composed:
    columns = [(WEIGHT, "bigint"), (ROW_ID, "bigint"), *((column.name, column.type) for column in visible)]
    # As text: an array of arrays would not be one value a row.
    gathered = conn.execute(
        sql.SQL("SELECT {} FROM {}").format(
            sql.SQL(", ").join(
                sql.SQL("array_agg({})::text").format(sql.SQL(as_text(sql.Identifier(n).as_string(None), t)))
                for n, t in columns
            ),
            difference,
        )
    ).fetchone()
    assert gathered is not None  # an aggregate without GROUP BY
    return sql.SQL("SELECT {values} FROM unnest({arrays}) AS u ({names})").format(
        values=sql.SQL(", ").join(
            # The type is PostgreSQL's own `format_type` text.
            sql.SQL("{}::{} AS {}").format(sql.Identifier("u", name), sql.SQL(type_), sql.Identifier(name))
            for name, type_ in columns
        ),
        arrays=sql.SQL(", ").join(sql.SQL("{}::text[]").format(sql.Literal(array)) for array in gathered),
        names=names(tuple(name for name, _ in columns)),
    )
