"""A driver that runs out of memory ends, the refresh fails in one sentence, and the next one starts Spark anew."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: PySpark's answer comes from a thread of the JVM, `serve-Arrow`. The text of this plan, which that thread writes
#: first, is several times the heap.
_PROGRAM = """
from functools import reduce

from pyspark import SparkContext
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.session import has_ended, obtain, stop
from airflow_provider_pgtrickle.engine.spark.stage import collect

settings = Settings.load(spark_master="local[1]", spark_driver_memory="512m")
session = obtain(None, settings)
session.conf.set("spark.sql.maxPlanStringLength", str(2**31 - 17))
wide = session.range(1).select(lit("x" * (4 << 20)))
try:
    collect(reduce(DataFrame.union, [wide] * 100))
except PgTrickleError as error:
    print(type(error).__name__, error)
SparkContext._gateway.proc.wait(60)
print("ended" if has_ended(session) else "running")
session = obtain(None, settings)
print(collect(session.range(4)).num_rows, "rows")
stop(session)
"""


@pytest.mark.timeout(300)
def test_a_lost_thread_of_the_driver_is_a_failure_and_no_wait(spark_alone: None) -> None:
    told = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=240, check=False)
    assert "Uncaught exception in thread Thread[serve-Arrow" in told.stderr
    assert told.stdout.splitlines() == [
        "RoomFault Spark's driver ran out of memory. Give it more: raise spark_driver_memory, or spark.driver.memory"
        " where Spark is started by you.",
        "ended",
        "4 rows",
    ], told.stderr[-2000:]
