"""Takes a computed DataFrame to PostgreSQL: through the driver, or from the executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import psycopg
import pyarrow as pa
from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.search_path import pin
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.spark.attempt import partition_copier
from airflow_provider_pgtrickle.engine.spark.faults import translating

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY = "__pgt_key"
_NAME_BYTES = 63


def with_row_id(df: DataFrame, columns: Sequence[str], *, identified: bool = False) -> DataFrame:
    """The stage's columns: the weight, the row id, then `columns`. The key is the row id, or its canonical text.

    They are SQL texts, because `pyspark.sql.functions` belong to one kind of session for the whole process.
    """
    quoted = [f"`{name.replace('`', '``')}`" for name in columns]
    row_id = KEY if identified else f"xxhash64({KEY})"
    return df.selectExpr(f"CAST({WEIGHT} AS INT) AS {WEIGHT}", f"{row_id} AS {ROW_ID}", *quoted)


def collect(df: DataFrame) -> pa.Table:
    """All rows, on the driver."""
    with translating():
        return df.toArrow()


def copy_from_executors(df: DataFrame, dsn: str, schema: str, table: str, columns: Sequence[str]) -> int:
    """COPY `df` into `columns` of `schema.table`, by position, from the executors; the number of rows.

    Each partition's rows arrive exactly once, however often Spark tries or speculates: see `attempt`.
    """
    with ledger(dsn, schema, table) as arrived:
        with translating():
            staging(df, dsn, schema, table, columns).toArrow()
        return _recorded(dsn, arrived)


def staging(df: DataFrame, dsn: str, schema: str, table: str, columns: Sequence[str]) -> DataFrame:
    """The plan that copies when it runs. It yields a row for each partition, with the number of rows copied."""
    arrived = sql.Identifier(schema, ledger_name(table))
    copier = partition_copier(
        dsn,
        claim=sql.SQL("INSERT INTO {} (part) VALUES (%s) ON CONFLICT DO NOTHING").format(arrived).as_string(None),
        copy=_copy_statement(sql.Identifier(schema, table), columns).as_string(None),
        settle=sql.SQL("UPDATE {} SET copied = %s WHERE part = %s").format(arrived).as_string(None),
    )
    return df.mapInArrow(copier, "copied bigint")


def ledger_name(table: str) -> str:
    """The table beside a staging table in which each partition that has arrived is recorded."""
    suffix = "_parts"
    return table.encode()[: _NAME_BYTES - len(suffix)].decode(errors="ignore") + suffix


def _copy_statement(target: sql.Composable, columns: Sequence[str]) -> sql.Composed:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    # pyarrow writes a NULL as an empty field without quotes, as COPY expects, and puts an empty text into quotes.
    return sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv, ENCODING 'UTF8')").format(target, names)


@contextmanager
def ledger(dsn: str, schema: str, table: str) -> Iterator[sql.Identifier]:
    """The table of arrived partitions. It is dropped at the end, so that an attempt that comes too late fails."""
    arrived = sql.Identifier(schema, ledger_name(table))
    with translating(), psycopg.connect(dsn, application_name="pgtrickle") as conn:
        pin(conn)
        conn.execute(sql.SQL("CREATE UNLOGGED TABLE {} (part int PRIMARY KEY, copied bigint)").format(arrived))
    try:
        yield arrived
    finally:
        _drop(dsn, arrived)


def _drop(dsn: str, arrived: sql.Identifier) -> None:
    with psycopg.connect(dsn, application_name="pgtrickle") as conn:
        pin(conn)
        # An attempt that Spark hasn't stopped yet must not delay the failure's report. `pgtrickle cleanup` drops what
        # it leaves.
        conn.execute("SET LOCAL lock_timeout = '10s'")
        try:
            conn.execute(sql.SQL("DROP TABLE {}").format(arrived))
        except psycopg.errors.LockNotAvailable:
            conn.rollback()


def _recorded(dsn: str, arrived: sql.Identifier) -> int:
    with translating(), psycopg.connect(dsn, application_name="pgtrickle") as conn:
        pin(conn)
        row = conn.execute(sql.SQL("SELECT coalesce(sum(copied), 0)::bigint FROM {}").format(arrived)).fetchone()
    return cast("tuple[int]", row)[0]
