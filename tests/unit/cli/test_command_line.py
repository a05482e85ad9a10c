"""What can be said of the command line without a database."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from airflow_provider_pgtrickle import __version__, cli
from airflow_provider_pgtrickle.cli import entry, output
from airflow_provider_pgtrickle.cli.command import Answer, Command

NAMES = [
    "init", "completion", "install", "cleanup", "pump", "prune", "uninstall", "create", "alter", "drop", "refresh",
    "verify", "status", "watch", "history", "tree", "sources", "buffers", "explain", "validate", "calibrate", "health",
    "gate", "ungate", "serve-requests", "dbt-package",
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


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["statsu"], "pgtrickle: There is no command 'statsu'. Did you mean status?"),
        (["refresh", "t", "--foll"], "pgtrickle: --foll is not understood here. Did you mean --full?"),
        (["xyz"], "pgtrickle: There is no command 'xyz'."),
    ],
)
def test_a_slip_of_the_keyboard_is_told_what_was_meant(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(argv) == 2
    assert capsys.readouterr().err == f"{said}\nTry: pgtrickle --help\n"


def test_a_wrong_value_is_told_with_the_right_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "tcsh"]) == 2
    assert capsys.readouterr().err == (
        "pgtrickle: shell can't be 'tcsh': it is one of bash, zsh, fish.\nTry: pgtrickle completion --help\n"
    )


def test_every_argument_says_what_it_is() -> None:
    silent = [(c.name, given.flags) for c in cli.commands() for given in c.arguments if not given.options.get("help")]
    assert silent == []


def test_it_tells_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"pgtrickle {__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_it(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    assert "pgtrickle" in capsys.readouterr().out


def test_what_a_shell_asks_is_answered(tmp_path: Path) -> None:
    """As bash asks it: by the environment, and the answer on descriptor 8."""
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": "pgtrickle re", "COMP_POINT": "12", "_ARGCOMPLETE_IFS": " "}
    script = "import sys; from airflow_provider_pgtrickle.cli import main; sys.exit(main([]))"
    command = ["bash", "-c", f"{sys.executable} -c '{script}' 8>{tmp_path / 'told'} 9>/dev/null"]
    subprocess.run(command, env={**os.environ, **asked}, check=False)
    assert (tmp_path / "told").read_text().split() == ["refresh"]


def test_a_first_project_is_written_and_never_over_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    dsn = "postgresql://bob:s3cret@db:5433/shop?sslmode=require"
    assert cli.main(["init", str(folder), "--dsn", dsn]) == 0
    assert "s3cret" not in capsys.readouterr().out
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert written == {
        ".gitignore", "Dockerfile", "README.md", "compose.yaml", "connections.json", "dags/stream_tables.py", "shop.sql"
    }  # fmt: skip
    connections = json.loads((folder / "connections.json").read_text())
    assert connections["shop_pg"] == {
        "conn_type": "pgtrickle", "host": "db", "port": 5433, "login": "bob", "password": "s3cret", "schema": "shop",
        "extra": {"sslmode": "require"},
    }  # fmt: skip
    assert (folder / "connections.json").stat().st_mode & 0o077 == 0
    assert "connections.json" in (folder / ".gitignore").read_text()
    assert "s3cret" not in (folder / "README.md").read_text()
    assert set(yaml.safe_load((folder / "compose.yaml").read_text())["services"]) == {"postgres", "airflow"}
    # The image has the Airflow that the tests run on.
    locked = re.search(
        r"^apache-airflow==(\S+)$", (Path(__file__).parents[3] / "requirements.lock").read_text(), re.MULTILINE
    )
    assert locked is not None
    assert (folder / "Dockerfile").read_text().startswith(f"FROM apache/airflow:{locked[1]}\n")
    assert cli.main(["init", str(folder)]) == 2
    assert "is there already" in capsys.readouterr().err


SHOWN = """
from airflow_provider_pgtrickle.cli import output
from airflow_provider_pgtrickle.cli.command import Answer
rows = [{"name": "public.totals", "status": "ERROR", "nothing": None, "error": "a long sentence " * 20}]
output.show(Answer(rows=rows, columns=tuple(rows[0])), False)
"""


def on_a_terminal(columns: int, code: str) -> str:
    """What a program prints on a terminal so wide.

    COLUMNS, NO_COLOR and their like would win over the terminal, and a CI sets some of them.
    """
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    kept = os.environ.keys() - {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}
    environment = {**{name: os.environ[name] for name in kept}, "TERM": "xterm-256color"}
    with subprocess.Popen([sys.executable, "-c", code], stdin=its, stdout=its, stderr=its, env=environment):
        os.close(its)
        said = b""
        with suppress(OSError):
            while more := os.read(ours, 4096):
                said += more
    os.close(ours)
    return said.decode()


@pytest.mark.parametrize("columns", [60, 120])
def test_on_a_terminal_a_table_fits_and_has_colours(columns: int) -> None:
    said = on_a_terminal(columns, SHOWN)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", said).splitlines()
    assert len(lines) > 4
    assert max(map(len, lines)) <= columns
    assert "\x1b[1;31mERROR" in said
    assert "nothing" not in said


def test_elsewhere_a_line_is_a_row_without_colours() -> None:
    done = subprocess.run([sys.executable, "-c", SHOWN], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 3
    assert "\x1b" not in done.stdout


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


def test_help_loads_neither_airflow_nor_spark_nor_the_algebra() -> None:
    script = (
        "import sys; from airflow_provider_pgtrickle import cli; cli.main(['--help']);"
        "sys.exit(bool({'airflow', 'pyspark', 'sqlglot'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == 0


def test_a_compiled_sqlglot_is_told_in_a_sentence() -> None:
    script = (
        "import sys, sqlglot.parser; sqlglot.parser.__file__ = 'parser.so';"
        "from airflow_provider_pgtrickle.cli import main; sys.exit(main(['status']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("pgtrickle: sqlglot is compiled here, by the package sqlglotc,")


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
