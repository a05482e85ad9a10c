"""The one way to a PostgreSQL database: pinned sessions, transactions, errors in our own words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, LiteralString
from urllib.parse import quote

import psycopg
from psycopg import Connection, sql
from psycopg.conninfo import conninfo_to_dict

from airflow_provider_pgtrickle.engine.catalog.capabilities import Capabilities
from airflow_provider_pgtrickle.engine.catalog.faults import refused_connection, translated, translating
from airflow_provider_pgtrickle.engine.catalog.search_path import PATH, own_schemas
from airflow_provider_pgtrickle.engine.catalog.warm import WarmSession
from airflow_provider_pgtrickle.engine.errors import EnvironmentFault, UsageError
from airflow_provider_pgtrickle.engine.settings import Settings

__all__ = [
    "PINNED",
    "Capabilities",
    "Database",
    "JdbcTarget",
    "pinning",
    "server_default_schema",
    "translated",
    "translating",
]

#: With these settings names and the texts of values mean the same in every session, and the planner suits the algebra's
#: statements. JDBC sessions set the same.
PINNED = MappingProxyType(
    {
        "search_path": PATH,
        "TimeZone": "UTC",
        "DateStyle": "ISO, MDY",
        "IntervalStyle": "postgres",
        "bytea_output": "hex",
        "extra_float_digits": "1",
        "standard_conforming_strings": "on",
        "client_encoding": "UTF8",
        "xmloption": "content",
        "array_nulls": "on",
        "quote_all_identifiers": "off",
        "idle_in_transaction_session_timeout": "0",
        "idle_session_timeout": "0",
        # Where a policy would hide rows from the refreshing role, PostgreSQL fails instead of leaving them out.
        "row_security": "off",
        # The algebra's statements are deeply nested: the planner should flatten them, and not compile them.
        "from_collapse_limit": "16",
        "join_collapse_limit": "16",
        "jit": "off",
    }
)

#: In a transaction that runs queries, functions or triggers of users, their plans are made as anywhere else.
REPLANNED = "SET LOCAL plan_cache_mode TO DEFAULT"
#: And in the same transaction again for statements about the catalog.
PLANNED_ONCE = "SET LOCAL plan_cache_mode TO force_generic_plan"

_CONNECT_SECONDS = "10"

#: The setting `spark_credentials` where only the password stands in a file.
PASSWORD_FILE = "pgpass"  # nosec B105: a setting's value
_SERVICE = re.compile(r"service=[A-Za-z0-9_.-]+")
_DRIVER = {"driver": "org.postgresql.Driver"}


@dataclass(frozen=True)
class JdbcTarget:
    """The same database for Spark. `url` may be logged; `properties` hold the credentials, if they are sent."""

    url: str
    properties: dict[str, str] = field(repr=False)
    session: Mapping[str, str] = field(default_factory=lambda: PINNED)
    """Settings that each reader's session gets."""
    stands: bool = False
    """The credentials stand where Spark runs, in a file that both JDBC and libpq find there; none are sent."""


