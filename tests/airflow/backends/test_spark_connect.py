"""A Spark Connect server that isn't there is told at once; what it does when it is there, `test_shop_run.py` shows."""

from __future__ import annotations

import json
import socket

import psycopg
import pytest

from airflow_provider_pgtrickle.backends.request import RefreshRequest
from airflow_provider_pgtrickle.backends.selection import backend_for
from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import ConnectionFault


@pytest.mark.timeout(60)
def test_a_server_that_is_not_there_is_told_at_once_and_without_its_token(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    connection = {"conn_type": "spark_connect", "host": "127.0.0.1", "port": port, "password": "hunter2"}
    monkeypatch.setenv("AIRFLOW_CONN_WARM", json.dumps(connection))
    monkeypatch.setenv("PGTRICKLE_RETRY_ATTEMPTS", "1")
    with psycopg.connect(dsn, autocommit=True) as shop:
        shop.execute("CREATE TABLE orders (id int PRIMARY KEY)")
        shop.execute("INSERT INTO orders VALUES (1)")
    with PgTrickle(dsn) as client:
        client.install()
        client.create_stream_table("t", "SELECT id FROM orders", initialize=False)
    backend = backend_for("warm")
    with pytest.raises(ConnectionFault, match="'warm' can't be reached") as caught:
        backend.refresh(RefreshRequest((("t",),), "token", dsn))
    assert "hunter2" not in str(caught.value)
