"""The demo's shop: its embedded server and database, its first rows, and the changes that follow."""

from __future__ import annotations

import random
import secrets
from importlib.resources import files
from pathlib import Path

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.embedded import PostgresServer

#: The changes in a live shop, made one at a time.
_EVENTS = (
    "WITH placed AS (INSERT INTO orders (customer_id) SELECT id FROM customers ORDER BY random() LIMIT 1 RETURNING id)"
    " INSERT INTO items (order_id, product, quantity, price)"
    " SELECT id, (ARRAY['Cup', 'Bowl', 'Plate', 'Vase'])[1 + (random() * 3)::int], 1 + (random() * 4)::int, 19.90"
    " FROM placed",
    "UPDATE orders SET status = 'paid' WHERE id = (SELECT id FROM orders WHERE status = 'open' ORDER BY id LIMIT 1)",
    "UPDATE orders SET status = 'shipped' WHERE id = (SELECT id FROM orders WHERE status = 'paid' ORDER BY id LIMIT 1)",
    "UPDATE items SET price = price * 1.01 WHERE id = (SELECT id FROM items ORDER BY random() LIMIT 1)",
    "UPDATE customers SET country = (ARRAY['AT', 'CH', 'DE', 'FR', 'IT'])[1 + (random() * 4)::int]"
    " WHERE id = (SELECT id FROM customers ORDER BY random() LIMIT 1)",
    "DELETE FROM orders WHERE id = (SELECT id FROM orders WHERE status = 'shipped' ORDER BY id LIMIT 1)",
    "INSERT INTO visits SELECT now(), id, '/' FROM customers ORDER BY random() LIMIT 1",
)


def load(dsn: str) -> None:
    """Create the tables with their first rows."""
    _run(dsn, "shop.sql")


def change(dsn: str) -> None:
    """Make a batch of inserts, updates and deletes in every table."""
    _run(dsn, "shop_changes.sql")


def one_event(conn: psycopg.Connection) -> None:
    """Make one change and commit it."""
    with conn.transaction():
        conn.execute(random.choice(_EVENTS).encode())


def _run(dsn: str, script: str) -> None:
    text = files(__package__).joinpath(script).read_text()
    with psycopg.connect(dsn) as conn:
        conn.execute(text.encode())


_NAME = "shop"


def server_in(folder: Path) -> PostgresServer:
    """The demo's PostgreSQL, with its files in `folder`; not started yet."""
    return PostgresServer(folder, options={"shared_buffers": "128MB", "max_wal_size": "512MB"})


def create_shop(server: PostgresServer) -> str:
    """Make an ordinary role, a database that it owns, and the shop's rows there; the URL to reach them as that role."""
    password = secrets.token_urlsafe(12)
    with psycopg.connect(server.dsn(), autocommit=True) as conn:
        role = sql.Identifier(_NAME)
        conn.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, password))
        conn.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(role, role))
    dsn = server.dsn(_NAME, user=_NAME, password=password)
    load(dsn)
    return dsn
