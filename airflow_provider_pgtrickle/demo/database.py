"""The demo's PostgreSQL: an embedded server, and in it a database that an ordinary role owns."""

from __future__ import annotations

import secrets
from pathlib import Path

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.demo import shop
from airflow_provider_pgtrickle.embedded import PostgresServer

_NAME = "shop"


def server_in(folder: Path) -> PostgresServer:
    return PostgresServer(folder, options={"shared_buffers": "128MB", "max_wal_size": "512MB"})


def create_shop(server: PostgresServer) -> str:
    """Make the role, its database and the shop's rows; the URL to reach them as that role."""
    password = secrets.token_urlsafe(12)
    with psycopg.connect(server.dsn(), autocommit=True) as conn:
        role = sql.Identifier(_NAME)
        conn.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, password))
        conn.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(role, role))
    dsn = server.dsn(_NAME, user=_NAME, password=password)
    shop.load(dsn)
    return dsn
