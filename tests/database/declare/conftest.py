"""A database with a catalog, a little shop, and a client that computes in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests import servers

SHOP = """
    CREATE TABLE customers (id int PRIMARY KEY, name varchar(40) NOT NULL, region text);
    CREATE TABLE orders (id int PRIMARY KEY, customer_id int, amount numeric(10,2), placed date, note text);
    INSERT INTO customers SELECT i, 'customer ' || i, CASE i % 3 WHEN 0 THEN 'north' ELSE 'south' END
      FROM generate_series(1, 10) i;
    INSERT INTO orders SELECT i, i % 10 + 1, i * 1.5, date '2026-01-01' + i, NULL FROM generate_series(1, 50) i;
"""
TOTALS = "SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id"


@pytest.fixture
def database(dsn: str) -> Database:
    return Database(dsn)


@pytest.fixture
def pt(dsn: str, database: Database, conn: psycopg.Connection[Any]) -> Iterator[PgTrickle]:
    with PgTrickle(dsn, executor=lambda: PostgresExecutor(database)) as client:
        client.install()
        conn.execute(SHOP)
        yield client


@pytest.fixture
def conn(database: Database) -> Iterator[psycopg.Connection[Any]]:
    """A session of the user's, each statement its own transaction."""
    with servers.user_session(database.dsn) as session:
        yield session


def difference(conn: psycopg.Connection[Any], table: str, query: str) -> int:
    """How many rows are in the table or in its query but not in both."""
    described = conn.execute(f"SELECT * FROM ({query}) q LIMIT 0").description or []
    names = ", ".join(f'"{column.name}"' for column in described)
    row = conn.execute(
        f"SELECT count(*) FROM ((SELECT {names} FROM {table} EXCEPT ALL ({query}))"
        f" UNION ALL (({query}) EXCEPT ALL SELECT {names} FROM {table})) d"
    ).fetchone()
    assert row is not None
    return row[0]


def traces(conn: psycopg.Connection[Any]) -> dict[str, list[Any]]:
    """Everything that declarations can leave in a database."""

    def column(statement: str) -> list[Any]:
        return [row[0] for row in conn.execute(statement)]

    return {
        "catalog": column("SELECT pgt_name FROM pgtrickle.pgt_stream_tables ORDER BY 1"),
        "dependencies": column("SELECT source_name FROM pgtrickle.pgt_dependencies ORDER BY 1"),
        "tracking": column("SELECT source_name FROM pgtrickle.pgt_change_tracking ORDER BY 1"),
        "relations": column(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p', 'v')"
            " AND relnamespace IN ('public'::regnamespace, 'pgtrickle_changes'::regnamespace)"
            " AND relname NOT IN ('customers', 'orders') ORDER BY 1"
        ),
        "triggers": column(
            "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"
            " AND tgrelid IN ('orders'::regclass, 'customers'::regclass) ORDER BY 1"
        ),
    }


NO_TRACES: dict[str, list[Any]] = {
    name: [] for name in ("catalog", "dependencies", "tracking", "relations", "triggers")
}
