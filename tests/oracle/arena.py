"""Where cases are fought out: one database, and one rolled-back transaction a case.

Nothing of a case is ever committed, so set-up costs milliseconds and cases can't see each other. Transaction ids,
which a real refresh takes from the server, are counted by hand: the buffers' `xid` defaults to the setting
`oracle.xid`, and a snapshot is `n:n:`, which sees exactly the cycles before n. Everything else is PostgreSQL's own.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.engine.capture import tracking
from airflow_provider_pgtrickle.engine.dvm.schema import Source
from tests.oracle.buffers import Buffer, track

FIRST_XID = 100
_SESSION = {
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "jit": "off",
    "synchronous_commit": "off",
    "max_parallel_workers_per_gather": "0",
    "statement_timeout": "60s",
    "client_min_messages": "error",
}


@dataclass
class Case:
    """One schema of tables, its capture, and the cycles that passed."""

    conn: psycopg.Connection
    schema: str
    by_product: bool = False
    """Whether the product's own capture fills the buffers, with the columns that a view uses and no others."""
    xid: int = FIRST_XID
    buffers: dict[str, Buffer] = field(default_factory=dict)
    _equality: dict[str, bool] = field(default_factory=dict)

    def execute(self, statement: str) -> psycopg.Cursor:
        return self.conn.execute(statement)

    def rows(self, statement: str) -> list[tuple]:
        return self.execute(statement).fetchall()

    def capture(self) -> None:
        """Buffers and triggers for every table there is and that has none yet."""
        found = self.conn.execute(
            "SELECT c.oid::text, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = %s AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
            " AND c.relname !~ '^(changes_|st_)' ORDER BY c.oid",
            (self.schema,),
        ).fetchall()
        for key, schema, name in found:
            if key not in self.buffers:
                self.buffers[key] = track(self.conn, key, schema, name)

    def capture_by_product(self, sources: Mapping[str, Source], used: Mapping[str, Iterable[str]]) -> None:
        """Have the product capture what a view uses; only the transaction ids are ours."""
        for key, source in sources.items():
            name = tracking.track(self.conn, source, used[key], pgt_id=1)
            self.buffers[key] = Buffer(name.schema, name.name)

    @property
    def snapshot(self) -> str:
        """Sees every change made so far."""
        return f"{self.xid + 1}:{self.xid + 1}:"

    def change(self, *statements: str) -> int:
        """Run DML as one more transaction; a statement PostgreSQL refuses changes nothing. How many were accepted."""
        self.xid += 1
        self.conn.execute("SELECT set_config('oracle.xid', %s, true)", (str(self.xid),))
        accepted = 0
        for statement in statements:
            with tolerated(self.conn):
                self.execute(statement)
                accepted += 1
        if self.by_product:
            self._stamp()
        return accepted

    def _stamp(self) -> None:
        """The product stamps its rows with the one transaction that a whole case is; ours counts cycles."""
        for buffer in self.buffers.values():
            stamp = sql.SQL("UPDATE {} SET xid = %s::text::xid8 WHERE xid = pg_current_xact_id()")
            self.conn.execute(stamp.format(sql.Identifier(buffer.schema, buffer.name)), (str(self.xid),))

    def understands(self, query: str) -> bool:
        """Whether PostgreSQL takes the query: what a generator put together may name two columns by one word."""
        try:
            with self.conn.transaction(force_rollback=True):
                self.execute(f"EXPLAIN {query}")
        except (psycopg.ProgrammingError, psycopg.NotSupportedError):
            return False
        return True

    def has_equality(self, kind: str) -> bool:
        """Whether values of the type can be told apart by `=`; those of json, xml and point can't."""
        if kind not in self._equality:
            self._equality[kind] = False
            with tolerated(self.conn):
                self.conn.execute(
                    sql.SQL("SELECT x FROM (SELECT NULL::{} AS x) AS one GROUP BY x").format(sql.SQL(kind))
                )
                self._equality[kind] = True
        return self._equality[kind]

    @contextmanager
    def undone(self) -> Iterator[None]:
        """What happens inside did not happen."""
        before = self.xid
        with self.conn.transaction(force_rollback=True):
            yield
        self.xid = before


@contextmanager
def tolerated(conn: psycopg.Connection) -> Iterator[None]:
    """A statement the server refuses leaves the transaction as it was."""
    try:
        with conn.transaction():
            yield
    except psycopg.Error:
        pass


_opened = itertools.count(1)
_CATALOGS = (
    "pg_class, pg_attribute, pg_attrdef, pg_constraint, pg_type, pg_depend, pg_proc, pg_rewrite, pg_trigger, pg_index,"
    " pg_namespace, pg_sequence"
)


def _sweep(conn: psycopg.Connection) -> None:
    """What is rolled back leaves dead rows in the catalogs, where the tests' server has no autovacuum, and compiled
    functions in the session, whose plans each later ROLLBACK walks through: a new session has none.
    """
    conn.execute(f"VACUUM {_CATALOGS}")
    conn.pgconn.reset()
    _set_up(conn)


@contextmanager
def case(conn: psycopg.Connection, ddl: Sequence[str] = (), *, by_product: bool = False) -> Iterator[Case]:
    """A fresh schema, gone afterwards whatever happens."""
    assert conn.info.transaction_status == psycopg.pq.TransactionStatus.IDLE, "one case at a time on a connection"
    schema = f"case_{os.getpid()}"
    if next(_opened) % 100 == 0:
        _sweep(conn)
    with conn.transaction(force_rollback=True):
        conn.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        conn.execute(sql.SQL("SET LOCAL search_path = {}, public").format(sql.Identifier(schema)))
        conn.execute("SELECT set_config('oracle.xid', %s, true)", (str(FIRST_XID),))
        made = Case(conn, schema, by_product)
        for statement in ddl:
            made.execute(statement)
        if not by_product:
            made.capture()
        yield made


def connect(dsn: str) -> psycopg.Connection:
    conn = psycopg.connect(dsn, autocommit=True)
    _set_up(conn)
    # Statements of a generator never come twice: preparing them only fills the server's memory.
    conn.prepare_threshold = None
    return conn


def _set_up(conn: psycopg.Connection) -> None:
    for name, value in _SESSION.items():
        conn.execute("SELECT set_config(%s, %s, false)", (name, value))
