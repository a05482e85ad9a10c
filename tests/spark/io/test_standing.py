"""Credentials that stand where Spark runs: nothing secret is sent, and a Connect server needs no Python to read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import ConnectionFault, UsageError
from airflow_provider_pgtrickle.engine.refresh.executor import Computation, StageTarget
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.execute import SparkExecutor
from airflow_provider_pgtrickle.engine.spark.leaf import Leaf, Snapshot, portable_dsn, read
from airflow_provider_pgtrickle.engine.spark.servers import ConnectServer
from tests import servers
from tests.spark.conftest import client

QUERY = "SELECT 1 AS __pgt_w, n::text AS __pgt_key, n::text AS n FROM generate_series(1, 10) n"


def _standing(dsn: str, how: str) -> Database:
    return Database(dsn, Settings.load(spark_credentials=how))


@pytest.mark.parametrize("how", ["pgpass", "service=shop.eu_1-a"])
def test_nothing_secret_is_among_what_spark_gets(dsn: str, how: str) -> None:
    jdbc = _standing(dsn, how).jdbc
    assert servers.ORDINARY_PASSWORD not in f"{jdbc.url} {jdbc.properties} {portable_dsn(jdbc)}"
    assert jdbc.stands
    assert Database(dsn, Settings.load()).jdbc.properties["password"] == servers.ORDINARY_PASSWORD


@pytest.mark.parametrize("how", ["pgpas", "service=", "service=a&password=x", "service=a b"])
def test_another_value_is_refused_in_one_sentence(dsn: str, how: str) -> None:
    with pytest.raises(UsageError, match="spark_credentials can't be") as raised:
        _ = _standing(dsn, how).jdbc
    assert "service=NAME" in str(raised.value)


def test_a_connect_server_that_has_the_password_reads_without_python(connect, dsn, snapshot_now) -> None:
    def plan(snapshot: Snapshot) -> str:
        rows: Any = read(connect, snapshot, Leaf(QUERY))
        return rows._explain_string()

    with snapshot_now() as snapshot:
        standing = plan(replace(snapshot, jdbc=_standing(dsn, "pgpass").jdbc))
        sent = plan(snapshot)
    assert "JDBCRelation" in standing
    assert "MapInArrow" not in standing
    assert "MapInArrow" in sent


def test_a_service_that_stands_on_the_server_is_enough(spark_alone, dsn, conn, snapshot_now, tmp_path: Path) -> None:
    """Small results and staged ones; and a service that isn't there is one sentence with what to do."""
    url = urlsplit(dsn)
    file = tmp_path / "services"
    file.touch(mode=0o600)
    file.write_text(
        f"[shop]\nhost={url.hostname}\nport={url.port}\ndbname={url.path[1:]}\n"
        f"user={servers.ORDINARY_ROLE}\npassword={servers.ORDINARY_PASSWORD}\n"
    )
    conn.execute("CREATE UNLOGGED TABLE s (__pgt_w int, __pgt_row_id bigint, n int)")
    with (
        ConnectServer(tmp_path / "server", Settings.load(), environment={"PGSERVICEFILE": str(file)}) as server,
        client(server) as session,
        snapshot_now() as snapshot,
    ):
        executor = SparkExecutor(session, _standing(dsn, "service=shop"))
        assert executor.compute(snapshot.snapshot_id, Computation(QUERY, ("n",), 10), None).rows == 10
        target = StageTarget("public", "s", ("n",))
        large = Computation(QUERY, ("n",), 10, large=True)
        assert executor.compute(snapshot.snapshot_id, large, target).rows == 10
        assert conn.execute("SELECT count(*), sum(n) FROM s").fetchone() == (10, 55)
        missing = SparkExecutor(session, _standing(dsn, "service=other"))
        with pytest.raises(ConnectionFault, match="Where Spark runs there is no such service for PostgreSQL"):
            missing.compute(snapshot.snapshot_id, Computation(QUERY, ("n",), 10), None)
        lacking = SparkExecutor(session, _standing(dsn, "pgpass"))
        with pytest.raises(ConnectionFault, match="Where Spark runs there is no password for PostgreSQL") as raised:
            lacking.compute(snapshot.snapshot_id, Computation(QUERY, ("n",), 10), None)
        assert "PGPASSFILE" in str(raised.value)
