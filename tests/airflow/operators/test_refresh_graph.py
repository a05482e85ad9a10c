"""Granularity `graph`: one task refreshes, and says what to show; a failure stops only what reads the table."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_provider_pgtrickle import StreamTable, StreamTableGraph
from airflow_provider_pgtrickle.backends import selection
from airflow_provider_pgtrickle.backends.request import RefreshRequest
from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import TransientFault
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.executor import PostgresExecutor
from airflow_provider_pgtrickle.engine.refresh.unit import refresh_units
from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.operators import outcome


class PostgresBackend:
    """Computes in PostgreSQL, so that these tests are about the order of things and not about Spark."""

    def __init__(self) -> None:
        self.refreshed: list[tuple[tuple[str, ...], ...]] = []
        self.dies_after: int | None = None
        self.closed = threading.Event()

    def refresh(self, request: RefreshRequest) -> None:
        self.refreshed.append(request.units)
        database = Database(request.dsn, Settings.load())
        refresh_units(
            database,
            [[QualifiedName.parse(name) for name in unit] for unit in request.units[: self.dies_after]],
            executor=lambda: PostgresExecutor(database),
            settings=Settings.load(),
            force_full=request.force_full,
            run_token=request.run_token,
            initiated_by=request.initiated_by,
            along=[QualifiedName.parse(name) for name in request.along],
        )
        if self.dies_after is not None:
            raise TransientFault("The Spark application ended with exit code 137")

    def kill(self) -> None:
        raise AssertionError("nobody killed it")

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> PostgresBackend:
    made = PostgresBackend()
    monkeypatch.setattr(selection, "backend_for", lambda *_: made)
    return made


@pytest.fixture
def dag(shop: psycopg.Connection, shop_connection: str) -> Any:
    (made,) = StreamTableGraph(
        "g",
        [
            StreamTable("totals", "SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id"),
            StreamTable("ratio", "SELECT customer_id, 1000 / total AS share FROM totals"),
            StreamTable("shares", "SELECT customer_id FROM ratio WHERE share > 1"),
            StreamTable("regions", "SELECT c.region, sum(t.total) AS total FROM totals t JOIN customers c "
                        "ON c.id = t.customer_id GROUP BY c.region"),
        ],
        shop_connection,
        granularity="graph",
    ).dags()  # fmt: skip
    return made


def updated(run: Any) -> dict[str, Any]:
    """The extra of each asset that is to be updated."""
    return {event["uri"].rsplit("/", 1)[1]: event["extra"] for told in run.value for event in told.get("events", ())}


def failed(run: Any) -> dict[str, list[str]]:
    """The tables of each unit that failed."""
    return {told["title"]: told["tables"] for told in run.value if "error" in told}


def test_one_task_refreshes_all_and_each_table_shows_its_own(
    dag: Any, backend: PostgresBackend, shop: psycopg.Connection, execute: Callable[..., Any]
) -> None:
    execute(dag.get_task("plan"))
    run = execute(dag.get_task("refresh"), "r1")
    assert (failed(run), run.skipped) == ({}, [])
    assert backend.refreshed == [(("totals",), ("ratio",), ("regions",), ("shares",))]
    assert backend.closed.is_set()
    assert sorted(updated(run)) == ["ratio", "regions", "shares", "totals"]
    assert updated(run)["totals"]["rows"] == {"inserted": 10, "updated": 0, "deleted": 0}


def test_a_person_can_have_selected_tables_computed_anew(
    dag: Any, backend: PostgresBackend, shop: psycopg.Connection, execute: Callable[..., Any]
) -> None:
    execute(dag.get_task("plan"))
    execute(dag.get_task("refresh"), "r1")
    backend.refreshed.clear()
    asked = {"full_refresh": True, "tables": "totals regions"}
    assert execute(dag.get_task("plan"), params=asked).value["run"] == 2
    run = execute(dag.get_task("refresh"), "r2", params=asked)
    assert backend.refreshed == [(("totals",), ("regions",))]
    assert sorted(run.skipped) == ["ratio", "shares"]
    assert "public.totals: FULL (forced), +0 ~0 -0 rows from 0 changes in" in run.log
    # What is computed anew and comes out the same updates no asset.
    assert run.value == []


def test_only_what_changed_reaches_the_back_end(
    dag: Any, backend: PostgresBackend, shop: psycopg.Connection, execute: Callable[..., Any]
) -> None:
    execute(dag.get_task("plan"))
    execute(dag.get_task("refresh"), "r1")
    backend.refreshed.clear()
    shop.execute("UPDATE customers SET region = 'west' WHERE id = 1")
    run = execute(dag.get_task("refresh"), "r2")
    assert backend.refreshed == [(("regions",),)]
    assert sorted(run.skipped) == ["ratio", "shares", "totals"]
    assert [(name, extra["action"]) for name, extra in updated(run).items()] == [("regions", "DIFFERENTIAL")]


def test_a_failure_stops_what_reads_the_table_and_nothing_else(
    dag: Any, backend: PostgresBackend, shop: psycopg.Connection, execute: Callable[..., Any]
) -> None:
    execute(dag.get_task("plan"))
    execute(dag.get_task("refresh"), "r1")
    shop.execute("UPDATE orders SET amount = 0 WHERE customer_id = 3")  # 1000 / 0
    run = execute(dag.get_task("refresh"), "r2")
    assert failed(run) == {"ratio": ["public.ratio"], "shares": ["public.shares"]}
    assert sorted(run.skipped) == ["ratio", "shares"]
    # So does the task's page, what failed first.
    assert next(iter(run.noted)) == "public.ratio"
    assert run.noted["public.ratio"].startswith("FAILED: Division by zero")
    assert run.noted["public.regions"].startswith("DIFFERENTIAL")
    # What was done beside it is told all the same.
    assert sorted(updated(run)) == ["regions", "totals"]
    done, ratio, shares = (dag.get_task("outcomes").unmap(told) for told in run.value)
    events = execute(done).events
    assert {uri.rsplit("/", 1)[1]: extra for uri, extra in events.items()} == updated(run)
    with pytest.raises(AirflowFailException, match=r"public\.ratio: Division by zero"):
        execute(ratio)
    with pytest.raises(AirflowFailException, match="shares was not refreshed: it reads ratio, which failed"):
        execute(shares)


def test_many_assets_are_updated_by_a_few_at_once(
    backend: PostgresBackend, shop: psycopg.Connection, shop_connection: str, execute: Callable[..., Any]
) -> None:
    tables = [StreamTable(f"t{n:02}", f"SELECT id + {n} AS id FROM orders") for n in range(60)]
    both = StreamTable("both", "SELECT t00.id FROM t00 JOIN t59 USING (id)")
    whole = StreamTable("whole", " UNION ALL ".join(f"SELECT id FROM t{n:02}" for n in range(60)))
    (dag,) = StreamTableGraph("g", [*tables, both, whole], shop_connection, granularity="graph").dags()
    execute(dag.get_task("plan"))
    run = execute(dag.get_task("refresh"), "r1")
    assert [told["title"] for told in run.value] == ["50 updated", "12 updated"]
    assert len(updated(run)) == 62


def test_what_a_view_hides_is_refreshed_in_postgres_order_and_nobody_is_warned(
    backend: PostgresBackend,
    shop: psycopg.Connection,
    shop_connection: str,
    execute: Callable[..., Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    def declared(*more: StreamTable) -> Any:
        totals = StreamTable("totals", "SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id")
        (dag,) = StreamTableGraph("g", [totals, *more], shop_connection, granularity="graph").dags()
        execute(dag.get_task("plan"))
        return dag

    declared()
    shop.execute("CREATE VIEW large AS SELECT customer_id FROM totals WHERE total > 500")
    # By its name it comes first, and by its text it reads no stream table.
    first = StreamTable("a_count", "SELECT count(*) AS n FROM large")
    both = StreamTable("both_of_them", "SELECT t.customer_id, a.n FROM totals t CROSS JOIN a_count a")
    execute(declared(first, both).get_task("refresh"), "r1")
    assert backend.refreshed == [(("totals",), ("a_count",), ("both_of_them",))]
    assert shop.execute("SELECT n FROM a_count").fetchall() == shop.execute("SELECT count(*) FROM large").fetchall()
    assert "through a view" not in caplog.text


def test_a_back_end_that_dies_midway_fails_the_task_and_its_retry_does_the_rest(
    dag: Any, backend: PostgresBackend, shop: psycopg.Connection, execute: Callable[..., Any]
) -> None:
    execute(dag.get_task("plan"))
    backend.dies_after = 2
    with pytest.raises(AirflowException, match="exit code 137"):
        execute(dag.get_task("refresh"), "r1", try_number=1, max_tries=0)
    backend.dies_after = None
    run = execute(dag.get_task("refresh"), "r1", try_number=2, max_tries=0)
    assert backend.refreshed[1:] == [(("regions",), ("shares",))]
    # The retry tells what the attempt before it committed, too.
    assert (failed(run), run.skipped) == ({}, [])
    assert sorted(updated(run)) == ["ratio", "regions", "shares", "totals"]


def test_retries_share_a_token_and_a_cleared_task_gets_another() -> None:
    task = SimpleNamespace(retries=2)
    ti = {"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": -1, "task": task}

    def token(**state: int) -> str:
        context: Any = {"ti": SimpleNamespace(**ti, **state)}
        return outcome.run_token(context)

    assert token(try_number=1, max_tries=2) == token(try_number=3, max_tries=2)
    assert token(try_number=1, max_tries=2) != token(try_number=2, max_tries=3)
