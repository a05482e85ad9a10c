"""Databases with the catalog installed, and sessions in them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from psycopg import Connection

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.embedded import PostgresServer
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests import servers


@pytest.fixture(scope="session")
def template18(postgres18: PostgresServer) -> Iterator[str]:
    with servers.template_database(postgres18) as name:
        yield name


@pytest.fixture(scope="session")
def template15(postgres15: PostgresServer) -> Iterator[str]:
    with servers.template_database(postgres15) as name:
        yield name


@pytest.fixture
def conn(any_dsn: str) -> Iterator[Connection]:
    """An autocommitting session of the ordinary owner, on PostgreSQL 18 and 15."""
    with servers.user_session(any_dsn) as conn:
        yield conn


@pytest.fixture
def pt(any_dsn: str, conn: Connection) -> Iterator[PgTrickle]:
    """A client in the database of `conn`, without Spark."""
    database = Database(any_dsn)
    with PgTrickle(any_dsn, executor=lambda: PostgresExecutor(database)) as client:
        yield client


@pytest.fixture
def conn18(dsn: str) -> Iterator[Connection]:
    """The same on PostgreSQL 18 alone."""
    with servers.user_session(dsn) as conn:
        yield conn


@pytest.fixture
def admin_of(conn: Connection, request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A superuser's session in the database of `conn`."""
    admin = "admin_dsn15" if servers.is_second(conn) else "admin_dsn"
    with servers.user_session(request.getfixturevalue(admin)) as admin_conn:
        yield admin_conn
