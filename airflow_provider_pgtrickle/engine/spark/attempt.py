"""What a task attempt does with one partition's rows: all of them into PostgreSQL, or none.

Spark may run a partition again after a failure, after losing an executor that had finished, or beside a slow twin.
Each attempt is one transaction that first claims the partition in the ledger. A claim waits for a twin that holds
it; when that one commits, the partition has arrived and the claimant has nothing left to do. Attempts are alike
because all of them read at one snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.engine.catalog.database import PINNED, pinning

if TYPE_CHECKING:
    import pyarrow as pa

#: A host that vanishes keeps its claim until the server misses it: a minute, not the system's two hours.
_KEEPALIVE = {"tcp_keepalives_idle": "30", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3"}


def partition_copier(
    dsn: str, *, claim: str, copy: str, settle: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`.

    It names nothing of this package: executors and Connect servers need psycopg and pyarrow, not us. The DSN travels
    inside the pickled function, which no plan text and no UI shows.
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
        part, copied = context.partitionId(), 0
        options = csv.WriteOptions(include_header=False)
        with psycopg.connect(dsn, application_name="pgtrickle") as conn, conn.cursor() as cursor:
            cursor.execute(settings)
            cursor.execute(claim, [part])
            if cursor.rowcount:
                with cursor.copy(copy) as sink:
                    batch = first
                    while batch is not None:
                        text = pyarrow.BufferOutputStream()
                        csv.write_csv(batch, text, options)
                        sink.write(memoryview(text.getvalue()))
                        copied += batch.num_rows
                        batch = next(filled, None)
                cursor.execute(settle, [copied, part])
        yield pyarrow.RecordBatch.from_pydict({"copied": [copied]}, pyarrow.schema([("copied", pyarrow.int64())]))

    return copy_partition
