"""What the pages show of Airflow works as shown: DAG files load, connections are what the back ends take."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import psycopg
import pytest
from airflow.cli.cli_parser import get_parser
from airflow.dag_processing.dagbag import DagBag

from airflow_provider_pgtrickle.engine.catalog.migrate import install

ROOT = Path(__file__).parent.parent.parent
_MARKED = re.compile(r"<!-- checked (?P<what>\w+) -->\n```\w+\n(?P<text>.*?)```", re.DOTALL)
_README = re.compile(r"```python\n(?P<text>\"\"\"A DAG file.*?)```", re.DOTALL)


def _checked(what: str) -> list[Any]:
    return [
        pytest.param(block["text"], id=f"{page.stem}-{number}")
        for page in sorted((ROOT / "docs").rglob("*.md"))
        for number, block in enumerate(_MARKED.finditer(page.read_text(encoding="utf-8")))
        if block["what"] == what
    ]


@pytest.mark.parametrize("text", _checked("python"))
def test_a_snippet_runs(airflow_database: None, text: str) -> None:
    namespace: dict[str, Any] = {}
    exec(compile(text, "page", "exec"), namespace)
    if "graph" in namespace:
        assert namespace["graph"].dags()


@pytest.mark.parametrize("text", _checked("sql"))
def test_sql_for_operators_of_the_database_runs(dsn: str, text: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        install(conn)
        conn.execute(text)


@pytest.mark.parametrize("text", _checked("connections"))
def test_airflow_takes_the_command(text: str) -> None:
    for command in text.strip().splitlines():
        program, *arguments = shlex.split(command)
        assert program == "airflow"
        assert get_parser().parse_args(arguments).subcommand == "add"


def test_the_readmes_example_is_one_dag_with_these_tasks(airflow_database: None, tmp_path: Path) -> None:
    found = _README.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    (tmp_path / "example.py").write_text(found["text"])
    bag = DagBag(str(tmp_path), bundle_path=tmp_path, bundle_name="readme")
    assert bag.import_errors == {}
    assert set(bag.dags["shop"].task_ids) == {"plan", "order_totals", "big_customers"}
