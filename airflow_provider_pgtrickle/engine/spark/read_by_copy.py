"""Reads a leaf by COPY in Spark's Python tasks, for Connect clients.

A Connect server writes the options of a read, also a JDBC password, into its log, its UI and its event log. How the
connection string gets to a task instead: `sending`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.errors import QueryError
from airflow_provider_pgtrickle.engine.spark.faults import translating
from airflow_provider_pgtrickle.engine.spark.sending import sent

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

#: Spark's types by PostgreSQL's type oid. The leaf's SQL casts every other type to text.
_TYPES = {16: "boolean", 20: "bigint", 21: "smallint", 23: "int", 25: "string", 1043: "string"}
#: How much CSV is parsed at once. A row is never split, however long it is.
_CHUNK_BYTES = 4 << 20


def read_copied(spark: SparkSession, dsn: str, enter: str, queries: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """The bag union of `queries`. Each is read by one task, in the transaction that `enter` opens."""
    names, types = _described(dsn, enter, queries[0])
    copies = [
        sql.SQL("COPY ({}\n) TO STDOUT (FORMAT csv, ENCODING 'UTF8')").format(sql.SQL(query)).as_string(None)
        for query in queries
    ]
    names = [*columns, *names[len(columns) :]]
    schema = ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in zip(names, types, strict=True))
    return spark.range(0, len(copies), 1, len(copies)).mapInArrow(
        _reader(sent(spark, dsn), enter, copies, types), schema
    )


def _described(dsn: str, enter: str, query: str) -> tuple[list[str], list[str]]:
    with translating(), psycopg.connect(dsn, application_name="pgtrickle") as conn:
        conn.execute(enter)
        described = conn.execute(sql.SQL("SELECT * FROM ({}\n) AS leaf LIMIT 0").format(sql.SQL(query))).description
    assert described is not None
    odd = [column.name for column in described if column.type_code not in _TYPES]
    if odd:
        raise QueryError(f"A leaf's column {odd[0]!r} is neither text nor an integer", remedy="Cast it to text.")
    return [column.name for column in described], [_TYPES[column.type_code] for column in described]


def _reader(
    dsn_of: Callable[[], str], enter: str, copies: Sequence[str], types: Sequence[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function uses nothing of this package, so that a server needs psycopg and pyarrow only."""
    limit = _CHUNK_BYTES

    def read_partition(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import psycopg
        import pyarrow
        from pyarrow import csv

        dsn = dsn_of()
        arrow = {"boolean": pyarrow.bool_(), "smallint": pyarrow.int16(), "int": pyarrow.int32()}
        arrow |= {"bigint": pyarrow.int64(), "string": pyarrow.string()}
        names = [f"f{n}" for n in range(len(types))]
        convert = csv.ConvertOptions(
            column_types={name: arrow[kind] for name, kind in zip(names, types, strict=True)},
            null_values=[""],
            true_values=["t"],
            false_values=["f"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)

        def parsed(rows: list[bytes]) -> list[pyarrow.RecordBatch]:
            text = b"".join(rows)
            options = csv.ReadOptions(column_names=names, block_size=len(text) + 1, use_threads=False)
            return csv.read_csv(pyarrow.BufferReader(text), options, parse, convert).to_batches()

        for number in (n for batch in numbers for n in batch.column(0).to_pylist()):
            with psycopg.connect(dsn, application_name="pgtrickle") as conn, conn.cursor() as cursor:
                cursor.execute(enter)
                with cursor.copy(copies[number]) as copy:
                    rows: list[bytes] = []
                    size = 0
                    for row in copy:
                        rows.append(bytes(row))
                        size += len(row)
                        if size >= limit:
                            yield from parsed(rows)
                            rows, size = [], 0
                    if rows:
                        yield from parsed(rows)

    return read_partition
