"""`PgTrickleHook`: an Airflow connection, of type `pgtrickle` or `postgres`, as a client."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

import psycopg
from airflow.providers.postgres.hooks.postgres import PostgresHook
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException
from psycopg.conninfo import make_conninfo

from airflow_provider_pgtrickle.engine.errors import PgTrickleError, UsageError, redact
from airflow_provider_pgtrickle.engine.settings import RETIRED, Settings
from airflow_provider_pgtrickle.stream_table import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow.sdk import Connection
    from pyspark.sql import SparkSession

    from airflow_provider_pgtrickle.client import PgTrickle

_SETTINGS = frozenset(f.name for f in fields(Settings)) | RETIRED


@cache
def _libpq_options() -> frozenset[str]:
    return frozenset(option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults())


class _NotForLibpq(set[str]):
    """The set of extras that are no option of libpq, which would make `psycopg.connect` fail."""

    def __contains__(self, extra: object) -> bool:
        return super().__contains__(extra) or extra not in _libpq_options()


class PgTrickleHook(PostgresHook):
    """A PostgreSQL database with stream tables.

    An extra with the name of a setting (`min_schedule_seconds`, `jdbc_jar`, …) overrides that setting. One that libpq
    knows (`sslmode`, `options`, …) goes to libpq. Any other is ignored.
    """

    conn_name_attr = "postgres_conn_id"
    default_conn_name = DEFAULT_CONN_ID
    conn_type = "pgtrickle"
    hook_name = "pgtrickle"
    ignored_extra_options = _NotForLibpq(PostgresHook.ignored_extra_options)

    @property
    def airflow_connection(self) -> Connection:
        """The connection; an error with a remedy if it is missing or of a wrong type."""
        conn_id = self.get_conn_id()
        try:
            connection = self.get_connection(conn_id)
        except AirflowNotFoundException:
            raise UsageError(
                f"There is no Airflow connection {conn_id!r}",
                remedy=f"Add it: airflow connections add {conn_id} --conn-type pgtrickle --conn-host … .",
            ) from None
        if connection.conn_type not in ("pgtrickle", "postgres", "postgresql"):
            raise UsageError(
                f"Connection {conn_id!r} is of type {connection.conn_type!r}",
                remedy="Give one of type pgtrickle or postgres as postgres_conn_id.",
            )
        return connection

    @property
    def dsn(self) -> str:
        """The connection string with its credentials, which must not be printed, logged or put into an argument."""
        connection = self.airflow_connection
        login, password, port = connection.login, connection.password, connection.port
        if connection.extra_dejson.get("iam"):
            login, password, port = self.get_iam_token(connection)
        extras = {k: v for k, v in connection.extra_dejson.items() if k in _libpq_options() and v not in (None, "")}
        named = {
            "host": connection.host,
            "port": port,
            "user": login,
            "password": password,
            "dbname": self.database or connection.schema,
        }
        return make_conninfo("", **{**extras, **{k: v for k, v in named.items() if v not in (None, "")}})

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the connection's extras override."""
        return {k: v for k, v in self.airflow_connection.extra_dejson.items() if k in _SETTINGS and v not in (None, "")}

    def get_client(self, spark: SparkSession | None = None, **settings: Any) -> PgTrickle:
        """The client of this database, to be used in a `with` block."""
        from airflow_provider_pgtrickle.client import PgTrickle

        return PgTrickle(self.dsn, spark, **{**self.settings, **settings})

    def test_connection(self) -> tuple[bool, str]:  # type: ignore[override]
        """Whether PostgreSQL answers, and whether the catalog is there."""
        try:
            with psycopg.connect(self.dsn, connect_timeout=10, application_name="pgtrickle") as session:
                row = session.execute(
                    "SELECT pg_catalog.current_setting('server_version'),"
                    " pg_catalog.to_regclass('pgtrickle.pgt_stream_tables') IS NOT NULL"
                ).fetchone()
        except (psycopg.Error, PgTrickleError, AirflowException) as error:
            return False, redact(str(error)).strip()
        assert row is not None
        catalog = (
            "with the pgtrickle catalog" if row[1] else "without the pgtrickle catalog: the first plan installs it"
        )
        return True, f"PostgreSQL {row[0]}, {catalog}"
