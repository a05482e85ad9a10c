"""Capture from the WAL on random schemas, queries and histories: after each refresh the content is the query's answer.

Everything is committed, by writers of its own: what the log tells is what was committed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from hypothesis import event, given, note, settings

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.embedded import PostgresServer
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, QueryError, ValueFault
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests import servers
from tests.property.test_properties import FEWER, SOAK, Example, entangled, examples

_numbers = itertools.count()

_FULL = """
    SELECT format('ALTER TABLE %%I.%%I REPLICA IDENTITY FULL', n.nspname, c.relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind IN ('r', 'p')
"""


class Place:
    """A database with the catalog, for one case after the other."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.conn: psycopg.Connection[Any] = psycopg.connect(dsn, autocommit=True)
        with PgTrickle(dsn) as client:
            client.install()

    def follows(self, example: Example) -> None:
        world, query, history = example
        note("\n".join(f"{statement};" for statement in (*world.ddl, *world.rows)) + f"\n-- {query};\n-- {history}")
        schema = f"case_{next(_numbers)}"
        self.conn.execute(f"CREATE SCHEMA {schema}; SET search_path = {schema}")
        dsn = f"{self.dsn}?options=-csearch_path%3D{schema}"
        with PgTrickle(
            dsn, executor=lambda: PostgresExecutor(client.database), differential_max_change_ratio=0.0, retry_attempts=2
        ) as client:
            try:
                self._follow(client, schema, example)
            finally:
                with suppress(PgTrickleError):
                    client.drop_stream_table(f"{schema}.st", cascade=True, if_exists=True)
                self.conn.execute(f"SET search_path TO DEFAULT; DROP SCHEMA {schema} CASCADE")

    def _follow(self, client: PgTrickle, schema: str, example: Example) -> None:
        world, query, history = example
        for statement in world.ddl:
            self.conn.execute(statement)
        for (statement,) in self.conn.execute(_FULL, (schema,)).fetchall():
            self.conn.execute(statement)
        self._write(world.rows)
        try:
            client.create_stream_table(f"{schema}.st", query, cdc_mode="wal")
        except (QueryError, ValueFault, PgTrickleError) as refused:
            event(type(refused).__name__)
            return
        for transaction in history:
            self._write(transaction)
            try:
                result = client.refresh_stream_table(f"{schema}.st")
            except ValueFault:
                # The query has no answer on these rows.
                event("undefined")
                return
            event(result.action)
            verified = client.verify(f"{schema}.st", refresh=False)
            assert verified.differences == 0, verified

    def _write(self, statements: Any) -> None:
        """One transaction; a statement that PostgreSQL refuses changes nothing."""
        with self.conn.transaction():
            for statement in statements:
                with suppress(psycopg.Error), self.conn.transaction():
                    self.conn.execute(statement)


@pytest.fixture(scope="module", params=["18", "15"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    server: PostgresServer = request.getfixturevalue("postgres18" if request.param == "18" else "postgres15")
    with servers.fresh_database(server) as name:
        with psycopg.connect(server.dsn(), autocommit=True) as admin:
            admin.execute(f"ALTER ROLE {servers.ORDINARY_ROLE} REPLICATION")
        found = Place(servers.ordinary_dsn(server, name))
        yield found
        found.conn.close()
        with psycopg.connect(server.dsn(), autocommit=True) as admin:
            admin.execute(f"ALTER ROLE {servers.ORDINARY_ROLE} NOREPLICATION")


_SOME = settings(FEWER, max_examples=max(FEWER.max_examples // 4, 1))


@pytest.mark.timeout(900)
@_SOME
@given(example=examples())
def test_content_equals_the_query_when_the_log_is_pumped(place: Place, example: Example) -> None:
    place.follows(example)


@pytest.mark.timeout(900)
@_SOME
@given(example=entangled())
def test_what_follows_from_a_statement_is_pumped_with_it(place: Place, example: Example) -> None:
    place.follows(example)


@pytest.mark.slow
@pytest.mark.timeout(0)
@SOAK
@given(example=examples())
def test_many_cases(place: Place, example: Example) -> None:
    place.follows(example)
