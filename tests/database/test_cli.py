"""`pgtrickle` on a real database: what it prints, for people and for programs, and how it exits."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
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


@pytest.mark.empty
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


def test_verify_says_where_it_can_not_tell_rounding_from_what_is_wrong(shell: Shell, dsn: str) -> None:
    query = "SELECT customer_id, sum(amount / 7.0::float8) * 2 AS share FROM orders GROUP BY customer_id"
    assert shell("create", "shares", "--query", query)[0] == 0
    with psycopg.connect(dsn, autocommit=True) as conn, conn.transaction():
        conn.execute("SET LOCAL pgtrickle.refreshing = 'on'")
        conn.execute("UPDATE shares SET share = share + 1 WHERE customer_id = 1")
    code, _, err = shell("verify", "shares")
    assert (code, "public.shares: share is computed from sums of floats" in err) == (0, True)


@pytest.mark.usefixtures("totals")
def test_how_often_to_verify_is_an_option(shell: Shell) -> None:
    assert shell("alter", "totals", "--verify-every", "12h")[0] == 0
    assert [row["verify_every"] for row in shell.json("status")] == ["12h"]
    assert shell("alter", "totals", "--verify-every", "never")[0] == 0
    assert [row["verify_every"] for row in shell.json("status")] == [None]


def test_a_time_zone_is_an_option(shell: Shell) -> None:
    query = "SELECT id, timestamptz '2026-07-01 12:00' AS noon FROM orders"
    assert shell("create", "noons", "--query", query, "--timezone", "Europe/Oslo")[0] == 0
    assert [row["timezone"] for row in shell.json("status")] == ["Europe/Oslo"]
    assert "by Europe/Oslo" in shell("explain", "noons")[1]
    assert "by Asia/Kolkata" in shell("validate", "--query", query, "--timezone", "Asia/Kolkata")[1]
    code, _, error = shell("alter", "noons", "--timezone", "Europe/Olso")
    assert (code, "Did you mean Europe/Oslo?" in error) == (2, True)
    assert shell("alter", "noons", "--timezone", "UTC")[0] == 0
    assert [row["timezone"] for row in shell.json("status")] == [None]


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


@pytest.mark.usefixtures("totals")
def test_the_history_is_told_in_words(shell: Shell, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(
            "UPDATE pgtrickle.pgt_refresh_history SET way = 'database', actual_ms = 57,"
            """ candidates = '{"FULL pushed": 1204.6, "difference database": 8.2}'"""
        )
        conn.execute(
            "INSERT INTO pgtrickle.pgt_refresh_history (pgt_id, action, status, error_message)"
            " SELECT pgt_id, 'DIFFERENTIAL', 'FAILED', 'division by zero' FROM pgtrickle.pgt_stream_tables"
        )
    _, out, _ = shell("history", "totals")
    head, _, failed, filled = (line.split() for line in out.splitlines())
    assert head == ["refresh_id", "start_time", "did", "rows", "duration_ms", "notes"]
    assert failed[3:] == ["FAILED", "(DIFFERENTIAL)", "division", "by", "zero"]
    assert filled[3:8] == ["FULL", "(never_populated)", "+5", "~0", "-0"]
    assert "database 57 ms; predicted: difference database 8 ms, FULL pushed 1,205 ms" in out
    candidates = [row["candidates"] for row in shell.json("history", "totals")]
    assert candidates == [None, {"FULL pushed": 1204.6, "difference database": 8.2}]


@pytest.mark.usefixtures("totals")
def test_health_counts_what_status_shows(shell: Shell) -> None:
    ranked = f"SELECT t.*, rank() OVER (ORDER BY total) AS place FROM ({TOTALS}) t"
    assert shell("create", "ranked", "--query", ranked, "--schedule", "5m")[0] == 0
    told = {row["check"]: row["detail"] for row in shell.json("health")}
    assert told["stream tables"] == "2 stream tables and 1 part, none halted"
    assert len(shell.json("status")) == 2


@pytest.mark.usefixtures("totals")
@pytest.mark.parametrize(
    ("age", "state", "is_late"),
    [
        # Just before each refresh a table is as old as its schedule, which is 5 minutes.
        ("7 minutes", "is_gated = false", False),
        ("15 minutes", "is_gated = false", True),
        ("15 minutes", "tier = 'warm'", False),
        ("25 minutes", "tier = 'warm'", True),
        ("1 day", "tier = 'cold'", False),
        ("1 day", "is_gated = true", False),
    ],
)
def test_health_names_what_is_older_than_twice_its_schedule(
    shell: Shell, dsn: str, age: str, state: str, is_late: bool
) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(f"UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = now() - interval '{age}', {state}")
    (told,) = (row["detail"] for row in shell.json("health") if row["check"] == "stream tables")
    late = "; older than twice their schedule: public.totals"
    assert told == f"1 stream table, none halted{late if is_late else ''}"


def test_what_writers_maintain_is_declared_shown_and_compared(shell: Shell, dsn: str) -> None:
    code, out, _ = shell("create", "totals", "--query", TOTALS, "--refresh-mode", "immediate")
    assert (code, out) == (0, "Stream table public.totals is there, populated, in mode IMMEDIATE.\n")
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("INSERT INTO orders VALUES (101, 77, 5000)")
        assert conn.execute("SELECT total FROM totals WHERE customer_id = 77").fetchone() == (5000,)
    code, out, _ = shell("status")
    head, _, row = out.splitlines()
    assert head.split()[2:4] == ["refresh_mode", "is_live"]
    assert row.split()[2:4] == ["IMMEDIATE", "yes"]
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
def test_what_another_query_will_cost_is_told_before(shell: Shell) -> None:
    (there,) = shell.json("status")
    narrowed = f"SELECT * FROM ({there['original_query']}) AS q WHERE false"
    code, told, _ = shell("alter", "totals", "--query", narrowed, "--plan")
    assert (code, "its content follows from what is stored" in told) == (0, True)
    told_anew = shell.json("alter", "totals", "--query", "SELECT 1 AS one", "--plan")
    assert (told_anew["kept"], told_anew["why_anew"]) == (None, "its table is made anew")
    assert shell("alter", "totals", "--plan")[0] == 2
    (still,) = shell.json("status")
    assert (still["original_query"], still["needs_reinit"]) == (there["original_query"], False)


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


BIG = "SELECT customer_id, total FROM totals WHERE total > 100"


@pytest.mark.usefixtures("totals")
def test_refresh_tells_of_every_table_that_it_refreshed(shell: Shell, dsn: str) -> None:
    assert shell("create", "big", "--query", BIG)[0] == 0
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("INSERT INTO orders VALUES (101, 77, 5000)")
    told = {row["name"]: row["action"] for row in shell.json("refresh", "big", "totals")}
    # Each once, in the order of the work.
    assert told == {"public.totals": "DIFFERENTIAL", "public.big": "DIFFERENTIAL"}
    assert list(told) == ["public.totals", "public.big"]


@pytest.mark.usefixtures("totals")
@pytest.mark.parametrize(
    ("state", "code", "told"),
    [
        ("status = 'SUSPENDED', last_error = 'no such column'", 1, "it is suspended (no such column). Mend the cause"),
        ("status = 'ERROR', last_error = NULL", 1, "then pgtrickle alter public.totals --status active"),
        ("is_gated = true, gated_reason = 'loading'", 0, "it is gated (loading). pgtrickle ungate public.totals"),
    ],
)
def test_a_table_that_is_not_refreshed_comes_with_its_remedy(
    shell: Shell, dsn: str, state: str, code: int, told: str
) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(f"UPDATE pgtrickle.pgt_stream_tables SET {state}")
        conn.execute("INSERT INTO orders VALUES (101, 77, 5000)")
    found, out, err = shell("refresh", "totals")
    assert (found, err.count("\n")) == (code, 1)
    assert "SKIP" in out
    assert told in err


@pytest.mark.usefixtures("totals")
@pytest.mark.parametrize(
    ("state", "code", "reason", "told"),
    [
        (
            "status = 'ERROR', last_error = 'no such column'", 1, "error: public.small",
            "it is error (no such column). Mend the cause, then pgtrickle alter public.small --status active, or"
            " pgtrickle refresh public.small --full.",
        ),
        (
            "is_gated = true, gated_reason = 'loading'", 0, "gated: public.small: loading",
            "it is gated (loading). pgtrickle ungate public.small lets it be refreshed again.",
        ),
    ],
)  # fmt: skip
def test_of_a_unit_the_member_that_holds_the_others_back_is_told(
    shell: Shell, dsn: str, state: str, code: int, reason: str, told: str
) -> None:
    """A diamond, which is one unit by default."""
    assert shell("create", "big", "--query", BIG)[0] == 0
    assert shell("create", "small", "--query", BIG.replace(">", "<="))[0] == 0
    assert shell("create", "both", "--query", "SELECT * FROM big UNION ALL SELECT * FROM small")[0] == 0
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(f"UPDATE pgtrickle.pgt_stream_tables SET {state} WHERE pgt_name = 'small'")
        conn.execute("INSERT INTO orders VALUES (101, 77, 5000)")
    found, out, err = shell("refresh", "both", "--json")
    reasons = {row["name"]: (row["action"], row["fallback_reason"]) for row in json.loads(out)}
    own = reason.replace("public.small: ", "").removesuffix(": public.small")
    assert reasons == {
        "public.totals": ("DIFFERENTIAL", None),
        "public.big": ("SKIP", reason), "public.small": ("SKIP", own), "public.both": ("SKIP", reason),
    }  # fmt: skip
    assert found == code
    assert err == (
        "pgtrickle: public.small was not refreshed, nor was what is refreshed together with it (public.big,"
        f" public.both): {told}\n"
    )


@pytest.mark.usefixtures("totals")
def test_the_remedy_for_a_halted_member_brings_its_unit_back(shell: Shell, dsn: str) -> None:
    assert shell("create", "big", "--query", BIG)[0] == 0
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("UPDATE pgtrickle.pgt_stream_tables SET status = 'ERROR' WHERE pgt_name = 'big'")
        conn.execute("INSERT INTO orders VALUES (101, 77, 5000)")
    assert shell("refresh", "--unit", "big", "totals")[0] == 1
    assert shell("refresh", "big", "--full")[0] == 0
    assert {row["status"] for row in shell.json("status")} == {"ACTIVE"}


@pytest.mark.usefixtures("totals")
def test_requests_that_fail_are_told_by_the_exit_code(shell: Shell, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("SELECT pgtrickle.request_refresh('totals')")
        assert shell("serve-requests")[0] == 0
        conn.execute("SELECT pgtrickle.gate('totals'), pgtrickle.request_refresh('totals')")
    code, out, _ = shell("serve-requests")
    assert (code, "It was not refreshed, because it is gated" in out) == (1, True)


@pytest.mark.usefixtures("totals")
def test_status_tells_the_last_action_its_rows_the_gate_and_the_error(shell: Shell, dsn: str) -> None:
    assert shell("gate", "totals", "loading")[0] == 0
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("UPDATE pgtrickle.pgt_stream_tables SET last_error = 'no such column'")
    code, out, _ = shell("status")
    head, _, row = out.splitlines()
    assert code == 0
    assert head.split() == [
        "name", "status", "refresh_mode", "is_live", "schedule", "last_action", "last_rows", "staleness", "stale",
        "gate", "error",
    ]  # fmt: skip
    assert row.split()[:7] == ["public.totals", "ACTIVE", "AUTO", "no", "5m", "FULL", "5"]
    assert row.endswith("no     loading  no such column")
    assert shell("watch")[1].splitlines()[0].split() == head.split()


@pytest.mark.usefixtures("totals")
def test_explain_is_short_unless_more_is_asked_for(shell: Shell) -> None:
    short = shell("explain", "totals")[1]
    assert "differentiable:   yes" in short
    assert "kept by:          merge by adding: changes are added to the stored sums and counts" in short
    assert "a refresh reads:  the changes of public.orders" in short
    assert "computed in full: about" in short
    assert "SELECT" not in short
    assert len(short.splitlines()) < 12
    tree = shell("explain", "totals", "--tree")[1]
    assert ("Scan public.orders" in tree, "SELECT" in tree) == (True, False)
    whole = shell("explain", "totals", "--sql")[1]
    assert "SELECT" in whole
    assert shell.json("explain", "totals") == whole.removesuffix("\n") == shell.json("explain", "totals", "--sql")
    _, refused, _ = shell("validate", "--query", "SELECT now() AS at, id FROM orders")
    assert "differentiable:   no\nwhy not:" in refused
    _, advice, _ = shell("validate", "--query", "SELECT customer_id, max(amount) AS m FROM orders GROUP BY 1")
    assert "indexes that would help:\n  CREATE INDEX ON" in advice


@pytest.mark.usefixtures("totals")
def test_a_name_that_is_nearly_right_is_told(shell: Shell) -> None:
    for argv in (["refresh", "total"], ["history", "total"], ["gate", "total"]):
        code, _, err = shell(*argv)
        assert (code, err) == (2, "pgtrickle: There is no stream table public.total. Did you mean public.totals?\n")


@pytest.mark.usefixtures("totals")
def test_remedies_are_in_the_words_of_the_command_line(shell: Shell) -> None:
    assert shell("create", "big", "--query", BIG)[0] == 0
    for argv, remedy in ((["drop", "totals"], "--cascade."), (["create", "big", "--query", BIG], "--or-replace.")):
        code, _, err = shell(*argv)
        assert (code, err.count("\n")) == (2, 1)
        assert err.endswith(f"{remedy}\n")
        assert "True" not in err


def declared(dsn: str, name: str, graph: str, file: str, *, removed: bool = False) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(
            "INSERT INTO pgtrickle.pgt_owners (pgt_id, bundle, file, graph, removed_at) SELECT pgt_id, 'dags', %s, %s,"
            " CASE WHEN %s THEN now() END FROM pgtrickle.pgt_stream_tables WHERE pgt_name = %s",
            [file, graph, removed, name],
        )


@pytest.mark.usefixtures("totals")
def test_prune_lists_what_no_file_declares_any_more_and_drops_it_when_told_to(
    shell: Shell, dsn: str, tmp_path: Path
) -> None:
    for name in ("big", "more", "mine"):
        assert shell("create", name, "--query", BIG)[0] == 0
    declared(dsn, "totals", "shop", "shop.py")
    declared(dsn, "big", "shop", "shop.py", removed=True)
    declared(dsn, "more", "old", "gone.py")
    (tmp_path / "shop.py").touch()
    assert [row["name"] for row in shell.json("prune")] == ["public.big"]
    assert [row["name"] for row in shell.json("prune", "--graph", "old")] == ["public.big", "public.more"]
    code, out, err = shell("prune", "--dags", str(tmp_path))
    assert (code, "old in gone.py of bundle dags" in out) == (0, True)
    assert err == "pgtrickle: Nothing was dropped. pgtrickle prune --yes drops them.\n"
    assert sorted(shell.json("prune", "--dags", str(tmp_path), "--yes")["dropped"]) == ["public.big", "public.more"]
    # What people declared by hand is nobody's to prune.
    assert [row["name"] for row in shell.json("status")] == ["public.mine", "public.totals"]
    assert shell.json("prune") == []


@pytest.mark.usefixtures("totals")
def test_what_a_file_declares_is_not_redeclared_by_hand(shell: Shell, dsn: str) -> None:
    declared(dsn, "totals", "shop", "team/shop.py")
    assert shell("create", "totals", "--query", TOTALS, "--schedule", "5m", "--or-replace")[0] == 0
    code, _, err = shell("create", "totals", "--query", f"{TOTALS} HAVING count(*) > 1", "--or-replace")
    assert code == 2
    assert "It is declared by shop in team/shop.py of bundle dags, whose next plan would undo this" in err
    code, _, err = shell("alter", "totals", "--schedule", "10m")
    assert code == 0
    assert "warning: public.totals is declared by shop in team/shop.py of bundle dags: change it there too" in err
    assert shell("alter", "totals", "--status", "suspended")[2] == ""


@pytest.mark.usefixtures("totals")
def test_uninstall_leaves_nothing(shell: Shell, dsn: str) -> None:
    ranks = "SELECT customer_id, rank() OVER (ORDER BY sum(amount)) AS r FROM orders GROUP BY 1"
    assert shell("create", "ranks", "--query", ranks)[0] == 0
    assert shell("create", "live", "--query", TOTALS, "--refresh-mode", "immediate")[0] == 0
    code, _, err = shell("uninstall")
    assert (code, "would drop public.live, public.ranks, public.totals, all captured" in err) == (2, True)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("CREATE VIEW mine AS SELECT total FROM totals")
        code, _, err = shell("uninstall", "--yes")
        assert (code, "view public.mine depends on table public.totals" in err, "--cascade" in err) == (2, True, True)
        assert shell("status")[0] == 0
        assert shell("uninstall", "--yes", "--cascade")[0] == 0
        left = conn.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pgtrickle%'"
            " UNION ALL SELECT tgname FROM pg_trigger UNION ALL SELECT relname FROM pg_class"
            " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v')"
        ).fetchall()
        assert left == [("orders",)]
        conn.execute("INSERT INTO orders VALUES (1000, 1, 1)")
    assert shell("install")[0] == 0


@pytest.mark.usefixtures("totals")
def test_who_waits_at_a_terminal_sees_what_is_done(
    shell: Shell, dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, its = pty.openpty()
    monkeypatch.setenv("TERM", "xterm-256color")
    seen: list[str] = []

    def watch(holder: psycopg.Connection[Any]) -> None:
        """Let the refresh go on when the terminal tells that it writes, which it can't while the table is held."""
        while "writing the difference" not in "".join(seen):
            seen.append(os.read(ours, 4096).decode(errors="replace"))
        holder.rollback()

    with psycopg.connect(dsn) as conn, os.fdopen(its, "w") as terminal:
        conn.execute("INSERT INTO orders VALUES (101, 77, 5000)")
        conn.commit()
        conn.execute("LOCK TABLE totals IN SHARE ROW EXCLUSIVE MODE")
        monkeypatch.setattr(sys, "stderr", terminal)
        watcher = threading.Thread(target=watch, args=(conn,))
        watcher.start()
        assert cli.main(["refresh", "totals"]) == 0
        watcher.join()
    os.close(ours)
    assert "public.totals: writing the difference" in "".join(seen)
    assert "DIFFERENTIAL" in capsys.readouterr().out


@pytest.mark.usefixtures("totals")
def test_watch_follows_what_postgresql_tells_until_ctrl_c(shell: Shell, dsn: str) -> None:
    ours, its = pty.openpty()
    seen: list[str] = []

    def until(words: str) -> None:
        while words not in "".join(seen):
            seen.append(os.read(ours, 4096).decode(errors="replace"))

    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "30"}
    # It looks by itself only after an hour.
    # Whoever runs the tests in the background may have had SIGINT ignored.
    heeds = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [sys.executable, "-c", f"{heeds}; from airflow_provider_pgtrickle.cli import main; sys.exit(main())"]
    watching = subprocess.Popen(
        [*command, "watch", "--interval", "3600"], stdin=its, stdout=its, stderr=its, env=environment
    )
    try:
        until("totals")
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("SELECT pgtrickle.gate('totals', 'held by a test')")
            conn.execute("NOTIFY pg_trickle_alert, 'look'")
        until("held")
        watching.send_signal(signal.SIGINT)
        assert watching.wait() == 0
    finally:
        watching.kill()
        watching.wait()
        os.close(its)
        os.close(ours)
