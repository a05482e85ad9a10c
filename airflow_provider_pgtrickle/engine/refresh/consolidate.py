"""Consolidation turns the stage into the member's true difference, each row with its operation.

It groups by all columns, sums the weights and drops zeros; from a whole content (FULL) it first subtracts the
stored rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql

from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.sameness import Column
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection
from airflow_provider_pgtrickle.engine.refresh.stage import analyze, names

OP = "__pgt_op"

# The operations for the rows of a difference.
INSERT, DELETE = "I", "D"
# An identity that both goes and comes: UPDATE marks the new row, REPLACED the old row that it replaces.
UPDATE, REPLACED = "U", "O"
# An identity that comes or goes twice, which no correct difference holds.
DUPLICATE = "!"


@dataclass(frozen=True)
class Target:
    """A stream table as a write sees it."""

    table: QualifiedName
    columns: tuple[Column, ...]
    """All storage columns, in order."""
    identity: tuple[str, ...]
    keyed: bool
    """Whether the identity is a key. If it isn't, the table is a bag of rows."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def key(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.name in self.identity)


@dataclass(frozen=True)
class Difference:
    """The difference, which is in a temporary table of the session."""

    table: sql.Identifier
    counts: dict[str, int]
    """Rows by operation."""

    @property
    def rows(self) -> int:
        return sum(self.counts.values())


def consolidate(conn: Connection, target: Target, pgt_id: int, stage: sql.Identifier, *, whole: bool) -> Difference:
    """Make the difference from the stage. If the stage is the whole content, the stored rows are subtracted from it."""
    name = f"pgt_difference_{pgt_id}"
    columns = target.columns
    rows = sql.SQL("SELECT {}, {} FROM {}").format(sql.Identifier(WEIGHT), names((ROW_ID, *target.names)), stage)
    if whole:
        rows += sql.SQL(" UNION ALL SELECT -1, {} FROM {}").format(names((ROW_ID, *target.names)), target.table.sql)
    conn.execute(
        sql.SQL("CREATE TEMPORARY TABLE {name} AS SELECT c.*, {op} AS {op_name} FROM ({net}) c").format(
            name=sql.Identifier(name),
            op=_operation(target),
            op_name=sql.Identifier(OP),
            net=net(rows, columns),
        )
    )
    table = sql.Identifier("pg_temp", name)
    counts = conn.execute(
        sql.SQL("SELECT {0}, sum(abs({1}))::bigint FROM {2} GROUP BY 1").format(
            sql.Identifier(OP), sql.Identifier(WEIGHT), table
        )
    ).fetchall()
    difference = Difference(table, {op: int(n) for op, n in counts})
    analyze(conn, table, difference.rows)
    return difference


def net(rows: sql.Composable, columns: tuple[Column, ...]) -> sql.Composed:
    """SQL of the consolidated rows of a statement that yields weight, row id and the columns."""
    grouping: list[sql.Composable] = [sql.Identifier("s", ROW_ID)]
    for column in columns:
        grouping += column.grouping("s")
    values = [sql.Identifier("s", ROW_ID), *(column.grouped("s") for column in columns)]
    weight = sql.SQL("sum({})").format(sql.Identifier("s", WEIGHT))
    return sql.SQL("SELECT {w}::bigint AS {name}, {values} FROM ({rows}) s GROUP BY {grouping} HAVING {w} <> 0").format(
        w=weight,
        name=sql.Identifier(WEIGHT),
        values=sql.SQL(", ").join(values),
        rows=rows,
        grouping=sql.SQL(", ").join(grouping),
    )


def _operation(target: Target) -> sql.Composable:
    weight = sql.Identifier("c", WEIGHT)
    if not target.keyed:
        return sql.SQL("CASE WHEN {} > 0 THEN {} ELSE {} END").format(weight, INSERT, DELETE)
    # The row id is a hash, so rows are the same only if the identity's columns agree as well.
    identity = [sql.Identifier("c", ROW_ID), *(column.partition("c") for column in target.key)]
    coming, going = (
        sql.SQL("sum(greatest({}{}, 0)) OVER (PARTITION BY {})").format(
            sql.SQL(sign), weight, sql.SQL(", ").join(identity)
        )
        for sign in ("", "-")
    )
    return sql.SQL(
        "CASE WHEN {coming} > 1 OR {going} > 1 THEN {duplicate}"
        " WHEN {weight} > 0 THEN CASE WHEN {going} = 1 THEN {update} ELSE {insert} END"
        " WHEN {coming} = 1 THEN {replaced} ELSE {delete} END"
    ).format(
        coming=coming,
        going=going,
        weight=weight,
        duplicate=DUPLICATE,
        update=UPDATE,
        insert=INSERT,
        replaced=REPLACED,
        delete=DELETE,
    )
