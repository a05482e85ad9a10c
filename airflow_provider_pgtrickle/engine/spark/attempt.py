"""A Spark task copies one partition's rows into PostgreSQL: all of them once, or none.

Spark may run a partition again: after a failure, after losing an executor that had finished, or beside a slow attempt.
Each attempt is one transaction that first claims the partition in the ledger. If another attempt holds the claim, it
waits; when that one commits, the partition has arrived and nothing is left to do. All attempts have the same rows,
because they read one snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_pgtrickle.engine.catalog.database import PINNED, pinning

if TYPE_CHECKING:
    import pyarrow as pa

#: If a host vanishes, its claim lasts until the server notices: with these values a minute and not two hours.
_KEEPALIVE = {"tcp_keepalives_idle": "30", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3"}

_CARRIED_BYTES = 256 << 10


def partition_copier(
    dsn_of: Callable[[], str], *, name: str, claim: str, copy: str, settle: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`.

    It uses nothing of this package, so executors and Connect servers need only psycopg and pyarrow. `dsn_of`: see
    `sending`; `name`: that of the session, by which a watcher sees that somebody is at work.
    """
    settings = pinning({**PINNED, **_KEEPALIVE}, local=True).as_string(None)

    def copy_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import psycopg
        import pyarrow
        from pyarrow import csv
        from pyspark import TaskContext

        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        context = TaskContext.get()
        assert context is not None
        partition, copied = context.partitionId(), 0
        options = csv.WriteOptions(include_header=False)
        with psycopg.connect(dsn_of(), application_name=name) as conn, conn.cursor() as cursor:
            cursor.execute(settings)
            cursor.execute(claim, [partition])
            if cursor.rowcount:
                with cursor.copy(copy) as rows:
                    batch = first
                    while batch is not None:
                        text = pyarrow.BufferOutputStream()
                        csv.write_csv(batch, text, options)
                        rows.write(memoryview(text.getvalue()))
                        copied += batch.num_rows
                        batch = next(filled, None)
                cursor.execute(settle, [copied, None, None, partition])
        yield pyarrow.RecordBatch.from_pydict({"copied": [copied]}, pyarrow.schema([("copied", pyarrow.int64())]))

    return copy_partition


def carrier(
    dsn_of: Callable[[], str],
    *,
    name: str,
    prepare: Sequence[str],
    enter: str,
    reads: Sequence[str],
    sizes: str | None,
    claim: str,
    copy: str,
    settle: str,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow` over the numbers of statements: it carries the rows of each into the table.

    Rows go from COPY to COPY as PostgreSQL wrote them, and nobody looks at them on the way. Taking them through JDBC,
    Arrow and CSV costs the executor twice the time. `enter` are the statements by which a reader enters the snapshot;
    `prepare` runs before them, and `sizes` is asked after the rows and settled with their number.
    """
    settings = pinning({**PINNED, **_KEEPALIVE}, local=True).as_string(None)
    large = _CARRIED_BYTES

    def carry(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import psycopg
        import pyarrow
        from psycopg.pq import ExecStatus

        def rows(conn: psycopg.Connection[Any], statement: str) -> Iterator[bytes]:
            """Many rows at a time. libpq is asked for each row, because psycopg's own loop takes longer."""
            result, pieces, size = conn.pgconn.exec_(statement.encode()), [], 0
            if result.status != ExecStatus.COPY_OUT:
                raise psycopg.errors.error_from_result(result)
            take = conn.pgconn.get_copy_data
            length, piece = take(0)
            while length > 0:
                pieces.append(piece)
                size += length
                if size >= large:
                    yield b"".join(pieces)
                    pieces, size = [], 0
                length, piece = take(0)
            yield b"".join(pieces)
            while (ended := conn.pgconn.get_result()) is not None:
                if ended.status != ExecStatus.COMMAND_OK:
                    raise psycopg.errors.error_from_result(ended)

        dsn = dsn_of()
        for number in (n for batch in batches for n in batch.column(0).to_pylist()):
            copied = 0
            with psycopg.connect(dsn, application_name=name) as writer, writer.cursor() as cursor:
                cursor.execute(settings)
                cursor.execute(claim, [number])
                if cursor.rowcount:
                    found: Sequence[Any] = (None, None)
                    with psycopg.connect(dsn, application_name="pgtrickle") as reader:
                        for statement in prepare:
                            reader.execute(statement)
                        reader.commit()
                        reader.execute(enter)
                        with cursor.copy(copy) as sink:
                            for piece in rows(reader, reads[number]):
                                sink.write(piece)
                        copied = cursor.rowcount
                        if sizes is not None:
                            found = reader.execute(sizes).fetchone() or found
                    cursor.execute(settle, [copied, *found, number])
            yield pyarrow.RecordBatch.from_pydict({"copied": [copied]}, pyarrow.schema([("copied", pyarrow.int64())]))

    return carry
