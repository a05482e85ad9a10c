"""A shop whose sources are captured from the WAL, and writers beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.embedded import PostgresServer
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from tests import servers

SHOP = """
    CREATE TABLE customers (id int PRIMARY KEY, region text);
    CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric, note text);
    ALTER TABLE customers REPLICA IDENTITY FULL;
    ALTER TABLE orders REPLICA IDENTITY FULL;
    INSERT INTO customers SELECT i, 'region ' || i % 3 FROM generate_series(0, 9) AS i;
    INSERT INTO orders SELECT i, i % 10, i, 'note ' || i FROM generate_series(1, 100) AS i;
"""

#: Each reads the sources' state at the snapshot beside the changes, so a change too much or too few shows.
QUERIES = {
    "totals": "SELECT customer, sum(amount) AS total, count(*) AS n, max(note) AS last FROM orders GROUP BY customer",
    "regions": "SELECT c.region, count(*) AS n, sum(o.amount) AS total FROM orders o JOIN customers c"
    " ON c.id = o.customer GROUP BY c.region",
    "pairs": "SELECT a.id, b.amount, c.region FROM orders a JOIN orders b ON b.id = a.id + 10"
    " LEFT JOIN customers c ON c.id = a.customer",
}


class Shop:
    """The shop's stream tables, and what PostgreSQL says about them."""

    def __init__(self, server: PostgresServer, dbname: str) -> None:
        self.server = server
        self.dbname = dbname
        self.dsn = servers.ordinary_dsn(server, dbname)
        self.admin_dsn = server.dsn(dbname)
        self.conn: psycopg.Connection[Any] = psycopg.connect(self.dsn, autocommit=True)
        self.pt = self.client()
        self.pt.install()
        self.conn.execute(SHOP)

    def client(self, **settings: Any) -> PgTrickle:
        client: PgTrickle = PgTrickle(
            self.dsn,
            executor=lambda: PostgresExecutor(client.database),
            **{"differential_max_change_ratio": 0.0, "retry_base_seconds": 0.01, **settings},
        )
        return client

    def declare(self, *names: str, cdc_mode: str | None = "wal", **options: Any) -> None:
        for name in names or QUERIES:
            self.pt.create_stream_table(name, QUERIES[name], cdc_mode=cdc_mode, **options)

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.conn.execute(statement, values or None).fetchall()

    def one(self, statement: str, *values: Any) -> Any:
        ((value,),) = self.rows(statement, *values)
        return value

    def modes(self) -> dict[str, str]:
        return dict(self.rows("SELECT source_name, mode FROM pgtrickle.pgt_change_tracking ORDER BY 1"))

    def slots(self) -> list[str]:
        return [
            name
            for (name,) in self.rows("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()")
        ]

    def differences(self, name: str) -> list[tuple[Any, ...]]:
        """Rows that the table has and the query hasn't, or the other way round."""
        columns = self.one("SELECT pgtrickle.visible_columns(%s)", name)
        query, table = QUERIES[name], f"SELECT {columns} FROM {name}"
        return self.rows(f"({query} EXCEPT ALL {table}) UNION ALL ({table} EXCEPT ALL {query})")

    def superuser(self, statement: str) -> None:
        with psycopg.connect(self.admin_dsn, autocommit=True) as admin:
            admin.execute(statement)

    def close(self) -> None:
        self.pt.close()
        self.conn.close()


def _shop(server: PostgresServer, role: str = "REPLICATION") -> Iterator[Shop]:
    with servers.fresh_database(server) as name:
        with psycopg.connect(server.dsn(), autocommit=True) as admin:
            admin.execute(f"ALTER ROLE {servers.ORDINARY_ROLE} {role}")
        shop = Shop(server, name)
        try:
            yield shop
        finally:
            shop.close()
            with psycopg.connect(server.start().dsn(), autocommit=True) as admin:
                admin.execute(f"ALTER ROLE {servers.ORDINARY_ROLE} NOREPLICATION")


@pytest.fixture
def shop(postgres18: PostgresServer) -> Iterator[Shop]:
    yield from _shop(postgres18)


@pytest.fixture(params=["18", "15"])
def any_shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """The same on PostgreSQL 18 and 15."""
    yield from _shop(request.getfixturevalue("postgres18" if request.param == "18" else "postgres15"))
