"""`calibrate --spark` measures what Spark takes to start a job, and what a row takes on it."""

from __future__ import annotations

import psycopg
import pytest
from pyspark.sql import SparkSession

from airflow_provider_pgtrickle.cli.calibration import measure
from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.refresh.cost import CONSTANTS


def test_all_constants_are_measured_with_spark(spark: SparkSession, dsn: str) -> None:
    with PgTrickle(dsn, spark) as pt, psycopg.connect(dsn, autocommit=True) as conn:
        pt.install()
        measured = measure(pt, spark=True)
        assert measured.keys() == CONSTANTS.keys()
        assert all(0 < value < 10_000 for value in measured.values())
        assert measured["lowered_share"] / measured["pushed_share"] == pytest.approx(
            CONSTANTS["lowered_share"] / CONSTANTS["pushed_share"], rel=0.01
        )
        assert dict(conn.execute("SELECT name, value FROM pgtrickle.pgt_calibration").fetchall()) == measured
        assert pt.status() == []
