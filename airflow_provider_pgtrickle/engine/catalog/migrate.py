"""Bring the catalog to this version.

Tables change by migrations: numbered SQL files, each applied once, in one transaction. Views and functions stand in
`objects` as they are now; when one of them differs from the database's, all are replaced.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib import resources

from psycopg import Connection, errors

from airflow_provider_pgtrickle.engine.catalog.capabilities import Capabilities
from airflow_provider_pgtrickle.engine.catalog.faults import not_installed, translating
from airflow_provider_pgtrickle.engine.catalog.search_path import pin
from airflow_provider_pgtrickle.engine.errors import EnvironmentFault

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
    """Apply the missing migrations and return their names. Several processes may call it at once."""
    Capabilities.of(conn)
    applied = []
    with translating():
        # This is checked first, so that a role without CREATE on the database can call it where a catalog is.
        if not is_installed(conn):
            _refuse_encoding(conn)
            _bootstrap(conn)
        for step in migrations() if steps is None else steps:
            with conn.transaction():
                if _is_applied(conn, step):
                    continue
                _lock(conn)
                if _is_applied(conn, step):
                    continue
                pin(conn)
                conn.execute(step.text)
                conn.execute(
                    "INSERT INTO pgtrickle.pgt_migrations (number, name) VALUES (%s, %s)", [step.number, step.name]
                )
                applied.append(f"{step.number:04}_{step.name}")
        if steps is None and _replace_objects(conn):
            applied.append("views and functions")
    return applied


def _refuse_encoding(conn: Connection) -> None:
    """Refuse any encoding but UTF-8: a character that it lacks would fail only when it is first written."""
    encoding = conn.info.parameter_status("server_encoding")
    if encoding not in ("UTF8", "SQL_ASCII"):
        raise EnvironmentFault(
            f"The database has the encoding {encoding}", remedy="Stream tables need one in UTF8: dump and restore it."
        )


def _replace_objects(conn: Connection) -> bool:
    """Create or replace the views and functions of this version; whether that was necessary."""
    folder = resources.files(__package__).joinpath("objects")
    text = "\n".join(e.read_text(encoding="utf-8") for e in sorted(folder.iterdir(), key=lambda e: e.name))
    digest = hashlib.sha256(text.encode()).hexdigest()
    current = "SELECT name FROM pgtrickle.pgt_migrations WHERE number = 0"
    with conn.transaction():
        if conn.execute(current).fetchone() == (digest,):
            return False
        _lock(conn)
        if conn.execute(current).fetchone() == (digest,):
            return False
        # Names without a schema are resolved now, and must mean what came with the server.
        pin(conn)
        conn.execute(text)
        conn.execute(
            "INSERT INTO pgtrickle.pgt_migrations (number, name) VALUES (0, %s)"
            " ON CONFLICT (number) DO UPDATE SET name = excluded.name, applied_at = now()",
            [digest],
        )
    return True


def is_installed(conn: Connection) -> bool:
    row = conn.execute("SELECT pg_catalog.to_regclass('pgtrickle.pgt_migrations') IS NOT NULL").fetchone()
    return bool(row and row[0])


def require(conn: Connection) -> None:
    """Raise an error that says what to do if there is no catalog."""
    if not is_installed(conn):
        raise not_installed()


def version(conn: Connection) -> int:
    """Number of the newest migration that was applied; 0 where nothing is installed."""
    if not is_installed(conn):
        return 0
    row = conn.execute("SELECT coalesce(max(number), 0) FROM pgtrickle.pgt_migrations").fetchone()
    return row[0] if row else 0


def _bootstrap(conn: Connection) -> None:
    """Create the schema and the table that installers lock. Two installers at once are fine."""
    for _ in range(2):
        try:
            with conn.transaction():
                pin(conn)
                conn.execute(_BOOTSTRAP)
            return
        except (errors.UniqueViolation, errors.DuplicateObject, errors.DuplicateSchema, errors.DuplicateTable):
            continue


def _lock(conn: Connection) -> None:
    """Let one installer run at a time and no declaration meanwhile. Anybody could take an advisory lock."""
    conn.execute("LOCK TABLE pgtrickle.pgt_migrations IN SHARE UPDATE EXCLUSIVE MODE")


def _is_applied(conn: Connection, step: Migration) -> bool:
    found = conn.execute("SELECT FROM pgtrickle.pgt_migrations WHERE number = %s", [step.number])
    return found.fetchone() is not None
