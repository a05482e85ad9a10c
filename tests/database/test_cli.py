"""`pgtrickle` on a real database: what it prints, for people and for programs, and how it exits."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle import cli, client
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor

TOTALS = "SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id"


class Shell:
    """Runs commands and keeps what they said."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        code = cli.main(list(argv))
        said = self._capsys.readouterr()
        return code, said.out, said.err

    def json(self, *argv: str) -> Any:
        code, out, err = self(*argv, "--json")
        assert code == 0, err
        return json.loads(out)


@pytest.fixture
def shell(dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """A shell in which PGTRICKLE_DSN names a database with orders; refreshes compute in PostgreSQL."""
    computing = partial(client.PgTrickle, executor=lambda: PostgresExecutor(Database(dsn)))
    monkeypatch.setattr(client, "PgTrickle", computing)
    monkeypatch.setenv("PGTRICKLE_DSN", dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(
            "CREATE TABLE orders (id int PRIMARY KEY, customer_id int, amount int);"
            " INSERT INTO orders SELECT i, i % 5, i FROM generate_series(1, 100) i"
        )
    shell = Shell(capsys)
    assert shell("install")[0] == 0
    return shell


@pytest.fixture
def totals(shell: Shell) -> None:
    assert shell("create", "totals", "--query", TOTALS, "--schedule", "5m")[0] == 0


def test_before_install_every_command_says_to_install(
    dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PGTRICKLE_DSN", dsn)
    shell = Shell(capsys)
    for argv in (
        ["status"],
        ["tree"],
        ["buffers"],
        ["cleanup"],
        ["history", "t"],
        ["validate", "--query", "SELECT 1 a"],
    ):
        code, out, err = shell(*argv)
        assert (code, out) == (2, "")
        assert "pgtrickle install" in err
    assert shell("health")[0] == 1


def test_install_says_what_it_did(shell: Shell) -> None:
    assert shell("install") == (0, "The catalog is up to date.\n", "")


def test_create_says_what_is_there(shell: Shell) -> None:
    code, out, err = shell("create", "totals", "--query", TOTALS)
    assert (code, out, err) == (0, "Stream table public.totals is there, populated, in mode AUTO.\n", "")


def test_a_query_can_come_from_a_file(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "totals.sql"
    file.write_text(TOTALS)
    assert shell.json("create", "totals", "--query-file", str(file))["name"] == "public.totals"
    code, _, err = shell("create", "more", "--query-file", str(tmp_path / "none.sql"))
    assert (code, err.count("\n")) == (2, 1)
    assert "No such file" in err


@pytest.mark.usefixtures("totals")
def test_a_refresh_is_a_row_of_figures(shell: Shell, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("INSERT INTO orders VALUES (101, 77, 5000)")
    code, out, _ = shell("refresh", "totals")
    assert code == 0
    head, _, row = out.splitlines()
    assert head.split()[:2] == ["name", "action"]
    assert row.split()[0] == "public.totals"
    result = shell.json("refresh", "totals")[0]
    assert (result["action"], result["rows_inserted"]) == ("NO_DATA", 0)
    assert shell.json("refresh", "totals", "--full")[0]["action"] == "FULL"
    assert shell.json("refresh", "--unit", "totals")[0]["action"] == "NO_DATA"


@pytest.mark.usefixtures("totals")
def test_verify_says_what_differs_and_leaves_with_one(shell: Shell, dsn: str) -> None:
    assert [row["status"] for row in shell.json("verify", "totals")] == ["EQUAL"]
    assert [row["rows_compared"] for row in shell.json("verify", "--all", "--sample", "1")] == [5]
    assert [row["status"] for row in shell.json("verify", "--all", "--sample")] == ["EQUAL"]
    with psycopg.connect(dsn) as conn:
        conn.execute("SET pgtrickle.refreshing = 'on'; DELETE FROM totals WHERE customer_id = 3")
    code, out, _ = shell("verify", "totals")
    assert (code, "DIFFERENT" in out) == (1, True)
    code, out, _ = shell("verify", "totals", "--json")
    assert (code, json.loads(out)[0]["rows"][0]["stored"]["customer_id"]) == (1, "3")
    assert shell("verify", "--all", "--repair")[0] == 0
    assert shell("verify", "totals")[0] == 0
    assert [shell("verify")[0], shell("verify", "totals", "--all")[0], shell("verify", "nothing")[0]] == [2, 2, 2]


@pytest.mark.usefixtures("totals")
def test_how_often_to_verify_is_an_option(shell: Shell) -> None:
    assert shell("alter", "totals", "--verify-every", "12h")[0] == 0
    assert [row["verify_every"] for row in shell.json("status")] == ["12h"]
    assert shell("alter", "totals", "--verify-every", "never")[0] == 0
    assert [row["verify_every"] for row in shell.json("status")] == [None]


@pytest.mark.usefixtures("totals")
def test_what_there_is_can_be_read_by_programs(shell: Shell) -> None:
    assert [row["pgt_name"] for row in shell.json("status")] == ["totals"]
    assert [row["status"] for row in shell.json("history", "totals")] == ["COMPLETED"]
    assert shell.json("tree")
    assert shell.json("sources", "totals")
    assert shell.json("buffers")
    assert "orders" in shell.json("explain", "totals")
    assert "orders" in shell.json("validate", "--query", "SELECT id FROM orders")


@pytest.mark.usefixtures("totals")
def test_what_there_is_can_be_read_by_people(shell: Shell) -> None:
    for argv in (
        ["status"],
        ["history", "totals"],
        ["tree"],
        ["sources", "totals"],
        ["buffers"],
        ["explain", "totals"],
    ):
        code, out, err = shell(*argv)
        assert (code, err) == (0, "")
        assert out.strip()


def test_what_writers_maintain_is_declared_shown_and_compared(shell: Shell, dsn: str) -> None:
    code, out, _ = shell("create", "totals", "--query", TOTALS, "--refresh-mode", "immediate")
    assert (code, out) == (0, "Stream table public.totals is there, populated, in mode IMMEDIATE.\n")
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("INSERT INTO orders VALUES (101, 77, 5000)")
        assert conn.execute("SELECT total FROM totals WHERE customer_id = 77").fetchone() == (5000,)
    code, out, _ = shell("status")
    head, _, row = out.splitlines()
    assert head.split()[3:5] == ["refresh_mode", "is_live"]
    assert row.split()[3:5] == ["IMMEDIATE", "yes"]
    (told,) = shell.json("status")
    assert (told["schedule"], told["staleness"], told["stale"], told["is_live"]) == (None, 0, False, True)
    (result,) = shell.json("refresh", "totals")
    assert (result["action"], result["rows_inserted"], result["rows_deleted"]) == ("IMMEDIATE", 0, 0)
    assert [row["status"] for row in shell.json("verify", "totals")] == ["EQUAL"]
    assert {row["status"] for row in shell.json("history", "totals")} == {"COMPLETED"}
    for argv in (["explain", "totals"], ["history", "totals"], ["sources", "totals"], ["buffers"], ["tree"]):
        assert shell(*argv)[0] == 0
    assert shell.json("refresh", "totals", "--full")[0]["action"] == "IMMEDIATE"
    for mode, live in (("full", False), ("immediate", True), ("auto", False)):
        assert shell("alter", "totals", "--refresh-mode", mode)[0] == 0
        assert [row["is_live"] for row in shell.json("status")] == [live]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["create", "t", "--query", TOTALS, "--refresh-mode", "immediate", "--schedule", "5m"], "takes no schedule"),
        (["create", "t", "--query", TOTALS, "--refresh-mode", "immediate", "--cdc-mode", "wal"], "exclude each other"),
        (["alter", "totals", "--schedule", "5m"], "takes no schedule"),
        (["alter", "totals", "--cdc-mode", "wal"], "exclude each other"),
    ],
)
def test_what_writers_maintain_takes_no_schedule(shell: Shell, argv: list[str], sentence: str) -> None:
    assert shell("create", "totals", "--query", TOTALS, "--refresh-mode", "IMMEDIATE")[0] == 0
    code, out, err = shell(*argv)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err
    assert [row["is_live"] for row in shell.json("status")] == [True]


@pytest.mark.usefixtures("totals")
def test_alter_gate_and_drop(shell: Shell) -> None:
    assert shell("alter", "totals", "--schedule", "calculated", "--status", "suspended")[0] == 0
    assert [(row["schedule"], row["status"]) for row in shell.json("status")] == [(None, "SUSPENDED")]
    assert shell("gate", "totals", "--reason", "loading")[0] == 0
    assert shell("ungate", "totals")[0] == 0
    assert shell("alter", "totals")[0] == 2
    assert shell.json("drop", "totals") == {"dropped": ["public.totals"]}
    assert shell("drop", "totals", "--if-exists")[0] == 0


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        (["create", "t", "--query", "SELEC 1"], 1, "line 1, column 1"),
        (["create", "t", "--query", "SELECT 1 / 0 AS x"], 1, "ivision by zero"),
        (["create", "t", "--query", "SELECT id FROM orders", "--schedule", "1s"], 2, "minimum of 60 seconds"),
        (["create", "t"], 2, "--query"),
        (["create", "x" * 64, "--query", "SELECT id FROM orders"], 2, "63 bytes"),
        (["create", "it's", "--query", "SELECT id FROM orders"], 2, "quote"),
        (["refresh", "nothing"], 2, "There is no stream table public.nothing"),
        (["history", "nothing"], 2, "There is no stream table public.nothing"),
        (["drop", "nothing"], 2, "There is no stream table public.nothing"),
    ],
)
def test_bad_input_is_one_sentence_and_no_traceback(shell: Shell, argv: list[str], code: int, sentence: str) -> None:
    exit_code, out, err = shell(*argv)
    assert (exit_code, out) == (code, "")
    assert err.startswith("pgtrickle: ")
    assert sentence in err
    assert err.count("\n") == 1


