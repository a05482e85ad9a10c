"""The examples under `airflow dags test`, on real PostgreSQL and a warm Spark Connect server."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from airflow.dag_processing.dagbag import DagBag

from airflow_provider_pgtrickle.embedded import PostgresServer
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.engine.spark.servers import ConnectServer
from tests import servers, traces
from tests.benchmarks import tpch

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parent.parent.parent
SHOP = ROOT / "airflow_provider_pgtrickle" / "demo" / "shop.sql"
TABLES = ("order_totals", "country_revenue", "country_orders", "country_report", "best_customers", "page_views")


@pytest.fixture(scope="module")
def connect_server(spark_alone: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with ConnectServer(tmp_path_factory.mktemp("connect"), Settings.load()) as server:
        yield server


@pytest.fixture
def environment(airflow_database: None, connect_server: ConnectServer, dsn: str) -> dict[str, str]:
    """What a process of this Airflow gets."""
    return {
        **os.environ,
        "AIRFLOW_CONN_SHOP_PG": f"pgtrickle://{dsn.split('://', 1)[1]}",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(
            {"conn_type": "spark_connect", "host": "127.0.0.1", "port": int(connect_server.url.rsplit(":", 1)[1])}
        ),
    }


@pytest.fixture
def run_dag(environment: dict[str, str]) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """`airflow dags test`, in a process of its own."""

    def run(dag_id: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "airflow", "dags", "test", dag_id]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)

    return run


@pytest.fixture
def shop(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(SHOP.read_text())
        yield connection


def actions(shop: psycopg.Connection) -> dict[str, str]:
    """The last refresh of each table; parts have theirs with their owner's."""
    return dict(
        shop.execute(
            "SELECT DISTINCT ON (pgt_name) pgt_name, action FROM pgtrickle.pgt_refresh_history "
            "JOIN pgtrickle.pgt_stream_tables USING (pgt_id) WHERE pgt_refresh_history.status = 'COMPLETED' "
            "AND NOT is_hidden "
            "ORDER BY pgt_name, refresh_id DESC"
        ).fetchall()
    )


def differences(shop: psycopg.Connection, name: str, query: str) -> list[tuple[object, ...]]:
    """What tells a stream table from its query, both ways."""
    columns = ", ".join(
        row[0]
        for row in shop.execute(
            "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 "
            "AND NOT attisdropped AND NOT starts_with(attname, '__pgt_') ORDER BY attnum",
            [name],
        ).fetchall()
    )
    return shop.execute(
        f"(SELECT {columns} FROM {name} EXCEPT ALL SELECT {columns} FROM ({query}) q) UNION ALL "
        f"(SELECT {columns} FROM ({query}) q EXCEPT ALL SELECT {columns} FROM {name})"
    ).fetchall()


def announced() -> list[dict[str, Any]]:
    """The events of country_report's asset that Airflow recorded, oldest first."""
    with sqlite3.connect(Path(os.environ["AIRFLOW_HOME"]) / "airflow.db") as metadata:
        rows = metadata.execute(
            "SELECT e.extra FROM asset_event e JOIN asset a ON a.id = e.asset_id WHERE a.uri LIKE ? ORDER BY e.id",
            ["%/public/country_report"],
        ).fetchall()
    return [json.loads(extra) for (extra,) in rows]


def test_the_shop_is_filled_then_follows_its_changes_then_rests(
    run_dag: Callable[[str], subprocess.CompletedProcess[str]],
    shop: psycopg.Connection,
    dsn: str,
    connect_server: ConnectServer,
) -> None:
    bag = DagBag(str(ROOT / "dags" / "shop.py"), bundle_path=ROOT / "dags", bundle_name="examples")
    plan: Any = bag.dags["shop"].get_task("plan")
    queries = {t.name: t.query for t in plan.tables}

    filled = run_dag("shop")
    assert filled.returncode == 0, filled.stdout[-5000:] + filled.stderr[-5000:]
    assert set(actions(shop).values()) == {"FULL"}
    assert [event["action"] for event in announced()] == ["FULL"]
    assert announced()[0]["rows"] == {"inserted": 5, "updated": 0, "deleted": 0}
    for name in TABLES:
        assert differences(shop, name, queries[name]) == [], name

    shop.execute("UPDATE items SET quantity = quantity + 1 WHERE id <= 20")
    shop.execute("UPDATE orders SET status = 'cancelled' WHERE id BETWEEN 100 AND 110")
    shop.execute("DELETE FROM orders WHERE id = 200")
    followed = run_dag("shop")
    assert followed.returncode == 0, followed.stdout[-5000:] + followed.stderr[-5000:]
    assert actions(shop)["order_totals"] == "DIFFERENTIAL"
    assert actions(shop)["best_customers"] == "TOPK"
    for name in TABLES:
        assert differences(shop, name, queries[name]) == [], name

    rested = run_dag("shop")
    assert rested.returncode == 0, rested.stdout[-5000:] + rested.stderr[-5000:]
    assert set(actions(shop).values()) == {"NO_DATA"}
    # One event for each run that changed rows, and none for the run that found nothing.
    _, second = announced()
    assert sum(second["rows"].values()) > 0

    # And nobody kept the password: no history row, no XCom, no rendered template, no log.
    word = servers.ORDINARY_PASSWORD
    home = Path(os.environ["AIRFLOW_HOME"])
    assert traces.in_database(dsn, word) == []
    assert traces.in_metadata(home / "airflow.db", word) == []
    assert traces.in_files(home, word) == []
    assert traces.in_files(connect_server.folder, word) == []
    assert not any(word in run.stdout + run.stderr for run in (filled, followed, rested))


