"""Run by `test_credentials`: a classic session with everything on that shows what an application does.

Its log is at debug, but for what the shipped settings pin. Prints what the UI's REST interface and the plans tell.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import urllib.request
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.engine.refresh.executor import Computation, StageTarget
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.execute import SparkExecutor
from airflow_provider_pgtrickle.engine.spark.leaf import Leaf, Snapshot, read
from airflow_provider_pgtrickle.engine.spark.session import local_conf

QUERY = "SELECT 1 AS __pgt_w, n::text AS __pgt_key, n::text AS n FROM generate_series(1, 10) n"
CARRIED = "SELECT 1 AS __pgt_w, n::bigint AS __pgt_key, '1' AS n FROM generate_series(1, 10) n"
FAILING = QUERY.replace("n::text AS n", "(1 / (n - 5))::text AS n")


def main(folder: str) -> None:
    settings = Settings.load(spark_master="local[2]")
    builder = SparkSession.builder
    conf = local_conf(settings) | {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": Path(folder).as_uri(),
    }
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    # The root alone: what the shipped settings pin stays.
    spark.sparkContext.setLogLevel("DEBUG")
    database = Database(os.environ["PGTRICKLE_DSN"], settings)
    with database.connect() as coordinator:
        coordinator.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        exported = str(coordinator.execute("SELECT pg_export_snapshot()").fetchall()[0][0])
        executor = SparkExecutor(spark, database)
        executor.compute(exported, Computation(QUERY, ("n",), 10), None)
        executor.compute(exported, Computation(QUERY, ("n",), 10, large=True), StageTarget("public", "s", ("n",)))
        carried = Computation(CARRIED, ("n",), 10, identified=True, large=True)
        executor.compute(exported, carried, StageTarget("public", "s", ("n",)))
        for failing in (replace(carried, sql=CARRIED.replace("'1'", "(n / 0)")), Computation(FAILING, ("n",), 10)):
            try:
                executor.compute(exported, failing, StageTarget("public", "s", ("n",)) if failing.large else None)
            except PgTrickleError:
                # With Spark's own, which an application prints when it fails.
                traceback.print_exc(file=sys.stdout)
        read(spark, Snapshot(database.jdbc, exported), Leaf(QUERY)).explain("extended")
    root = f"{spark.sparkContext.uiWebUrl}/api/v1/applications"
    (listed,) = json.loads(_fetched(root))
    for part in ("environment", "jobs", "stages?details=true", "sql?details=true", "allexecutors"):
        print(_fetched(f"{root}/{listed['id']}/{part}"))
    spark.stop()


def _fetched(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return answer.read().decode()


if __name__ == "__main__":
    main(sys.argv[1])
