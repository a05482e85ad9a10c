"""Where names without a schema are looked for.

Whoever may create objects in a schema of the path decides what a name means to everybody who looks there. So our
sessions look nowhere but in what came with the server, and only a declaration's own text is read under the path of
the connection that declares it. What is stored and run later names everything in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from psycopg import Connection, sql
from psycopg.pq import TransactionStatus

#: The path of every session. The temporary schema is named last because PostgreSQL would otherwise look there first.
PATH = "pg_catalog, pg_temp"

_SET = "SELECT pg_catalog.set_config('search_path', %s, true)"
# In one round trip, because each refresh asks.
_OWN = """
SELECT pg_catalog.set_config('pgtrickle.path', pg_catalog.current_setting('search_path'), true);
SET LOCAL search_path TO DEFAULT;
SELECT pg_catalog.current_schemas(false)::pg_catalog.text[];
SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('pgtrickle.path'), true)
"""


def own_schemas(conn: Connection) -> list[str]:
    """The schemas of the path that the role, the database or the connection string gives the session."""
    # The setting is put back by name: a rollback would make the driver forget its prepared statements.
    with nullcontext() if conn.info.transaction_status == TransactionStatus.INTRANS else conn.transaction():
        cursor = conn.execute(_OWN)
        cursor.nextset()
        cursor.nextset()
        row = cursor.fetchone()
    return list(row[0]) if row else []


def own_path(conn: Connection) -> str:
    """The same path as a setting that can be stored, with the role's name for `"$user"`."""
    names = [*map(sql.Identifier, own_schemas(conn)), sql.SQL("pg_temp")]
    return sql.SQL(", ").join(names).as_string(conn)


@contextmanager
def reading_under(conn: Connection, path: str | None) -> Iterator[None]:
    """Look names up along `path` in this block of a transaction, and along ours after it; None changes nothing."""
    if path is not None:
        conn.execute(_SET, [path])
    yield
    # After an error nothing is to be restored: it ends the transaction, and the setting with it.
    if path is not None:
        pin(conn)


@contextmanager
def read_only(conn: Connection) -> Iterator[None]:
    """In the block functions of others may run, but can't write anything."""
    with conn.transaction():
        conn.execute("SET TRANSACTION READ ONLY")
        yield


def pin(conn: Connection) -> None:
    """Set our path until the transaction ends."""
    conn.execute(_SET, [PATH])
