"""Queries over what PostgreSQL's manual lists: declared, changed three times, compared, the action asserted.

A query is one line of `queries/*.sql`. What follows ` -- ` says what is expected of it besides being DIFFERENTIAL:

    full: words        AUTO runs it FULL, for a reason with these words
    refused: words     it is refused, with these words
    topk               its refreshes are TOPK
    looks: why         equal values of it may look different (1.0 and 1.00), so values are compared and not texts
    from 16            the server has to be that new
    with xml           it has to be built with libxml
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import psycopg
import pytest
from psycopg import sql

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import NotDifferentiable, PgTrickleError
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests import servers
from tests.foreign.world import FOLDER, TABLES, Changes, schema

CYCLES = 3


@dataclass(frozen=True)
class Query:
    text: str
    note: str = ""

    @property
    def mode(self) -> str:
        return "AUTO" if self.note.startswith("full") else "DIFFERENTIAL"

    @property
    def actions(self) -> set[str]:
        """What a refresh may do: a cycle's statements may have found no row to change."""
        for word, actions in (("full", {"FULL", "NO_DATA"}), ("topk", {"TOPK", "NO_DATA"})):
            if self.note.startswith(word):
                return actions
        return {"DIFFERENTIAL", "NO_DATA"}

    @property
    def words(self) -> str:
        return self.note.partition(": ")[2]

    @property
    def tables(self) -> list[str]:
        """What is changed: every table that the text names, or a view of it reads."""
        behind = {"rich": ["emp", "dept"], "base": ["child"]}
        named = [t for t in TABLES if re.search(rf"\b{t}\b", self.text)]
        named += [t for name, tables in behind.items() if name in self.text for t in tables]
        return list(dict.fromkeys(named))


def _queries() -> Iterator[pytest.ParameterSet]:
    for path in sorted((FOLDER / "queries").glob("*.sql")):
        for number, line in enumerate(filter(str.strip, path.read_text().splitlines())):
            text, _, note = line.partition(" -- ")
            yield pytest.param(Query(text, note), id=f"{path.stem}-{number}")


@dataclass
class World:
    conn: psycopg.Connection
    client: PgTrickle
    changes: Changes

    def lacks(self, query: Query) -> bool:
        """Whether this server can't have the query."""
        if query.note == "with xml":
            return not self.has_xml
        return query.note.startswith("from") and self.conn.info.server_version < int(query.note.split()[1]) * 10_000

    @cached_property
    def has_xml(self) -> bool:
        try:
            self.conn.execute("SELECT xmlparse(DOCUMENT '<a/>')")
        except psycopg.errors.FeatureNotSupported:
            return False
        return True

    def expect_one_judgement(self, query: Query) -> None:
        """`validate` says yes exactly where create in mode DIFFERENTIAL doesn't refuse, and the same where it does."""
        told = self.client.validate_query(query.text)
        assert told.differentiable is (query.mode == "DIFFERENTIAL")
        if not told.differentiable:
            with pytest.raises(NotDifferentiable) as refused:
                self.client.create_stream_table("st", query.text, refresh_mode="DIFFERENTIAL")
            assert told.reason is not None
            assert refused.value.message.rstrip(".") in told.reason

    def expect_equal(self, query: Query) -> None:
        columns = self.conn.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'st'::regclass AND attnum > 0"
            " AND NOT starts_with(attname, '__pgt_') AND NOT attisdropped ORDER BY attnum"
        )
        names = sql.SQL(", ").join(sql.Identifier(name) for (name,) in columns)
        row = sql.SQL("x.*" if query.note.startswith("looks") else "ROW(x.*)::text")
        stored = sql.SQL("SELECT {} FROM (SELECT {} FROM st) AS x").format(row, names)
        wanted = sql.SQL("SELECT {} FROM ({}) AS x").format(row, sql.SQL(query.text))
        for what, left, right in (("too many", stored, wanted), ("missing", wanted, stored)):
            rows = self.conn.execute(sql.SQL("({}) EXCEPT ALL ({})").format(left, right)).fetchall()
            assert not rows, f"{what}: {rows[:5]} of {query.text}"

    def expect_verified(self, query: Query) -> None:
        """`verify` raises no false alarm while changes are pending; only what has no delta is skipped."""
        if self.conn.info.server_version >= 180_000:
            found = self.client.verify("st", refresh=False)
            assert found.differences == 0, (found.tables, query.text)
            assert query.mode == "AUTO" or found.skipped == {}


@pytest.fixture(scope="module", params=["18", "15"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """One database for all queries; its history goes on from each to the next."""
    server = request.getfixturevalue(f"postgres{request.param}")
    with servers.fresh_database(server) as name:
        dsn = servers.ordinary_dsn(server, name)
        client = PgTrickle(dsn, executor=lambda: PostgresExecutor(client.database), differential_max_change_ratio=0.0)
        with client, psycopg.connect(dsn, autocommit=True) as conn:
            client.install()
            conn.execute(schema())
            changes = Changes(seed=18)
            for statement in changes.first():
                conn.execute(statement)
            conn.execute("ANALYZE")
            yield World(conn, client, changes)


@pytest.mark.parametrize("query", _queries())
def test_the_content_follows_the_query(world: World, query: Query) -> None:
    if world.lacks(query):
        return
    if query.note.startswith("refused"):
        with pytest.raises(PgTrickleError, match=query.words):
            world.client.validate_query(query.text)
        with pytest.raises(PgTrickleError, match=query.words):
            world.client.create_stream_table("st", query.text, refresh_mode="AUTO")
        return
    world.expect_one_judgement(query)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        world.client.create_stream_table("st", query.text, refresh_mode=query.mode)
    try:
        world.expect_equal(query)
        actions = []
        for number in range(CYCLES):
            for statement in world.changes.cycle(query.tables):
                world.conn.execute(statement)
            if number == CYCLES - 1:
                world.expect_verified(query)
            result = world.client.refresh_stream_table("st")
            actions.append(result.action)
            assert query.mode == "DIFFERENTIAL" or query.words in (result.fallback_reason or query.words)
            world.expect_equal(query)
        assert set(actions) <= query.actions
        assert "FULL" in actions or query.mode == "DIFFERENTIAL"
    finally:
        world.client.drop_stream_table("st")
