"""The refresh operator through spark-submit: real Spark, real PostgreSQL, and nothing secret in sight."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from psycopg.conninfo import conninfo_to_dict

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph
from airflow_provider_pgtrickle.operators import StreamTableRefreshOperator

pytestmark = pytest.mark.spark

TOTALS = StreamTable("totals", "SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id")
COUNTS = StreamTable("counts", "SELECT customer_id, count(*) AS orders FROM orders GROUP BY customer_id")
REPORT = StreamTable(
    "report", "SELECT t.customer_id, t.total, c.orders FROM totals t JOIN counts c ON c.customer_id = t.customer_id"
)
DIAMOND = "counts__totals__report"


@pytest.fixture
def diamond(
    shop: psycopg.Connection,
    shop_connection: str,
    local_spark_connection: str,
    spark_alone: None,
    execute: Callable[..., Any],
) -> Callable[[], StreamTableRefreshOperator]:
    """The diamond, declared; each call is its task as a new process would build it."""

    def task() -> StreamTableRefreshOperator:
        tables = [StreamTable(t.name, t.query) for t in (TOTALS, COUNTS, REPORT)]
        (dag,) = StreamTableGraph("g", tables, shop_connection, local_spark_connection).dags()
        execute(dag.get_task("plan"))
        operator = dag.get_task(DIAMOND)
        assert isinstance(operator, StreamTableRefreshOperator)
        return operator

    return task


def differences(shop: psycopg.Connection, table: StreamTable, columns: str) -> list[tuple[Any, ...]]:
    """What tells the stream table from its query, both ways."""
    return shop.execute(
        f"(SELECT {columns} FROM {table.name} EXCEPT ALL ({table.query})) UNION ALL "
        f"(({table.query}) EXCEPT ALL SELECT {columns} FROM {table.name})"
    ).fetchall()


def test_a_unit_is_refreshed_told_and_announced(
    diamond: Callable[[], StreamTableRefreshOperator], shop: psycopg.Connection, execute: Callable[..., Any]
) -> None:
    first = execute(diamond(), "r1")
    assert first.state == "success"
    assert first.value["public.report"]["action"] == "FULL"
    assert first.value["public.report"]["rows_inserted"] == 10
    assert sorted(first.events) == [f"pgtrickle://shop_pg/public/{name}" for name in ("counts", "report", "totals")]
    assert first.events["pgtrickle://shop_pg/public/report"]["rows"] == {
        "inserted": 10,
        "updated": 0,
        "deleted": 0,
    }

    shop.execute("UPDATE orders SET amount = amount + 1 WHERE id = 1")
    second = execute(diamond(), "r2")
    assert second.value["public.totals"]["action"] == "DIFFERENTIAL"
    # counts reads no amount: nothing of it changed, so nobody is told that it did.
    assert sorted(second.events) == [f"pgtrickle://shop_pg/public/{name}" for name in ("report", "totals")]
    assert differences(shop, TOTALS, "customer_id, total") == []
    assert differences(shop, REPORT, "customer_id, total, orders") == []

    third = execute(diamond(), "r3")
    assert (third.state, third.events) == ("skipped", {})


def test_at_granularity_graph_all_units_are_one_application(
    shop: psycopg.Connection,
    shop_connection: str,
    local_spark_connection: str,
    spark_alone: None,
    execute: Callable[..., Any],
) -> None:
    chain = [
        StreamTable(TOTALS.name, TOTALS.query),
        StreamTable("ratio", "SELECT customer_id, 1000 / (total - 460) AS share FROM totals"),
        StreamTable("shares", "SELECT count(*) AS n FROM ratio"),
        StreamTable("big", "SELECT customer_id FROM totals WHERE total > 500"),
    ]
    (dag,) = StreamTableGraph("g", chain, shop_connection, local_spark_connection, granularity="graph").dags()
    execute(dag.get_task("plan"))
    with watched_arguments() as seen:
        done = execute(dag.get_task("refresh"), "r1")
    # One group's total is 460: a division by zero, which stops what reads the table and nothing else.
    assert [told["title"] for told in done.value if "error" in told] == ["ratio", "shares"]
    assert differences(shop, chain[3], "customer_id") == []
    assert len({line.split("refresh.py ")[1] for line in seen}) == 1
    assert "--tables totals --tables big --tables ratio --tables shares" in seen[0]


def test_spark_fills_what_writers_maintain_from_then_on(
    shop: psycopg.Connection,
    shop_connection: str,
    local_spark_connection: str,
    spark_alone: None,
    execute: Callable[..., Any],
) -> None:
    made = [
        StreamTable(TOTALS.name, TOTALS.query, refresh_mode="IMMEDIATE"),
        StreamTable("bag", "SELECT t.total, o.status FROM totals t JOIN orders o USING (customer_id)"),
    ]
    (dag,) = StreamTableGraph("g", made, shop_connection, local_spark_connection).dags()
    for number in range(2):
        for task in ("plan", "totals", "bag"):
            execute(dag.get_task(task), f"r{number}")
        assert differences(shop, made[1], "total, status") == []
        shop.execute("UPDATE orders SET amount = amount + 1 WHERE id % 7 = 1")
        shop.execute("DELETE FROM orders WHERE id = %s", [5 + number])
        assert differences(shop, made[0], "customer_id, total") == []
    live = shop.execute("SELECT is_live FROM pgtrickle.stream_tables_info WHERE pgt_name = 'totals'").fetchone()
    assert live == (True,)


def test_no_credential_is_seen_in_arguments_or_logs(
    diamond: Callable[[], StreamTableRefreshOperator],
    dsn: str,
    execute: Callable[..., Any],
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret = str(conninfo_to_dict(dsn)["password"])
    with watched_arguments() as seen, caplog.at_level("DEBUG"):
        run = execute(diamond())
    assert run.state == "success"
    assert any("refresh.py" in line for line in seen)
    assert not [line for line in seen if secret in line]
    captured = capfd.readouterr()
    assert secret not in captured.out + captured.err + caplog.text + str(run)


@contextmanager
def watched_arguments() -> Iterator[list[str]]:
    seen: list[str] = []
    stop = threading.Event()
    watcher = threading.Thread(target=watch_arguments, args=(seen, stop))
    watcher.start()
    try:
        yield seen
    finally:
        stop.set()
        watcher.join()


def watch_arguments(seen: list[str], stop: threading.Event) -> None:
    """Every command line of our descendants, as `ps` would show it to anybody."""
    while not stop.wait(0.05):
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                except OSError:
                    continue
                if "spark_apps/refresh.py" in line and line not in seen:
                    seen.append(line)


def test_a_query_that_fails_on_the_data_is_told_in_postgres_words(
    shop: psycopg.Connection,
    shop_connection: str,
    local_spark_connection: str,
    spark_alone: None,
    execute: Callable[..., Any],
) -> None:
    (dag,) = StreamTableGraph(
        "g", [StreamTable("ratio", "SELECT id, 1 / (id - 1) AS r FROM orders")], shop_connection, local_spark_connection
    ).dags()
    execute(dag.get_task("plan"))
    with pytest.raises(AirflowException, match="division by zero"):
        execute(dag.get_task("ratio"))


def test_killing_the_task_ends_the_driver_and_takes_its_lease(
    diamond: Callable[[], StreamTableRefreshOperator], shop: psycopg.Connection, execute: Callable[..., Any]
) -> None:
    operator = diamond()
    failure: list[BaseException] = []
    with shop.transaction():
        # The driver's commit waits for this lock, so it is killed in the middle of its work.
        shop.execute("LOCK TABLE totals IN ACCESS EXCLUSIVE MODE")
        task = threading.Thread(target=lambda: failure.append(outcome_of(execute, operator)))
        task.start()
        pid = wait_for_driver(operator)
        wait_for(lambda: leases(shop) == 3)
        operator.on_kill()
        task.join(60)
        assert not task.is_alive()
    assert isinstance(failure[0], AirflowException)
    assert leases(shop) == 0
    assert not group_members(pid)
    assert shop.execute("SELECT count(*) FROM totals").fetchone() == (0,)
    assert execute(diamond(), "r1").value["public.totals"]["rows_inserted"] == 10


def outcome_of(execute: Callable[..., Any], operator: StreamTableRefreshOperator) -> BaseException:
    try:
        return AssertionError(f"it was not killed: {execute(operator)}")
    except Exception as error:
        return error


def wait_for_driver(operator: StreamTableRefreshOperator) -> int:
    def driver() -> Any:
        hook = getattr(getattr(operator._run, "_backend", None), "_hook", None)
        return getattr(hook, "_submit_sp", None)

    wait_for(lambda: driver() is not None)
    return int(driver().pid)


def wait_for(condition: Callable[[], bool]) -> None:
    reached = threading.Event()
    for _ in range(1200):
        if condition():
            return
        reached.wait(0.05)
    raise AssertionError("it did not happen within a minute")


def leases(shop: psycopg.Connection) -> int:
    row = shop.execute("SELECT count(*) FROM pgtrickle.pgt_stream_tables WHERE lease_token IS NOT NULL").fetchone()
    assert row is not None
    return int(row[0])


def group_members(group: int) -> list[int]:
    def members() -> Iterator[int]:
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    state = (folder / "stat").read_text().rsplit(") ", 1)[1].split()[0]
                    if os.getpgid(int(folder.name)) == group and state != "Z":
                        yield int(folder.name)
                except (OSError, IndexError):
                    continue

    return list(members())


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        (None, "airflow connections add spark_default"),
        ("postgres://somewhere", "which runs no Spark"),
    ],
)
def test_a_wrong_spark_connection_fails_at_once(
    shop: psycopg.Connection,
    shop_connection: str,
    execute: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    uri: str | None,
    message: str,
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT", raising=False)
    if uri:
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", uri)
    (dag,) = StreamTableGraph("g", [StreamTable("t", TOTALS.query)], shop_connection).dags()
    execute(dag.get_task("plan"))
    with pytest.raises(AirflowFailException, match=message):
        execute(dag.get_task("t"))
