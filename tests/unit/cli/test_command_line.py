"""What can be said of the command line without a database."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from airflow_provider_pgtrickle import cli
from airflow_provider_pgtrickle.cli import entry, output
from airflow_provider_pgtrickle.cli.command import Answer, Command

NAMES = [
    "install", "cleanup", "create", "alter", "drop", "refresh", "verify", "status", "history", "tree",
    "sources", "buffers", "explain", "validate", "health", "gate", "ungate", "serve-requests", "dbt-package",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _no_database_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGTRICKLE_DSN", raising=False)
    monkeypatch.delenv("PGTRICKLE_DEBUG", raising=False)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command `break` fails as no command should."""

    def fail(client: object, arguments: object) -> Answer:
        raise ValueError("cannot read postgresql://bob:s3cret@db/shop\nsecond line")

    monkeypatch.setattr(entry, "commands", lambda: (Command("break", "Fail.", fail),))
    monkeypatch.setenv("PGTRICKLE_DSN", "postgresql://bob:s3cret@127.0.0.1:1/shop")


def test_every_command_is_there_and_explains_itself() -> None:
    assert [command.name for command in cli.commands()] == NAMES
    assert all(command.help.endswith(".") for command in cli.commands())


@pytest.mark.parametrize("name", NAMES)
def test_help_of_each_command_exits_0(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "--help"]) == 0
    assert "usage: pgtrickle" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["create"], ["history", "t", "-n", "many"]])
def test_misuse_exits_2(argv: list[str]) -> None:
    assert cli.main(argv) == 2


def test_no_database_named_is_misuse_and_names_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status"]) == 2
    assert capsys.readouterr().err == "pgtrickle: No database is named. Set PGTRICKLE_DSN, or pass --dsn.\n"


@pytest.mark.parametrize("argv", [["--dsn", "nonsense", "status"], ["status", "--dsn", "nonsense"]])
def test_dsn_is_understood_before_and_after_the_command(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(argv) == 2
    assert "connection string can't be read" in capsys.readouterr().err


def test_an_unreachable_database_is_one_sentence_without_the_password(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", "--dsn", "postgresql://bob:s3cret@127.0.0.1:1/shop"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("pgtrickle: PostgreSQL can't be reached at 127.0.0.1:1/shop")
    assert said.err.count("\n") == 1
    assert "s3cret" not in said.err


@pytest.mark.usefixtures("failing")
def test_a_defect_is_one_sentence_without_the_password(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["break"]) == 1
    said = capsys.readouterr().err
    assert said == (
        "pgtrickle: Unexpected ValueError: cannot read postgresql://bob:***@db/shop. "
        "Set PGTRICKLE_DEBUG=1 to see where it happened.\n"
    )


@pytest.mark.usefixtures("failing")
def test_debug_shows_the_traceback_without_the_password(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PGTRICKLE_DEBUG", "1")
    assert cli.main(["break"]) == 1
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "s3cret" not in said


def test_help_starts_neither_airflow_nor_spark() -> None:
    script = (
        "import sys; from airflow_provider_pgtrickle import cli; cli.main(['--help']);"
        "sys.exit(bool({'airflow', 'pyspark'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == 0


def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    script = f"{sys.executable} -c \"from airflow_provider_pgtrickle.cli import main; main(['--help'])\" | true"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_rows_become_a_table_with_numbers_to_the_right() -> None:
    rows = [
        {"name": "a", "rows": 12, "gated": True, "why": None},
        {"name": "bcd", "rows": 3, "gated": False, "why": "x"},
    ]
    assert output.render(Answer(rows=rows, columns=("name", "rows", "gated", "why")), as_json=False).splitlines() == [
        "name  rows  gated  why",
        "----  ----  -----  ---",
        "a       12  yes",
        "bcd      3  no     x",
    ]


def test_json_holds_what_the_table_leaves_out() -> None:
    answer = Answer(rows=[{"name": "a", "rows": 12}], columns=("name",))
    assert json.loads(output.render(answer, as_json=True)) == [{"name": "a", "rows": 12}]


def test_no_rows_are_said_to_be_none() -> None:
    assert output.render(Answer(rows=[]), as_json=False) == "(none)"
    assert output.render(Answer(rows=[]), as_json=True) == "[]"
