"""Sessions in a database with the catalog installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from psycopg import Connection

from airflow_provider_pgtrickle.engine.catalog.migrate import install
from tests import servers


@pytest.fixture
def conn(any_dsn: str) -> Iterator[Connection]:
    """An autocommitting session of the ordinary owner, on PostgreSQL 18 and 15."""
    with servers.user_session(any_dsn) as conn:
        install(conn)
        yield conn


@pytest.fixture
def conn18(dsn: str) -> Iterator[Connection]:
    """The same on PostgreSQL 18 alone."""
    with servers.user_session(dsn) as conn:
        install(conn)
        yield conn


@pytest.fixture
def admin_of(conn: Connection, request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A superuser's session in the database of `conn`."""
    admin = "admin_dsn15" if servers.is_second(conn) else "admin_dsn"
    with servers.user_session(request.getfixturevalue(admin)) as admin_conn:
        yield admin_conn
