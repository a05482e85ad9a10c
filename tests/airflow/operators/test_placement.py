"""With placement `database` a task refreshes in its own process: no back end, no Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import psycopg
import pytest

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph, Unit
from airflow_provider_pgtrickle.backends import selection
from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.operators import StreamTableRefreshOperator
from tests.airflow.operators.test_refresh_graph import PostgresBackend

TOTALS = "SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id"

CHANGED = """
import sys
from types import SimpleNamespace
from airflow_provider_pgtrickle.operators import StreamTableRefreshOperator
task = StreamTableRefreshOperator(
    task_id="totals", tables=["totals"], postgres_conn_id="shop_pg", spark_conn_id="there_is_none",
    force_full="--full" in sys.argv,
)
ti = SimpleNamespace(
    dag_id="d", run_id=sys.argv[1], task_id="totals", map_index=-1, max_tries=0, task=task, xcom_push=lambda **_: None
)
print(task.execute({"ti": ti})["public.totals"]["action"])
print(sorted({"pyspark", "pandas", "numpy", "pyarrow", "grpc"} & set(sys.modules)))
"""


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> NoReturn:
        raise UsageError("A back end was asked for")

    monkeypatch.setattr(selection, "backend_for", refuse)


def test_a_changed_unit_loads_nothing_of_spark(shop: psycopg.Connection, shop_connection: str, dsn: str) -> None:
    with PgTrickle(dsn, placement="database") as client:
        client.install()
        client.create_stream_table("totals", TOTALS, placement="database")
    for run, arguments, action in (("r1", [], "DIFFERENTIAL"), ("r2", ["--full"], "FULL")):
        shop.execute("UPDATE orders SET customer_id = 2 WHERE id = (SELECT min(id) FROM orders WHERE customer_id = 1)")
        done = subprocess.run(
            [sys.executable, "-c", CHANGED, run, *arguments],
            env=os.environ.copy(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-2:] == [action, "[]"]


def test_a_graph_without_spark_is_created_filled_and_refreshed(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], no_spark: None
) -> None:
    (dag,) = StreamTableGraph(
        "g",
        [
            StreamTable("totals", TOTALS, differential_max_change_ratio=0.0),
            StreamTable("regions", "SELECT c.region, sum(t.n) AS n FROM totals t JOIN customers c "
                        "ON c.id = t.customer_id GROUP BY c.region", differential_max_change_ratio=0.0),
        ],
        shop_connection,
        granularity="graph",
        placement="database",
    ).dags()  # fmt: skip
    execute(dag.get_task("plan"))
    execute(dag.get_task("refresh"), "r1")
    shop.execute("UPDATE orders SET customer_id = 2 WHERE id = (SELECT min(id) FROM orders WHERE customer_id = 1)")
    execute(dag.get_task("refresh"), "r2")
    done = shop.execute(
        "SELECT t.pgt_name, t.placement, array_agg(h.action ORDER BY h.refresh_id) FROM pgtrickle.pgt_refresh_history h"
        " JOIN pgtrickle.pgt_stream_tables t USING (pgt_id) GROUP BY 1, 2 ORDER BY 1"
    ).fetchall()
    assert done == [(name, "database", ["FULL", "DIFFERENTIAL"]) for name in ("regions", "totals")]
    assert shop.execute("SELECT customer_id, n FROM totals EXCEPT ALL " + TOTALS).fetchall() == []


def test_auto_opens_spark_only_where_that_is_predicted_to_be_cheaper(
    shop: psycopg.Connection,
    shop_connection: str,
    dsn: str,
    execute: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backend = PostgresBackend()
    monkeypatch.setattr(selection, "backend_for", lambda *_: backend)
    with PgTrickle(dsn, placement="database") as client:
        client.install()
        client.create_stream_table("totals", TOTALS, placement="auto", refresh_mode="DIFFERENTIAL")
    task = StreamTableRefreshOperator(task_id="totals", tables=["totals"], postgres_conn_id=shop_connection)
    change = "UPDATE orders SET customer_id = 2 WHERE id = (SELECT min(id) FROM orders WHERE customer_id = 1)"
    shop.execute(change)
    noted = execute(task, "r1").noted
    assert noted["public.totals"].startswith("DIFFERENTIAL, +0 ~2 -0 rows from 1 changes in ")
    assert backend.refreshed == []
    # Differences in the database have become slow, and those through Spark are not.
    for way, ms in (("pushed", 10), *[("database", 90_000)] * 5):
        shop.execute(
            "INSERT INTO pgtrickle.pgt_refresh_history (pgt_id, action, status, way, actual_ms, source_changes, regime)"
            " SELECT pgt_id, 'DIFFERENTIAL', 'COMPLETED', %s, %s, 1, pgtrickle.pgt_regime(pgt_id)"
            " FROM pgtrickle.pgt_stream_tables",
            (way, ms),
        )
    shop.execute(change)
    execute(task, "r2")
    assert backend.refreshed == [(("totals",),)]
    # The attempt without Spark left no trace.
    done = shop.execute(
        "SELECT way, action FROM pgtrickle.pgt_refresh_history WHERE run_token IS NOT NULL ORDER BY refresh_id"
    ).fetchall()
    assert done == [("database", "FULL"), ("database", "DIFFERENTIAL"), ("pushed", "DIFFERENTIAL")]
    assert shop.execute("SELECT customer_id, n FROM totals EXCEPT ALL " + TOTALS).fetchall() == []


def test_a_declared_unit_is_refreshed_by_its_task_in_one_commit(
    shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any], no_spark: None
) -> None:
    names = "SELECT id, name FROM customers WHERE region = 'north'"
    tables = [
        StreamTable(name, query, differential_max_change_ratio=0.0)
        for name, query in (("totals", TOTALS), ("names", names))
    ]
    graph = StreamTableGraph("g", [Unit("ledger", tables)], shop_connection, "there_is_none", placement="database")
    (dag,) = graph.dags()
    execute(dag.get_task("plan"), "r1")
    assert execute(dag.get_task("ledger"), "r1").state == "success"
    shop.execute("UPDATE orders SET customer_id = 2 WHERE id < 5")
    assert execute(dag.get_task("plan"), "r2").skipped == []
    run = execute(dag.get_task("ledger"), "r2")
    assert {name: told["action"] for name, told in run.value.items()} == {
        "public.totals": "DIFFERENTIAL",
        "public.names": "NO_DATA",
    }
    # The asset of what changed alone is updated, and both tables are of one instant.
    assert [key.rpartition("/")[2] for key in run.events] == ["totals"]
    (instants,) = shop.execute("SELECT count(DISTINCT data_timestamp) FROM pgtrickle.pgt_stream_tables").fetchall()
    assert instants == (1,)
    assert execute(dag.get_task("plan"), "r3").skipped == ["ledger"]
