"""Where measurements happen: a database of their own, on a server given or started, and one Spark session."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.embedded import PostgresServer
from airflow_provider_pgtrickle.engine.settings import Settings

#: A server as one would run it: everything durable, memory for the machine and not for a laptop's defaults.
_OPTIONS = {"shared_buffers": "1GB", "max_wal_size": "8GB", "work_mem": "64MB", "maintenance_work_mem": "512MB"}


@contextmanager
def server(dsn: str | None, **options: str) -> Iterator[str]:
    """The URL of a server's maintenance database; without one, a server that is gone afterwards."""
    if dsn:
        yield dsn
        return
    with tempfile.TemporaryDirectory(prefix="pgtrickle-bench-") as folder:
        Path(folder).chmod(0o755)
        started = PostgresServer(Path(folder) / "server", options={**_OPTIONS, **options}).start()
        try:
            yield started.dsn()
        finally:
            started.remove()


@contextmanager
def database(dsn: str) -> Iterator[str]:
    """The URL of a fresh database."""
    name = f"bench_{secrets.token_hex(4)}"
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
    try:
        yield psycopg.conninfo.make_conninfo(dsn, dbname=name)
    finally:
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def installed(dsn: str, spark: object, placement: str = "spark") -> Iterator[tuple[PgTrickle, psycopg.Connection]]:
    """A fresh database with the catalog in it, and a connection for the changes."""
    with (
        database(dsn) as url,
        PgTrickle(
            url,
            spark=spark,  # type: ignore[arg-type]
            placement=placement,
            differential_max_change_ratio=0.0,
        ) as pt,
        psycopg.connect(url, autocommit=True) as conn,
    ):
        pt.install()
        yield pt, conn


@contextmanager
def warm_spark() -> Iterator[object]:
    """One local session, already warm: the first job's cost is measured elsewhere, as the cold start."""
    from airflow_provider_pgtrickle.engine.spark.session import obtain

    session = obtain(None, Settings.load())
    session.range(1000).selectExpr("sum(id)").collect()
    try:
        yield session
    finally:
        session.stop()
