"""Airflow reads only files in which it finds both words, "dag" and "airflow"; others it skips without a word."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.utils.file import might_contain_dag

DAGS = Path(__file__).parent.parent.parent / "dags"


@pytest.mark.parametrize("path", sorted(DAGS.glob("*.py")), ids=lambda path: path.name)
def test_airflow_takes_an_example_for_a_dag_file(path: Path) -> None:
    assert might_contain_dag(str(path), safe_mode=True)
