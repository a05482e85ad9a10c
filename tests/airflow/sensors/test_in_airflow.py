"""Sensors and watchers as Airflow itself runs them: in a DAG run, and out of its serialized DAGs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from airflow.models import TaskInstance
from airflow.sdk import DAG, Asset, AssetWatcher
from airflow.utils.session import create_session
from sqlalchemy import select

from airflow_provider_pgtrickle.sensors import StreamTableFreshnessSensor
from airflow_provider_pgtrickle.triggers.pending import ChangesPendingTrigger
from airflow_provider_pgtrickle.triggers.refreshed import StreamTableRefreshedTrigger
from tests.airflow.listened import CONN_ID, NEVER, Catalog


def following() -> DAG:
    with DAG(
        "following",
        schedule=[
            Asset(
                "totals",
                watchers=[
                    AssetWatcher(name="refreshed", trigger=StreamTableRefreshedTrigger(stream_table="totals")),
                    AssetWatcher(name="changed", trigger=ChangesPendingTrigger(stream_table="totals", min_rows=10)),
                ],
            )
        ],
    ) as dag:
        StreamTableFreshnessSensor(task_id="fresh", stream_table="totals", max_staleness=60)
    return dag


def test_a_dag_with_watchers_survives_serialization() -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    serialized = DagSerialization.to_dict(following())
    assert DagSerialization.to_dict(following()) == serialized
    assert "StreamTableRefreshedTrigger" in str(serialized)


def test_equal_watchers_of_two_dags_are_one_trigger() -> None:
    from airflow.triggers.base import BaseEventTrigger

    hashes = {BaseEventTrigger.hash(*StreamTableRefreshedTrigger(stream_table="totals").serialize()) for _ in range(2)}
    assert len(hashes) == 1


DAG_FILE = f"""
from airflow.sdk import DAG
from airflow_provider_pgtrickle.sensors import ChangeBufferSensor, StreamTableFreshnessSensor
from airflow_provider_pgtrickle.sensors import StreamTableFreshnessSensor

with DAG("waiting", schedule=None):
    given = dict(postgres_conn_id="{CONN_ID}", poke_interval={NEVER})
    poked = ChangeBufferSensor(task_id="poked", stream_table="totals", **given)
    deferred = StreamTableFreshnessSensor(
        task_id="deferred", stream_table="{{{{ 'totals' }}}}", max_staleness=60, deferrable=True, **given
    )
    poked >> deferred
"""


@pytest.mark.usefixtures("airflow_database")
def test_a_dag_run_waits_in_the_trigger_until_the_table_is_refreshed(catalog: Catalog, tmp_path: Path) -> None:
    catalog.connection.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    catalog.declare("totals", data_timestamp="2026-01-01")
    catalog.capture("totals", "orders")
    catalog.connection.execute("INSERT INTO orders VALUES (1)")
    (tmp_path / "waiting.py").write_text(DAG_FILE)
    environment = {**os.environ, "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path)}
    run = subprocess.Popen(
        [sys.executable, "-m", "airflow", "dags", "test", "waiting"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    while not catalog.listeners() and run.poll() is None:
        os.sched_yield()
    catalog.refresh("totals")
    said, _ = run.communicate(timeout=200)
    assert run.returncode == 0, said
    with create_session() as session:
        states = session.execute(select(TaskInstance.task_id, TaskInstance.state).filter_by(dag_id="waiting")).all()
    assert {row.task_id: row.state for row in states} == {"poked": "success", "deferred": "success"}, said
    assert catalog.connection.info.password not in said
