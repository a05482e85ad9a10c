"""A large table is held against its query by Spark's readers, on one snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh.executor import Computation, Staged, StageTarget
from airflow_provider_pgtrickle.engine.spark.execute import SparkExecutor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = "SELECT customer, sum(amount) AS total, count(*) AS n FROM orders GROUP BY customer"


class Counting(SparkExecutor):
    """Keeps what came of each computation."""

    def __init__(self, spark: SparkSession, database: Database) -> None:
        super().__init__(spark, database)
        self.staged: list[Staged] = []

    def compute(self, snapshot_id: str, computation: Computation, stage: StageTarget | None) -> Staged:
        self.staged.append(super().compute(snapshot_id, computation, stage))
        return self.staged[-1]


def test_spark_reads_the_sums_side_by_side_and_sees_what_differs(
    any_spark: SparkSession, database: Database, conn: psycopg.Connection, dsn: str
) -> None:
    spark = Counting(any_spark, database)
    settings: dict[str, Any] = {
        "read_partition_rows": 5000,
        "differential_max_change_ratio": 0.0,
    }
    conn.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(10, 2));"
        " INSERT INTO orders SELECT i, 'c' || i % 20000, i FROM generate_series(1, 40000) i"
    )
    with PgTrickle(dsn, executor=lambda: spark, **settings) as pt:
        pt.install()
        pt.create_stream_table("totals", QUERY)
        conn.execute("ANALYZE totals")
        conn.execute("UPDATE orders SET amount = 1, customer = 'd' || id WHERE id % 10 = 0")
        spark.staged.clear()
        found = pt.verify("totals")
        assert (found.differences, found.tables[0].rows_compared, found.tables[0].ranges) == (0, 20000, 16)
        # Content, and hidden state: each the query's side and four ranges of the table's pages.
        assert [staged.reads for staged in spark.staged] == [5, 5]
        assert all(staged.jobs >= 1 for staged in spark.staged)
        with conn.transaction():
            conn.execute("SET LOCAL pgtrickle.refreshing = 'on'")
            conn.execute("UPDATE totals SET total = total + 1 WHERE customer = 'c7'")
            conn.execute("UPDATE totals SET __pgt_count = 9 WHERE customer = 'c8'")
            conn.execute("UPDATE totals SET __pgt_row_id = 9 WHERE customer = 'c9'")
        found = pt.verify("totals")
        assert {(wrong.compared, wrong.stored.get("customer")) for wrong in found.tables[0].rows} >= {
            ("content", "c7"),
            ("row id", None),
        }
        assert pt.verify("totals", repair=True).differences == 0
