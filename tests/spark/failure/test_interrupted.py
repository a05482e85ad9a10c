"""Ctrl-C and SIGTERM end `pgtrickle` with everything that it started, and leave nothing that is half done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.spark.failure.shop import DEADLINE, Shop, children, until

_MAIN = "import sys; from airflow_provider_pgtrickle.cli import main; sys.exit(main())"
SIGNALS = pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])


class Command:
    """`pgtrickle …` in a session of its own, as a terminal would run it."""

    def __init__(self, dsn: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _MAIN, *arguments],
            env=os.environ | {"PGTRICKLE_DSN": dsn},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # A terminal's programs heed Ctrl-C; those of a background job, which these tests may run in, don't.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def family(self) -> list[int]:
        return children(self.process.pid)

    def has_java(self) -> bool:
        return any("java" in _arguments(pid) for pid in self.family())

    def stopped_by(self, number: int) -> tuple[int, str, list[int]]:
        """The signal to the whole foreground group, as a terminal sends it: exit code, words, who outlived it."""
        family = self.family()
        os.killpg(self.process.pid, number)
        _, said = self.process.communicate(timeout=DEADLINE)
        # The JVM may have said something before.
        last = said.splitlines(keepends=True)[-1]
        return self.process.returncode, last, [pid for pid in family if _arguments(pid)]

    def end(self) -> None:
        for pid in [*self.family(), self.process.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.communicate()


@contextmanager
def _running(dsn: str, *arguments: str) -> Iterator[Command]:
    command = Command(dsn, *arguments)
    try:
        yield command
    finally:
        command.end()


def _arguments(pid: int) -> str:
    """Empty where the process has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _nothing_is_declared(conn: psycopg.Connection, name: str) -> bool:
    found = conn.execute(
        "SELECT count(*) FROM pgtrickle.pgt_stream_tables WHERE pgt_name = %s"
        " UNION ALL SELECT count(*) FROM pg_class WHERE relname = %s"
        " UNION ALL SELECT count(*) FROM pgtrickle.pgt_refresh_history WHERE status = 'RUNNING'"
        " UNION ALL SELECT count(*) FROM pgtrickle.pgt_change_tracking WHERE source_relid = to_regclass('fresh')",
        (name, name),
    ).fetchall()
    return found == [(0,)] * 4


@SIGNALS
def test_while_spark_starts(shop: Shop, number: int, code: int) -> None:
    shop.conn.execute("CREATE TABLE fresh (id int PRIMARY KEY); INSERT INTO fresh VALUES (1)")
    with _running(shop.dsn, "create", "early", "--query", "SELECT id FROM fresh") as command:
        until(command.has_java)
        assert command.stopped_by(number) == (code, _words(number), [])
    assert _nothing_is_declared(shop.conn, "early")


@SIGNALS
def test_while_spark_computes_a_first_content(shop: Shop, number: int, code: int) -> None:
    query = "SELECT id, halt(1, id) AS v FROM fresh"
    shop.conn.execute("CREATE TABLE fresh (id int PRIMARY KEY); INSERT INTO fresh VALUES (1)")
    with _running(shop.dsn, "create", "early", "--query", query) as command:

        def start(_: ThreadPoolExecutor) -> _Watched:
            return _Watched(command)

        with shop.halted("compute", start):
            assert command.stopped_by(number) == (code, _words(number), [])
            shop.wait_for_sessions_to_end()
            assert _nothing_is_declared(shop.conn, "early")


@SIGNALS
def test_while_spark_computes_a_refresh(shop: Shop, number: int, code: int) -> None:
    shop.change()
    before = shop.conn.execute("SELECT count(*) FROM pgtrickle.pgt_refresh_history").fetchone()
    assert before is not None
    with _running(shop.dsn, "refresh", "st") as command:

        def start(_: ThreadPoolExecutor) -> _Watched:
            return _Watched(command)

        with shop.halted("compute", start):
            assert command.stopped_by(number) == (code, _words(number), [])
            shop.wait_for_sessions_to_end()
    told = shop.conn.execute(
        "SELECT status, error_message FROM pgtrickle.pgt_refresh_history ORDER BY refresh_id OFFSET %s", before
    ).fetchall()
    what = "It was interrupted (Ctrl-C)" if number == signal.SIGINT else "Its process was told to end"
    assert told == [("FAILED", f"{what}; nothing of it was committed.")]
    state = "SELECT status, consecutive_errors, lease_token FROM pgtrickle.pgt_stream_tables"
    assert shop.conn.execute(state).fetchall() == [("ACTIVE", 0, None)]
    assert shop.stages() == []


class _Watched:
    """What `halted` asks of something that runs."""

    def __init__(self, command: Command) -> None:
        self._command = command

    def done(self) -> bool:
        return self._command.process.poll() is not None

    def exception(self, timeout: float | None = None) -> BaseException | None:
        return None


def _words(number: int) -> str:
    began = "Interrupted" if number == signal.SIGINT else "Ended by SIGTERM"
    return f"pgtrickle: {began}; what was not committed is undone.\n"
