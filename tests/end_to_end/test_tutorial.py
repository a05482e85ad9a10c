"""The tutorial does what it says: its marked blocks run in order, as a reader would run them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle import cli

ROOT = Path(__file__).parent.parent.parent
_BLOCK = re.compile(r"<!-- runs -->\n```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)
_EXPECTED = re.compile(r"# → (.*)$", re.MULTILINE)


@pytest.fixture
def shop(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection[Any]]:
    """The tutorial's first section: the demo's shop, and where to find it."""
    monkeypatch.setenv("PGTRICKLE_DSN", dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute((ROOT / "airflow_provider_pgtrickle" / "demo" / "shop.sql").read_text())
        yield connection


@pytest.mark.usefixtures("spark")
def test_every_marked_block_runs_and_prints_what_it_says(
    shop: psycopg.Connection[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    namespace: dict[str, Any] = {}
    blocks = list(_BLOCK.finditer((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")))
    assert {block["language"] for block in blocks} == {"bash", "python", "sql"}
    for block in blocks:
        text = block["text"]
        match block["language"]:
            case "sql":
                shop.execute(text)
            case "python":
                exec(compile(text, "tutorial.md", "exec"), namespace)
                printed = capsys.readouterr().out.splitlines()
                expected = _EXPECTED.findall(text)
                assert printed[: len(expected)] == expected
            case "bash":
                for command in text.strip().splitlines():
                    program, *arguments = shlex.split(command)
                    assert program == "pgtrickle"
                    assert cli.main(arguments) == 0, (command, capsys.readouterr())
                capsys.readouterr()
