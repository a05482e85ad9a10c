"""The cookbook's pages do what they say: their marked blocks run in order, and answer what stands there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from airflow_provider_pgtrickle import cli, client
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor

PAGES = sorted((Path(__file__).parents[2] / "docs" / "cookbook").glob("*.md"))
_BLOCK = re.compile(r"<!-- runs(?: as (?P<who>\w+))? -->\n```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)
_ANSWER = re.compile(r"^-- → (.*)$", re.MULTILINE)


@pytest.fixture
def shell(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell in which PGTRICKLE_DSN names a database with a catalog; refreshes compute in PostgreSQL."""
    monkeypatch.setattr(
        client, "PgTrickle", partial(client.PgTrickle, executor=lambda: PostgresExecutor(Database(dsn)))
    )
    monkeypatch.setenv("PGTRICKLE_DSN", dsn)
    assert cli.main(["install"]) == 0


@pytest.fixture
def admin(admin_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(admin_dsn, autocommit=True) as session:
        known = {name for (name,) in session.execute("SELECT rolname FROM pg_roles")}
        yield session
        session.execute("RESET ROLE")
        # Roles belong to the server, and the next page may make one of the same name.
        for (name,) in session.execute("SELECT rolname FROM pg_roles").fetchall():
            if name not in known:
                role = psycopg.sql.Identifier(name)
                session.execute(psycopg.sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(role))


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "README"], ids=lambda page: page.stem)
def test_every_marked_block_runs_and_answers_what_it_says(
    page: Path, dsn: str, admin: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = list(_BLOCK.finditer(page.read_text(encoding="utf-8")))
    assert blocks
    with psycopg.connect(dsn, autocommit=True) as mine:
        for block in blocks:
            if block["language"] == "sql":
                assert _answers(admin if block["who"] else mine, block["text"]) == _ANSWER.findall(block["text"])
            else:
                for command in block["text"].strip().splitlines():
                    program, *arguments = shlex.split(command)
                    assert program == "pgtrickle"
                    assert cli.main(arguments) == 0, (command, capsys.readouterr())


def _answers(session: psycopg.Connection, text: str) -> list[str]:
    """The rows of all statements of a block, if it says what they are."""
    cursor = session.execute(text.encode())
    if "-- →" not in text:
        return []
    lines = []
    while True:
        if cursor.description is not None:
            lines += [" | ".join(map(str, row)) for row in cursor.fetchall()]
        if not cursor.nextset():
            return lines
