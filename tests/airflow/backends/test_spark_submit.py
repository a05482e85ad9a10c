"""What is submitted: the application, the package, and no word about the database."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_pgtrickle.backends.request import RefreshRequest
from airflow_provider_pgtrickle.backends.spark_submit import SparkSubmitBackend, compute_zip
from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.engine.spark.package import application

DSN = "postgresql://bob:hunter2@db.internal:5432/shop"
REQUEST = RefreshRequest((("a", "b"), ("c",)), "token", DSN, settings={"lock_timeout_seconds": 7})


@pytest.fixture(params=["local%5B2%5D", "spark%3A%2F%2Fhost:7077", "yarn"])
def connection(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", f"spark://{request.param}")
    return "spark_test"


def test_the_dsn_stands_in_the_environment_only(connection: str) -> None:
    hook = SparkSubmitBackend(connection, {"conf": {"spark.executor.cores": 1}})._prepared(REQUEST)
    command = " ".join(hook._build_spark_submit_command(str(application("refresh.py"))))
    assert "--tables a,b --tables c --run-token token" in command
    assert "spark.executor.cores=1" in command
    for word in ("hunter2", "db.internal", "PGTRICKLE_DSN"):
        assert word not in command
    assert hook._env is not None
    assert hook._env["PGTRICKLE_DSN"] == DSN
    assert hook._env["PGTRICKLE_LOCK_TIMEOUT_SECONDS"] == "7"


def test_the_application_is_told_which_tables_full_does_not_mean(connection: str) -> None:
    asked = replace(REQUEST, force_full=True, along=("b", "c"))
    command = SparkSubmitBackend(connection, {})._prepared(asked)._build_spark_submit_command("refresh.py")
    assert command[-3:] == ["--along", "b,c", "--full"]


def test_a_driver_in_the_cluster_is_refused_unless_a_secret_carries_the_dsn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", "spark://yarn?deploy-mode=cluster")
    with pytest.raises(UsageError, match="deploy mode client"):
        SparkSubmitBackend("spark_test", {})._prepared(REQUEST)


def test_an_argument_that_spark_submit_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", "spark://yarn")
    with pytest.raises(UsageError, match="executor_memroy"):
        SparkSubmitBackend("spark_test", {"executor_memroy": "1g"})._prepared(REQUEST)


def test_the_request_does_not_print_its_dsn() -> None:
    assert "hunter2" not in repr(REQUEST)


def test_the_zip_holds_all_that_the_application_imports_and_nothing_of_airflow(tmp_path: Path) -> None:
    archive = compute_zip()
    assert archive.stat().st_mode & 0o077 == 0
    names = zipfile.ZipFile(archive).namelist()
    assert not [name for name in names if "/operators/" in name and "/dvm/" not in name]
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); sys.modules['airflow'] = None\n"
        "import runpy, airflow_provider_pgtrickle as p\n"
        f"assert p.__file__.startswith({str(archive)!r}), p.__file__\n"
        f"runpy.run_path({str(application('refresh.py'))!r}, run_name='imported')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr


def test_an_unchanged_package_is_zipped_once() -> None:
    first = compute_zip()
    compute_zip.cache_clear()
    assert compute_zip() == first
