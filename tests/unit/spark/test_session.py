"""What is refused before any JVM starts, in one sentence."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from airflow_provider_pgtrickle.engine.errors import ConnectionFault, EnvironmentFault
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.jars import jdbc_jar
from airflow_provider_pgtrickle.engine.spark.session import local_conf, obtain


def test_a_given_session_is_used_as_it_is():
    given: Any = object()
    assert obtain(given, Settings()) is given


def test_an_unreachable_connect_server_is_named_without_its_token(monkeypatch):
    with socket.socket() as reserved:
        # Bound and not listening: nothing else can answer there.
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        monkeypatch.setenv("SPARK_REMOTE", f"sc://127.0.0.1:{port}/;token=s3cret")
        # A session that other tests left active would be taken before any remote one.
        monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
        with pytest.raises(
            ConnectionFault, match=rf"No Spark Connect server answers at 127\.0\.0\.1:{port}\."
        ) as raised:
            obtain(None, Settings())
    assert "s3cret" not in str(raised.value)


def test_a_jar_that_does_not_exist_is_named_with_the_setting():
    with pytest.raises(EnvironmentFault, match=r"'/nowhere/pg\.jar' does not exist.*jdbc_jar"):
        jdbc_jar(Settings(jdbc_jar="/nowhere/pg.jar"))


def test_a_jar_from_the_settings_wins(tmp_path):
    jar = tmp_path / "mine.jar"
    jar.touch()
    assert jdbc_jar(Settings(jdbc_jar=str(jar))) == jar


def test_a_local_session_listens_on_loopback_only_and_has_no_ui(tmp_path):
    jar = tmp_path / "mine.jar"
    jar.touch()
    conf = local_conf(Settings(jdbc_jar=str(jar), spark_master="local[2]"))
    assert conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert conf["spark.ui.enabled"] == "false"
