"""A Spark task copies one partition's rows into PostgreSQL: all of them once, or none.

Spark may run a partition again: after a failure, after losing an executor that had finished, or beside a slow attempt.
Each attempt is one transaction that first claims the partition in the ledger. If another attempt holds the claim, it
waits; when that one commits, the partition has arrived and nothing is left to do. All attempts have the same rows,
because they read one snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.engine.catalog.database import PINNED, pinning

if TYPE_CHECKING:
    import pyarrow as pa

#: If a host vanishes, its claim lasts until the server notices: with these values a minute and not two hours.
_KEEPALIVE = {"tcp_keepalives_idle": "30", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3"}


def partition_copier(
    dsn: str, *, claim: str, copy: str, settle: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`.

    It uses nothing of this package, so executors and Connect servers need only psycopg and pyarrow. The DSN travels
    inside the pickled function, which no plan and no UI shows.
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
        with psycopg.connect(dsn, application_name="pgtrickle") as conn, conn.cursor() as cursor:
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
                cursor.execute(settle, [copied, partition])
        yield pyarrow.RecordBatch.from_pydict({"copied": [copied]}, pyarrow.schema([("copied", pyarrow.int64())]))

    return copy_partition
