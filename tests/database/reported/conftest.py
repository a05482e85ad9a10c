"""A client with its database, on PostgreSQL 18 and 15, for what trials reported."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
import pytest
from psycopg import sql

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult
from airflow_provider_pgtrickle.engine.refresh.unit import refresh_unit
from tests import servers


@dataclass
class Site:
    conn: psycopg.Connection
    client: PgTrickle

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.conn.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.conn.execute(query).fetchall()

    def declare(self, name: str, query: str, **options: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.client.create_stream_table(name, query, **options)

    def refresh(self, name: str, **options: Any) -> RefreshResult:
        return self.client.refresh_stream_table(name, **options)

    def columns(self, name: str) -> list[str]:
        """The visible ones."""
        rows = self.conn.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
            " AND NOT starts_with(attname, '__pgt_') AND NOT attisdropped ORDER BY attnum",
            [name],
        )
        return [column for (column,) in rows]

    def differs(self, name: str, query: str) -> list[tuple[Any, ...]]:
        """Rows that only one side has, as text."""
        listed = sql.SQL(", ").join(map(sql.Identifier, self.columns(name)))
        stored = sql.SQL("SELECT ROW(__x.*)::text FROM (SELECT {} FROM {}) AS __x").format(listed, sql.Identifier(name))
        wanted = sql.SQL("SELECT ROW(__x.*)::text FROM ({}) AS __x").format(sql.SQL(query))
        both = sql.SQL("(({0}) EXCEPT ALL ({1})) UNION ALL (({1}) EXCEPT ALL ({0}))").format(stored, wanted)
        return self.conn.execute(both).fetchall()

    def follows(self, query: str, *changes: str, actions: frozenset[str] = frozenset({"DIFFERENTIAL"})) -> None:
        """Declared in DIFFERENTIAL mode, it equals its query after each change."""
        self.declare("st", query, refresh_mode="DIFFERENTIAL")
        assert self.differs("st", query) == []
        for change in changes:
            self.run(change)
            result = self.refresh("st")
            assert self.differs("st", query) == [], change
            assert result.action in actions, (change, result.action)


def refresh(site: Site, *names: str, at: datetime, **options: Any) -> dict[str, RefreshResult]:
    """Refresh one unit with the clock at an instant."""
    database = site.client.database
    found = refresh_unit(
        database,
        [QualifiedName("public", name) for name in names],
        executor=lambda: PostgresExecutor(database),
        settings=site.client.settings,
        instant=at,
        **options,
    )
    return {name.removeprefix("public."): result for name, result in found.items()}


def site_at(dsn: str, **settings: Any) -> Iterator[Site]:
    client = PgTrickle(
        dsn,
        executor=lambda: PostgresExecutor(client.database),
        **{"differential_max_change_ratio": 0.0, "min_schedule_seconds": 1, **settings},
    )
    with client, psycopg.connect(dsn, autocommit=True) as conn:
        client.install()
        yield Site(conn, client)


@pytest.fixture
def site(any_dsn: str) -> Iterator[Site]:
    yield from site_at(any_dsn)


@pytest.fixture
def admin(site: Site, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    """A superuser's session in the same database."""
    dsn = "admin_dsn15" if servers.is_second(site.conn) else "admin_dsn"
    with psycopg.connect(request.getfixturevalue(dsn), autocommit=True) as conn:
        yield conn
