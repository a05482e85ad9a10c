"""While an action of Spark runs, whoever waits hears how far it is."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from airflow_provider_pgtrickle.engine import progress
from airflow_provider_pgtrickle.engine.errors import OutOfTime
from airflow_provider_pgtrickle.engine.spark.meter import Meter
from airflow_provider_pgtrickle.engine.spark.watch import Limits

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


def test_two_threads_of_one_session_hear_their_own_each(connect: SparkSession, tmp_path: Path) -> None:
    def refresh(tasks: int) -> list[str]:
        heard: list[str] = []
        path = str(tmp_path / f"heard-{tasks}")

        def held(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            while not os.path.exists(path):
                time.sleep(0.05)
            yield from batches

        def hear(what: str, name: str | None) -> None:
            if what == "tasks":
                heard.append(str(name))
                Path(path).touch()

        rows = connect.range(0, 6, 1, tasks).mapInArrow(held, "id long")
        with progress.heard(hear):
            assert len(Meter(connect).run(rows.collect)) == 6
        return heard

    with ThreadPoolExecutor(2) as pool:
        two, three = pool.map(refresh, (2, 3))
    assert {text.split()[2] for text in two} == {"2"}
    assert {text.split()[2] for text in three} == {"3"}


def test_an_action_ends_when_its_time_is_up(any_spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "let go")

    def held(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        while not os.path.exists(path):
            time.sleep(0.05)
        yield from batches

    rows = any_spark.range(0, 4, 1, 2).mapInArrow(held, "id long")
    with pytest.raises(OutOfTime, match="has not computed the change in time"):
        Meter(any_spark, Limits(ends_at=time.monotonic() + 1)).run(rows.collect)
    Path(path).touch()
    # The session goes on, and who has time enough isn't stopped.
    assert len(Meter(any_spark, Limits(600, time.monotonic() + 600)).run(rows.collect)) == 4


def test_an_error_of_the_action_stays_its_own(any_spark: SparkSession) -> None:
    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ValueError("no such thing")

    rows = any_spark.range(0, 4, 1, 2).mapInArrow(fail, "id long")
    with pytest.raises(PySparkException, match="no such thing"):
        Meter(any_spark, Limits(600, time.monotonic() + 600)).run(rows.collect)