@pytest.mark.parametrize("dag_id", ["sql_shop", "event_driven"])
def test_every_other_example_runs(
    run_dag: Callable[[str], subprocess.CompletedProcess[str]], shop: psycopg.Connection, dag_id: str
) -> None:
    bag = DagBag(str(ROOT / "dags"), bundle_path=ROOT / "dags", bundle_name="examples")
    plan: Any = bag.dags[dag_id].get_task("plan")
    declared = plan.tables
    done = run_dag(dag_id)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert set(actions(shop)) == {table.name for table in declared}
    for table in declared:
        assert differences(shop, table.name, table.query) == [], table.name


@pytest.fixture
def tpch_database(postgres18: PostgresServer, environment: dict[str, str]) -> Iterator[psycopg.Connection]:
    """TPC-H, small, in a database of its own: some of its tables are called like the shop's."""
    with servers.fresh_database(postgres18) as name:
        dsn = servers.ordinary_dsn(postgres18, name)
        environment["AIRFLOW_CONN_TPCH_PG"] = f"pgtrickle://{dsn.split('://', 1)[1]}"
        with psycopg.connect(dsn, autocommit=True) as connection:
            tpch.load(connection, 0.01)
            yield connection


def test_tpch_is_filled_then_follows_its_changes(
    run_dag: Callable[[str], subprocess.CompletedProcess[str]], tpch_database: psycopg.Connection
) -> None:
    bag = DagBag(str(ROOT / "dags" / "tpch.py"), bundle_path=ROOT / "dags", bundle_name="examples")
    plan: Any = bag.dags["tpch"].get_task("plan")
    declared = plan.tables
    for wanted in ("FULL", "DIFFERENTIAL"):
        done = run_dag("tpch")
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
        assert {actions(tpch_database)[query.name] for query in declared if query.name != "answers"} == {wanted}
        for table in declared:
            assert differences(tpch_database, table.name, table.query) == [], table.name
        tpch.change(tpch_database, 0, 0.005)


#: `airflow tasks test` for one task after the other; a process each would spend its time on Airflow's imports.
TASKS_TEST = """
import sys
from airflow.cli.cli_parser import get_parser
dag_id, *task_ids = sys.argv[1:]
for task_id in task_ids:
    arguments = get_parser().parse_args(["tasks", "test", dag_id, task_id])
    arguments.func(arguments)
"""


def test_every_task_of_every_example_under_tasks_test(
    environment: dict[str, str], shop: psycopg.Connection, tpch_database: psycopg.Connection
) -> None:
    """It exits with 0 even where the task failed, so the database is asked."""
    bag = DagBag(str(ROOT / "dags"), bundle_path=ROOT / "dags", bundle_name="examples")
    for dag_id, dag in sorted(bag.dags.items()):
        # A mapped task has no instance without its upstream's answer, which `tasks test` doesn't keep for it.
        tasks = [task.task_id for task in dag.topological_sort() if not task.is_mapped]
        command = [sys.executable, "-c", TASKS_TEST, dag_id, *tasks]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
        for table in getattr(dag.task_dict.get("plan"), "tables", ()):
            database = tpch_database if dag_id == "tpch" else shop
            assert actions(database)[table.name] == "FULL", done.stdout[-5000:] + done.stderr[-5000:]
            assert differences(database, table.name, table.query) == [], table.name
