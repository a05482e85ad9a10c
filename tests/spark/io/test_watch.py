"""While an action of Spark runs, whoever waits hears how far it is."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_pgtrickle.engine import progress
from airflow_provider_pgtrickle.engine.spark.meter import Meter

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_running_stage_tells_how_far_it_is(any_spark: SparkSession, tmp_path: Path) -> None:
    heard: list[str | None] = []
    path = str(tmp_path / "heard")

    def held(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows, once somebody has heard of their stage."""
        while not os.path.exists(path):
            time.sleep(0.05)
        yield from batches

    def hear(what: str, name: str | None) -> None:
        if what == "tasks":
            heard.append(name)
            Path(path).touch()

    rows = any_spark.range(0, 4, 1, 2).mapInArrow(held, "id long")
    with progress.heard(hear):
        assert len(Meter(any_spark).run(rows.collect)) == 4
    assert heard
    assert re.fullmatch(r"\d of \d tasks done, \d running", str(heard[0]))


def test_without_a_listener_nothing_is_asked(spark: SparkSession) -> None:
    def threads() -> set[int | None]:
        return {thread.ident for thread in threading.enumerate()}

    before = threads()
    seen = []

    def action() -> int:
        seen.append(threads())
        return spark.range(3).count()

    assert Meter(spark).run(action) == 3
    assert seen == [before]
