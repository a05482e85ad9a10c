"""A workshop on PostgreSQL 18, and one on each version for what is at the core."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.catalog.migrate import install
from airflow_provider_pgtrickle.engine.settings import Settings
from tests.database.refresh.workshop import Workshop

ORDERS = """
    CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric, note text);
    INSERT INTO orders SELECT i, i % 10, i, 'note ' || i FROM generate_series(1, 100) i;
"""


@pytest.fixture
def workshop(dsn: str) -> Iterator[Workshop]:
    yield from _workshop(dsn)


@pytest.fixture
def any_workshop(any_dsn: str) -> Iterator[Workshop]:
    """The same on PostgreSQL 18 and 15."""
    yield from _workshop(any_dsn)


@pytest.fixture
def workshop15(dsn15: str) -> Iterator[Workshop]:
    yield from _workshop(dsn15)


def _workshop(dsn: str) -> Iterator[Workshop]:
    settings = Settings.load(retry_attempts=1, retry_base_seconds=0.01)
    database = Database(dsn, settings)
    with psycopg.connect(dsn, autocommit=True) as conn:
        install(conn)
        conn.execute(ORDERS)
        yield Workshop(database, conn, settings)
