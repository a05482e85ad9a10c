"""Takes a computed DataFrame to PostgreSQL: through the driver, or from the executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import psycopg
import pyarrow as pa
from psycopg import sql

from airflow_provider_pgtrickle.engine.catalog.search_path import pin
from airflow_provider_pgtrickle.engine.dvm.buffers import ROW_ID
from airflow_provider_pgtrickle.engine.dvm.expressions import WEIGHT
from airflow_provider_pgtrickle.engine.refresh.executor import Meeting
from airflow_provider_pgtrickle.engine.spark.attempt import carrier, partition_copier
from airflow_provider_pgtrickle.engine.spark.faults import translating
from airflow_provider_pgtrickle.engine.spark.leaf import Snapshot, portable_dsn, reader, session_init
from airflow_provider_pgtrickle.engine.spark.sending import sent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


def copy_from_executors(
    df: DataFrame,
    dsn: str,
    schema: str,
    table: str,
    columns: Sequence[str],
    *,
    here: str | None = None,
    name: str = "pgtrickle",
) -> int:
    """COPY `df` into `columns` of `schema.table`, by position, from the executors; the number of rows.

    `here`: how this process reaches the database, if `dsn` is good for the executors only. `name`: see `attempt`.
    Each partition's rows arrive exactly once, however often Spark tries or speculates: see `attempt`.
    """
    here = here or dsn
    with ledger(here, schema, table) as arrived:
        with translating():
            staging(df, dsn, schema, table, columns, name=name).toArrow()
        return recorded(here, arrived)[0]


def staging(
    df: DataFrame, dsn: str, schema: str, table: str, columns: Sequence[str], *, name: str = "pgtrickle"
) -> DataFrame:
    """The plan that copies when it runs. It yields a row for each partition, with the number of rows copied."""
    arrived = sql.Identifier(schema, ledger_name(table))
    claim, settle = _claiming(arrived)
    copy = _copy_statement(sql.Identifier(schema, table), columns).as_string(None)
    copier = partition_copier(sent(df.sparkSession, dsn), name=name, claim=claim, copy=copy, settle=settle)
    return df.mapInArrow(copier, "copied bigint")


def carry_by_executors(
    spark: SparkSession,
    snapshot: Snapshot,
    queries: Sequence[str],
    schema: str,
    table: str,
    columns: Sequence[str],
    *,
    meeting: Meeting | None = None,
    here: str | None = None,
) -> tuple[int, tuple[int, int] | None]:
    """COPY the rows of `queries` into `columns` of `schema.table`, by position; the number of rows, and what met.

    A task carries the rows of each query from a session on the snapshot, exactly once: see `attempt`. `here`: as above.
    """
    dsn = here or portable_dsn(snapshot.jdbc)
    carry = carrying(sent(spark, portable_dsn(snapshot.jdbc)), snapshot, queries, schema, table, columns, meeting)
    with ledger(dsn, schema, table) as arrived:
        with translating():
            spark.range(0, len(queries), 1, len(queries)).mapInArrow(carry, "copied bigint").toArrow()
        return recorded(dsn, arrived)


def carrying(
    dsn_of: Callable[[], str],
    snapshot: Snapshot,
    queries: Sequence[str],
    schema: str,
    table: str,
    columns: Sequence[str],
    meeting: Meeting | None = None,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What carries the rows of the queries whose numbers it is given."""
    claim, settle = _claiming(sql.Identifier(schema, ledger_name(table)))
    copy = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(schema, table), _listed(columns))
    return carrier(
        dsn_of,
        name=reader(snapshot.snapshot_id),
        prepare=meeting.prepare if meeting is not None else (),
        enter=session_init(snapshot),
        reads=[sql.SQL("COPY ({}\n) TO STDOUT").format(sql.SQL(query)).as_string(None) for query in queries],
        sizes=meeting.sizes if meeting is not None else None,
        claim=claim,
        copy=copy.as_string(None),
        settle=settle,
    )


def ledger_name(table: str) -> str:
    """The table beside a staging table in which each partition that has arrived is recorded."""
    suffix = "_parts"
    return table.encode()[: _NAME_BYTES - len(suffix)].decode(errors="ignore") + suffix


def _claiming(arrived: sql.Identifier) -> tuple[str, str]:
    """The statements by which an attempt claims a partition, and says how many rows it has and how many have met."""
    claim = sql.SQL("INSERT INTO {} (part) VALUES (%s) ON CONFLICT DO NOTHING").format(arrived)
    settle = sql.SQL("UPDATE {} SET copied = %s, content = %s, stored = %s WHERE part = %s").format(arrived)
    return claim.as_string(None), settle.as_string(None)


def _copy_statement(target: sql.Composable, columns: Sequence[str]) -> sql.Composed:
    # pyarrow writes a NULL as an empty field without quotes, as COPY expects, and puts an empty text into quotes.
    return sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv, ENCODING 'UTF8')").format(target, _listed(columns))


def _listed(columns: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


@contextmanager
def ledger(dsn: str, schema: str, table: str) -> Iterator[sql.Identifier]:
    """The table of arrived partitions. It is dropped at the end, so that an attempt that comes too late fails."""
    arrived = sql.Identifier(schema, ledger_name(table))
    with translating(), psycopg.connect(dsn, application_name="pgtrickle") as conn:
        pin(conn)
        conn.execute(
            sql.SQL(
                "CREATE UNLOGGED TABLE {} (part int PRIMARY KEY, copied bigint, content bigint, stored bigint)"
            ).format(arrived)
        )
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


def recorded(dsn: str, arrived: sql.Identifier) -> tuple[int, tuple[int, int] | None]:
    """How many rows have arrived; of a content that met the stored rows, how many it has and how many are stored."""
    with translating(), psycopg.connect(dsn, application_name="pgtrickle") as conn:
        pin(conn)
        row = conn.execute(
            sql.SQL(
                "SELECT coalesce(sum(copied), 0)::bigint, sum(content)::bigint, sum(stored)::bigint FROM {}"
            ).format(arrived)
        ).fetchone()
    copied, content, stored = cast("tuple[int, int | None, int | None]", row)
    return copied, None if content is None or stored is None else (content, stored)
