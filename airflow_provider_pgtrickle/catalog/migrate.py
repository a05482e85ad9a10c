"""Bring the catalog to this version: numbered SQL files, each once, each whole or not at all."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources

from psycopg import Connection

from airflow_provider_pgtrickle.catalog.capabilities import Capabilities
from airflow_provider_pgtrickle.catalog.faults import translating

#: Key of the advisory lock that lets one installer at a time work; any constant of our own will do.
_INSTALL_LOCK = 0x7067745F696E7374

_FILE = re.compile(r"(?P<number>\d{4})_(?P<name>\w+)\.sql")

_BOOTSTRAP = """
    CREATE SCHEMA IF NOT EXISTS pgtrickle;
    COMMENT ON SCHEMA pgtrickle IS 'Catalog of stream tables.';
    CREATE TABLE IF NOT EXISTS pgtrickle.pgt_migrations (
        number integer PRIMARY KEY,
        name text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    );
"""


@dataclass(frozen=True, order=True)
class Migration:
    number: int
    name: str
    text: str


def migrations() -> list[Migration]:
    """Every migration this version ships, in order."""
    found = []
    for entry in resources.files(__package__).joinpath("migrations").iterdir():
        if match := _FILE.fullmatch(entry.name):
            found.append(Migration(int(match["number"]), match["name"], entry.read_text(encoding="utf-8")))
    return sorted(found)


def install(conn: Connection, steps: list[Migration] | None = None) -> list[str]:
    """Apply what is missing; the names of what was applied. Safe to call at any time, by several at once."""
    Capabilities.of(conn)
    applied = []
    with translating():
        # Asked first, so that a role without CREATE on the database can call it on an installed one.
        with conn.transaction():
            if not is_installed(conn):
                _lock(conn)
                conn.execute(_BOOTSTRAP)
        for step in migrations() if steps is None else steps:
            with conn.transaction():
                if _is_applied(conn, step):
                    continue
                _lock(conn)
                if _is_applied(conn, step):
                    continue
                conn.execute(step.text)
                conn.execute(
                    "INSERT INTO pgtrickle.pgt_migrations (number, name) VALUES (%s, %s)", [step.number, step.name]
                )
                applied.append(f"{step.number:04}_{step.name}")
    return applied


def is_installed(conn: Connection) -> bool:
    row = conn.execute("SELECT to_regclass('pgtrickle.pgt_migrations') IS NOT NULL").fetchone()
    return bool(row and row[0])


def version(conn: Connection) -> int:
    """Number of the newest migration that was applied; 0 where nothing is installed."""
    if not is_installed(conn):
        return 0
    row = conn.execute("SELECT coalesce(max(number), 0) FROM pgtrickle.pgt_migrations").fetchone()
    return row[0] if row else 0


def _lock(conn: Connection) -> None:
    conn.execute("SELECT pg_advisory_xact_lock(%s)", [_INSTALL_LOCK])


def _is_applied(conn: Connection, step: Migration) -> bool:
    found = conn.execute("SELECT FROM pgtrickle.pgt_migrations WHERE number = %s", [step.number])
    return found.fetchone() is not None