def test_a_warning_is_one_line_on_standard_error(shell: Shell) -> None:
    code, out, err = shell("create", "odds", "--query", "SELECT id, random() AS r FROM orders")
    assert (code, err.splitlines()[0].startswith("pgtrickle: warning: ")) == (0, True)
    assert "odds" in out


def test_drop_says_all_that_goes_and_speaks_the_command_lines_words(shell: Shell, totals: None, dsn: str) -> None:
    assert shell("create", "above", "--query", "SELECT count(*) AS n FROM totals")[0] == 0
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("CREATE VIEW mine AS SELECT * FROM totals; CREATE VIEW theirs AS SELECT * FROM mine")
    for name in ("totals", "above"):
        if name == "above":
            assert shell("drop", name)[0] == 0
        code, out, err = shell("drop", "totals")
        assert (code, out) == (2, "")
        assert "--cascade" in err
    assert shell("drop", "totals", "--cascade") == (
        0,
        "Dropped public.totals, view public.mine, view public.theirs.\n",
        "",
    )
    assert shell("drop", "totals", "--if-exists", "--cascade")[1] == "There was no stream table totals.\n"


def test_create_of_one_that_is_there_names_the_option(shell: Shell, totals: None) -> None:
    code, _, err = shell("create", "totals", "--query", TOTALS)
    assert code == 2
    assert "--or-replace" in err
