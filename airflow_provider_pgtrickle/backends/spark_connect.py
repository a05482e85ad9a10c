"""Refreshes units on a Spark Connect server, from the task's own process."""

from __future__ import annotations

import contextlib
import logging
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

from airflow_provider_pgtrickle.backends.request import RefreshRequest
from airflow_provider_pgtrickle.engine import progress
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import ConnectionFault
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.unit import refresh_units
from airflow_provider_pgtrickle.engine.settings import Settings

if TYPE_CHECKING:
    from airflow_provider_pgtrickle.engine.refresh.executor import Executor

_log = logging.getLogger(__name__)

_PORT = 15002
_REACH_SECONDS = 10


class SparkConnectBackend:
    """A back end that opens its session when a refresh first needs it, and keeps it for the next units."""

    def __init__(self, conn_id: str) -> None:
        self._conn_id = conn_id
        self._session: Any = None
        self._tag: str | None = None

    def refresh(self, request: RefreshRequest) -> None:
        settings = Settings.load(**request.settings)
        database = Database(request.dsn, settings)
        self._tag = f"pgtrickle-{request.run_token}"
        try:
            with progress.heard(progress.Logged(_log)):
                refresh_units(
                    database,
                    [[QualifiedName.parse(name) for name in unit] for unit in request.units],
                    executor=lambda: self._executor(database, settings),
                    settings=settings,
                    force_full=request.force_full,
                    run_token=request.run_token,
                    initiated_by=request.initiated_by,
                    along=[QualifiedName.parse(name) for name in request.along],
                )
        finally:
            if self._session is not None:
                self._session.clearTags()
            self._tag = None

    def _executor(self, database: Database, settings: Settings) -> Executor:
        from airflow_provider_pgtrickle.engine.spark.execute import SparkExecutor

        if self._session is None:
            self._session = self._open(settings)
        self._session.clearTags()
        self._session.addTag(self._tag)
        return SparkExecutor(self._session, database)

    def _open(self, settings: Settings) -> Any:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        from airflow_provider_pgtrickle.engine.spark.session import limit_patience, sql_conf

        url = SparkConnectHook(self._conn_id).get_connection_url()
        try:
            # The client itself would try for minutes.
            address = urlsplit(url)
            socket.create_connection((address.hostname or "localhost", address.port or _PORT), _REACH_SECONDS).close()
            # `create` and not `getOrCreate`, because another task's session in this process has other tags.
            builder: Any = SparkSession.builder.remote(url)
            session = builder.config(map=sql_conf(settings)).create()
            limit_patience(session)
        except (PySparkException, OSError) as error:
            raise ConnectionFault(
                f"The Spark Connect server of connection {self._conn_id!r} can't be reached: {type(error).__name__}",
                remedy="Start it, or correct the connection's host and port.",
            ) from None
        return session

    def kill(self) -> None:
        if self._session is not None and self._tag is not None:
            with contextlib.suppress(Exception):
                self._session.interruptTag(self._tag)

    def close(self) -> None:
        if self._session is not None:
            with contextlib.suppress(Exception):
                self._session.stop()
            self._session = None