class Database:
    """A database that holds stream tables. Opens connections, and keeps one between refreshes.

    `statement_seconds` bounds each statement; a refresh has no bound.
    """

    def __init__(self, dsn: str, settings: Settings | None = None, statement_seconds: int | None = None) -> None:
        try:
            self._parameters: dict[str, Any] = {k: v for k, v in conninfo_to_dict(dsn).items() if v is not None}
        except psycopg.ProgrammingError:
            # libpq's message repeats the string, and with it the password.
            raise UsageError(
                "The connection string can't be read",
                remedy="Write it as postgresql://user@host:port/database or as key=value pairs.",
            ) from None
        self._parameters.setdefault("connect_timeout", _CONNECT_SECONDS)
        self.dsn = dsn
        self.settings = settings or Settings.load()
        self._statement_seconds = statement_seconds
        self._warm = WarmSession()

    def __repr__(self) -> str:
        return f"Database({self.target})"

    @property
    def target(self) -> str:
        """`host:port/database`, for messages."""
        p = self._parameters
        return f"{p.get('host', 'localhost')}:{p.get('port', 5432)}/{p.get('dbname', p.get('user', ''))}"

    def connect(self, autocommit: bool = False, application_name: str = "pgtrickle") -> Connection:
        """A new session, pinned. The caller closes it."""
        try:
            conn = psycopg.connect(**{**self._parameters, "application_name": application_name}, autocommit=True)
        except psycopg.Error as error:
            # `from None`: the original may show the connection string.
            raise refused_connection(error, self.target) from None
        pinned = self._session
        if self._statement_seconds is not None:
            pinned["statement_timeout"] = f"{self._statement_seconds}s"
        try:
            with translating():
                conn.execute(pinning(pinned, local=False))
            conn.autocommit = autocommit
        except BaseException:
            conn.close()
            raise
        return conn

    @property
    def _session(self) -> dict[str, str]:
        # A reader may wait behind a queued ALTER TABLE, which waits for the coordinator, which waits for the reader.
        # PostgreSQL doesn't see this deadlock, so the wait needs a limit.
        return {**PINNED, "lock_timeout": f"{self.settings.lock_timeout_seconds}s"}

    def _refreshing(self) -> Connection:
        conn = self.connect(autocommit=True, application_name="pgtrickle refresh")
        # The few statements about the catalog are planned once for the session. By PostgreSQL's own estimate that
        # doesn't pay: it takes their arrays of one oid for longer. Where queries of users run, `REPLANNED` holds.
        conn.execute("SET plan_cache_mode TO force_generic_plan")
        return conn

    def session(self) -> AbstractContextManager[Connection]:
        """A session in autocommit for a refresh. The session of the last refresh is reused if it is still open."""
        return self._warm.lent(self._refreshing)

    def glance(self) -> AbstractContextManager[Connection]:
        """The same session for a few questions, which leave no locks, settings or temporary tables behind."""
        return self._warm.lent(self._refreshing, leaves_nothing=True)

    def keep_sessions(self, most: int) -> None:
        """Keep up to so many sessions between refreshes, for as many that run side by side."""
        self._warm.most = most

    def close(self) -> None:
        """End what is kept; the next refresh opens another session."""
        self._warm.close()

    @contextmanager
    def transaction(self, application_name: str = "pgtrickle", stream_table: str | None = None) -> Iterator[Connection]:
        """A session of its own for one transaction: committed at the end, rolled back on any error."""
        conn = self.connect(application_name=application_name)
        try:
            with translating(stream_table):
                yield conn
                conn.commit()
        except BaseException:
            # A broken session has nothing left to roll back.
            if not conn.broken:
                conn.rollback()
            raise
        finally:
            conn.close()

    @cached_property
    def capabilities(self) -> Capabilities:
        with self.connect() as conn:
            return Capabilities.of(conn)

    @cached_property
    def jdbc(self) -> JdbcTarget:
        """It is read from a live session, which knows what defaults, environment and password file resolved to."""
        there = self.settings.spark_credentials
        if there and there != PASSWORD_FILE:
            return JdbcTarget(f"jdbc:postgresql://?{_service(there)}", _DRIVER, self._session, stands=True)
        with self.connect() as conn:
            info = conn.info
            host, port, dbname, user, password = info.host, info.port, info.dbname, info.user, info.password
            parameters = info.get_parameters()
        if host.startswith(("/", "@")):
            raise EnvironmentFault(
                "Spark's JDBC driver can't use a Unix socket", remedy="Name a TCP host in the connection string."
            )
        authority = f"[{host}]" if ":" in host else host or "localhost"
        properties = {"user": user, **_DRIVER}
        if password and not there:
            properties["password"] = password
        for name in ("sslmode", "sslrootcert", "sslcert", "sslkey"):
            if parameters.get(name):
                properties[name] = parameters[name]
        url = f"jdbc:postgresql://{authority}:{port}/{quote(dbname, safe='')}"
        return JdbcTarget(url, properties, self._session, stands=bool(there))


def _service(there: str) -> str:
    if not _SERVICE.fullmatch(there):
        raise UsageError(
            f"Setting spark_credentials can't be {there!r}",
            remedy=f"Leave it empty, or set it to {PASSWORD_FILE} or service=NAME (letters, digits, _, . and -).",
        )
    return there


def pinning(settings: Mapping[str, str], *, local: bool) -> sql.Composed:
    """The one statement that gives a session its settings; with `local` they last until the transaction ends.

    It runs while names are still looked up along the connection's own path, so it qualifies every name.
    """
    calls = [
        sql.SQL("pg_catalog.set_config({}, {}, {})").format(sql.Literal(name), sql.Literal(value), sql.Literal(local))
        for name, value in settings.items()
    ]
    return sql.SQL("SELECT {}").format(sql.SQL(", ").join(calls))


def server_default_schema(conn: Connection) -> str:
    """The schema in which a new table without a schema would land under the connection's own search_path."""
    schemas = own_schemas(conn)
    if not schemas:
        raise UsageError(
            "The connection's search_path names no schema that exists", remedy="Qualify the name: schema.table."
        )
    return schemas[0]


def scalar(conn: Connection, statement: LiteralString, parameters: Sequence[Any] = ()) -> Any:
    """The first column of the first row of a statement that always returns one."""
    row = conn.execute(statement, parameters).fetchone()
    assert row is not None
    return row[0]
