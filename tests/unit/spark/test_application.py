"""spark_apps/refresh.py called wrongly: one sentence, the right exit code, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from airflow_provider_pgtrickle.engine.spark.package import application


def _run(*arguments: str, dsn: str | None = None) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if key != "PGTRICKLE_DSN"}
    env |= {"PGTRICKLE_DSN": dsn} if dsn else {}
    env |= {"PGTRICKLE_RETRY_ATTEMPTS": "1"}
    return subprocess.run(
        [sys.executable, str(application()), *arguments], env=env, capture_output=True, text=True, timeout=60
    )


def test_no_tables_is_a_wrong_call():
    ran = _run()
    assert ran.returncode == 2
    assert "--tables" in ran.stderr


@pytest.mark.parametrize(
    ("dsn", "tables", "sentence"),
    [
        (None, "a", "PGTRICKLE_DSN is not set."),
        ("not a dsn:s3cret@", "a", "The connection string can't be read."),
        ("postgresql://app:s3cret@127.0.0.1:1/db", "a,,b", "empty"),
    ],
)
def test_a_wrong_call_is_one_sentence_and_code_2(dsn, tables, sentence):
    ran = _run("--tables", tables, dsn=dsn)
    assert ran.returncode == 2
    assert sentence in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert "s3cret" not in ran.stderr


def test_an_unreachable_database_is_one_sentence_and_code_1():
    ran = _run("--tables", "a", dsn="postgresql://app:s3cret@127.0.0.1:1/db")
    assert ran.returncode == 1
    assert "127.0.0.1:1/db" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert "s3cret" not in ran.stderr
