"""The single sink: a difference, or a first content, becomes the stream table's rows and its consumers' changes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

from psycopg import sql

from airflow_provider_pgtrickle.engine.capture.layout import CHANGES
from airflow_provider_pgtrickle.engine.declare import replica_identity, row_id_index
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID, buffer_column
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.refresh import invariants
from airflow_provider_pgtrickle.engine.refresh.consolidate import (
    DELETE,
    INSERT,
    OP,
    REPLACED,
    UPDATE,
    Difference,
    Sink,
    net,
)
from airflow_provider_pgtrickle.engine.refresh.sameness import agree, look_alike
from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection
from airflow_provider_pgtrickle.engine.refresh.stage import analyze, names

# From here on an index is cheaper built anew than grown.
_MANY = 20_000


@dataclass(frozen=True)
class Applied:
    """How many rows of the stream table were written."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


def unlock_table(conn: Connection) -> None:
    """Let the stream tables' guards pass, in this transaction only."""
    conn.execute("SELECT pg_catalog.set_config('pgtrickle.refreshing', 'on', true)")


def apply(conn: Connection, sink: Sink, difference: Difference) -> Applied:
    """Write a difference: deletions and replacements first, so that what comes finds its place free."""
    invariants.no_identity_comes_twice(sink, difference)
    count = difference.counts.get
    deleted = _delete(conn, sink, difference) if count(DELETE) else 0
    invariants.every_row_was_there(sink, "deleted", count(DELETE, 0), deleted)
    updated = _update(conn, sink, difference) if count(UPDATE) else 0
    invariants.every_row_was_there(sink, "replaced", count(UPDATE, 0), updated)
    if sink.keyed:
        invariants.no_identity_is_there_already(conn, sink, difference)
    inserted = _insert(conn, sink, difference) if count(INSERT) else 0
    return Applied(inserted, updated, deleted)


def populate(conn: Connection, sink: Sink, stage: sql.Identifier, rows: int) -> Applied:
    """Fill an empty table; there is nothing to compare with."""
    columns = names((ROW_ID, *sink.names))
    with row_id_index.built_afterwards(conn, sink.table) if rows >= _MANY else nullcontext():
        inserted = conn.execute(
            sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {}").format(sink.table.sql, columns, columns, stage)
        ).rowcount
    invariants.no_identity_stands_twice(conn, sink)
    replica_identity.settle(conn, sink.table, first=True)
    analyze(conn, sink.table.sql, inserted)
    return Applied(inserted=inserted)


def is_empty(conn: Connection, sink: Sink) -> bool:
    """Whether the stream table holds no row at all."""
    row = conn.execute(sql.SQL("SELECT NOT EXISTS (SELECT FROM {})").format(sink.table.sql)).fetchone()
    return row is not None and bool(row[0])


def write_buffer(conn: Connection, sink: Sink, buffer: str, visible: tuple[str, ...], rows: sql.Identifier) -> int:
    """Hand the difference (or the first content) on to the tables that read this one: visible columns only.

    Rows that differ only in hidden columns cancel out here, so that consumers don't see them at all.
    """
    columns = tuple(column for column in sink.columns if column.name in visible)
    weighted: sql.Composable = sql.SQL("SELECT {}, {} FROM {}").format(
        sql.Identifier(WEIGHT), names((ROW_ID, *visible)), rows
    )
    if len(columns) < len(sink.columns):
        weighted = net(weighted, columns)
    return conn.execute(
        sql.SQL(
            "INSERT INTO {buffer} (action, pk_hash{targets})"
            " SELECT CASE WHEN w.{weight} > 0 THEN 'I' ELSE 'D' END, w.{id}{values}"
            " FROM ({weighted}) w, pg_catalog.generate_series(1, abs(w.{weight}))"
        ).format(
            buffer=sql.Identifier(CHANGES, buffer),
            targets=sql.SQL("").join(sql.SQL(", {}").format(sql.Identifier(buffer_column("new", c))) for c in visible),
            weight=sql.Identifier(WEIGHT),
            id=sql.Identifier(ROW_ID),
            values=sql.SQL("").join(sql.SQL(", {}").format(sql.Identifier("w", c)) for c in visible),
            weighted=weighted,
        )
    ).rowcount


def _delete(conn: Connection, sink: Sink, difference: Difference) -> int:
    if sink.keyed:
        statement = sql.SQL("DELETE FROM {t} t USING {d} d WHERE d.{op} = {delete} AND t.{id} = d.{id} AND {same}")
    else:
        # Exactly n twins go, and of equal rows those that look like the row to delete.
        statement = sql.SQL(
            "DELETE FROM {t} t USING ("
            " SELECT s.tableoid AS place, s.ctid AS spot, d.wanted,"
            " row_number() OVER (PARTITION BY d.twins ORDER BY {alike} DESC) AS n"
            " FROM (SELECT *, -sum({w}) OVER same AS wanted, dense_rank() OVER (ORDER BY {all}) AS twins,"
            " row_number() OVER same AS nth FROM {d} d WHERE {op} = {delete} WINDOW same AS (PARTITION BY {all})) d"
            " JOIN {t} s ON s.{id} = d.{id} AND {stored} WHERE d.nth = 1) gone"
            " WHERE gone.n <= gone.wanted AND t.ctid = gone.spot AND t.tableoid = gone.place"
        )
    return conn.execute(
        statement.format(
            t=sink.table.sql,
            d=difference.table,
            op=sql.Identifier(OP),
            delete=DELETE,
            id=sql.Identifier(ROW_ID),
            w=sql.Identifier(WEIGHT),
            same=agree(sink.columns, "t", "d"),
            stored=agree(sink.columns, "s", "d"),
            alike=look_alike(sink.columns, "s", "d"),
            all=sql.SQL(", ").join([sql.Identifier("d", ROW_ID), *(c.partition("d") for c in sink.columns)]),
        )
    ).rowcount


def _update(conn: Connection, sink: Sink, difference: Difference) -> int:
    assignments = sql.SQL(", ").join(
        sql.SQL("{} = {}").format(sql.Identifier(c.name), sql.Identifier("u", c.name)) for c in sink.columns
    )
    return conn.execute(
        sql.SQL(
            "UPDATE {t} t SET {assignments} FROM {d} o JOIN {d} u ON u.{id} = o.{id} AND u.{op} = {update} AND {key}"
            " WHERE o.{op} = {replaced} AND t.{id} = o.{id} AND {same}"
        ).format(
            t=sink.table.sql,
            assignments=assignments,
            d=difference.table,
            id=sql.Identifier(ROW_ID),
            op=sql.Identifier(OP),
            update=UPDATE,
            replaced=REPLACED,
            key=agree(sink.key, "u", "o"),
            same=agree(sink.columns, "t", "o"),
        )
    ).rowcount


def _insert(conn: Connection, sink: Sink, difference: Difference) -> int:
    repeated = (
        sql.SQL("") if sink.keyed else sql.SQL(", pg_catalog.generate_series(1, d.{})").format(sql.Identifier(WEIGHT))
    )
    return conn.execute(
        sql.SQL("INSERT INTO {t} ({columns}) SELECT {values} FROM {d} d{repeated} WHERE d.{op} = {insert}").format(
            t=sink.table.sql,
            columns=names((ROW_ID, *sink.names)),
            values=names((ROW_ID, *sink.names), "d"),
            d=difference.table,
            repeated=repeated,
            op=sql.Identifier(OP),
            insert=INSERT,
        )
    ).rowcount
