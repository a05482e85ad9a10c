"""The sensors, poked in a worker, deferred to the triggerer, and started in it."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskDeferred
from airflow.triggers.base import BaseTrigger, TaskFailedEvent, TaskSuccessEvent, TriggerEvent

from airflow_provider_pgtrickle.engine.errors import UsageError
from airflow_provider_pgtrickle.sensors import ChangeBufferSensor, StreamTableFreshnessSensor
from airflow_provider_pgtrickle.triggers.buffer import ChangeBufferTrigger
from airflow_provider_pgtrickle.triggers.freshness import FreshnessTrigger
from tests.airflow.listened import CONN_ID, NEVER, Catalog, event_of


def fresh(**options: Any) -> StreamTableFreshnessSensor:
    options = {"stream_table": "totals", "max_staleness": 60, "poke_interval": NEVER, **options}
    return StreamTableFreshnessSensor(task_id="wait", postgres_conn_id=CONN_ID, **options)


def pending(**options: Any) -> ChangeBufferSensor:
    options = {"stream_table": "totals", "poke_interval": 0.05, **options}
    return ChangeBufferSensor(task_id="wait", postgres_conn_id=CONN_ID, **options)


def ended(trigger: BaseTrigger) -> TriggerEvent:
    return asyncio.run(event_of(trigger.run()))


def test_a_fresh_table_satisfies_the_first_poke(catalog: Catalog) -> None:
    catalog.declare("totals")
    catalog.refresh("totals")
    found = fresh().poke({})
    assert found.is_done
    assert found.xcom_value is not None
    assert 0 <= found.xcom_value["staleness"] < 60


@pytest.mark.parametrize("how_fresh", [{"max_staleness": timedelta(minutes=1)}, {"max_staleness": 60}])
def test_a_table_refreshed_long_ago_does_not(catalog: Catalog, how_fresh: dict[str, Any]) -> None:
    catalog.declare("totals")
    catalog.refresh("totals", at="yesterday")
    assert not fresh(**how_fresh).poke({}).is_done


def test_a_table_that_writers_maintain_is_always_fresh(catalog: Catalog) -> None:
    catalog.declare("totals", refresh_mode="IMMEDIATE", is_live=True)
    catalog.refresh("totals", at="yesterday")
    assert fresh(max_staleness=0).poke({}).is_done
    assert fresh(at_least="2026-01-02T03:04:05+00:00", max_staleness=None).poke({}).is_done


def test_a_table_never_refreshed_does_not(catalog: Catalog) -> None:
    catalog.declare("totals")
    assert not fresh().poke({}).is_done


def test_at_least_is_a_point_in_time_and_reaching_it_is_enough(catalog: Catalog) -> None:
    catalog.declare("totals")
    catalog.refresh("totals", at="2026-01-02 03:04:05+00")
    just = fresh(at_least="2026-01-02T03:04:05+00:00", max_staleness=None)
    later = fresh(at_least="2026-01-02T03:04:06+00:00", max_staleness=None)
    assert just.poke({}).is_done
    assert not later.poke({}).is_done


def test_a_sensor_that_asks_for_nothing_is_an_import_error() -> None:
    with pytest.raises(UsageError, match="Nothing says how fresh"):
        StreamTableFreshnessSensor(task_id="wait", stream_table="totals")


@pytest.mark.parametrize("deferrable", [False, True])
def test_a_table_that_does_not_exist_fails_without_retry(catalog: Catalog, deferrable: bool) -> None:
    with pytest.raises(AirflowFailException, match="no stream table named totals"):
        fresh(deferrable=deferrable).execute({})


def test_a_suspended_table_fails_naming_the_cause(catalog: Catalog) -> None:
    catalog.declare("totals", status="SUSPENDED", last_error="column gone")
    with pytest.raises(AirflowFailException, match=r"suspended.*column gone.*ACTIVE"):
        fresh().execute({})


def test_with_soft_fail_it_is_skipped_instead(catalog: Catalog) -> None:
    catalog.declare("totals", status="SUSPENDED")
    with pytest.raises(AirflowSkipException):
        fresh(soft_fail=True, deferrable=True).execute({})


def test_deferrable_it_defers_only_while_the_answer_is_no(catalog: Catalog) -> None:
    catalog.declare("totals")
    sensor = fresh(deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute({})
    assert isinstance(deferred.value.trigger, FreshnessTrigger)
    catalog.refresh("totals")
    assert sensor.execute({})["staleness"] < 60


def test_deferred_it_wakes_with_the_notification_of_the_refresh(catalog: Catalog) -> None:
    async def scenario() -> None:
        catalog.declare("totals")
        waiting = asyncio.ensure_future(event_of(fresh().trigger(end_from_trigger=False).run()))
        async with asyncio.timeout(20):
            while not catalog.listeners():
                await asyncio.sleep(0)
        catalog.refresh("totals")
        event = await waiting
        assert event.payload["status"] == "success"
        assert fresh().execute_complete({}, event.payload) == event.payload["found"]

    asyncio.run(scenario())


def test_deferred_it_fails_the_task_when_waiting_is_hopeless(catalog: Catalog) -> None:
    event = ended(fresh().trigger(end_from_trigger=False))
    assert event.payload["status"] == "error"
    with pytest.raises(AirflowFailException, match="no stream table named totals"):
        fresh().execute_complete({}, event.payload)


def test_a_missing_connection_is_one_sentence(catalog: Catalog) -> None:
    trigger = FreshnessTrigger(stream_table="totals", postgres_conn_id="nowhere", max_staleness=1)
    assert "no Airflow connection 'nowhere'" in ended(trigger).payload["message"]


def test_started_from_the_trigger_it_ends_there_and_needs_no_worker(catalog: Catalog) -> None:
    catalog.declare("totals")
    catalog.refresh("totals")
    sensor = fresh(start_from_trigger=True)
    arguments = sensor.start_trigger_args
    assert arguments is not None
    assert arguments.trigger_cls == "airflow_provider_pgtrickle.triggers.freshness.FreshnessTrigger"
    event = ended(FreshnessTrigger(**arguments.trigger_kwargs or {}))
    assert isinstance(event, TaskSuccessEvent)
    assert event.xcoms is not None
    value: Any = event.xcoms["return_value"]
    assert value["staleness"] < 60


def test_started_from_the_trigger_a_hopeless_wait_fails_the_task_there(catalog: Catalog) -> None:
    arguments = fresh(start_from_trigger=True).start_trigger_args
    assert arguments is not None
    assert isinstance(ended(FreshnessTrigger(**arguments.trigger_kwargs or {})), TaskFailedEvent)


def test_two_sensors_started_from_their_triggers_keep_their_own_arguments() -> None:
    one, other = fresh(start_from_trigger=True), fresh(start_from_trigger=True, stream_table="others")
    assert one.start_trigger_args is not None
    assert other.start_trigger_args is not None
    assert (one.start_trigger_args.trigger_kwargs or {})["stream_table"] == "totals"
    assert (other.start_trigger_args.trigger_kwargs or {})["stream_table"] == "others"


def test_a_dag_of_sensors_survives_serialization() -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    with DAG("waiting", schedule=None) as dag:
        StreamTableFreshnessSensor(
            task_id="fresh", stream_table="totals", at_least="{{ data_interval_end }}", start_from_trigger=True
        )
        ChangeBufferSensor(task_id="pending", stream_table="totals", min_rows=100, start_from_trigger=True)
    restored = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    assert restored.get_task("fresh").start_from_trigger
    arguments = restored.get_task("pending").start_trigger_args
    assert arguments is not None
    assert arguments.trigger_kwargs


def track(catalog: Catalog) -> None:
    """A stream table that has consumed nothing yet, over base tables with real capture."""
    catalog.connection.execute("CREATE TABLE orders (id int PRIMARY KEY, total int)")
    catalog.connection.execute("CREATE TABLE customers (id int PRIMARY KEY)")
    catalog.declare("totals")
    catalog.capture("totals", "orders", "customers")


def test_pending_changes_are_counted_over_all_sources(catalog: Catalog) -> None:
    track(catalog)
    assert not pending().poke({}).is_done
    catalog.connection.execute("INSERT INTO orders SELECT n, n FROM generate_series(1, 3) n")
    catalog.connection.execute("INSERT INTO customers VALUES (1)")
    assert pending(min_rows=4).poke({}).xcom_value == {
        "pending_rows": 4,
        "sources": {"public.customers": 1, "public.orders": 3},
    }
    assert not pending(min_rows=5).poke({}).is_done
    assert pending(min_rows=3, source_table="orders").poke({}).is_done
    assert not pending(min_rows=2, source_table="customers").poke({}).is_done


def test_a_source_that_the_table_does_not_read_fails_naming_those_it_reads(catalog: Catalog) -> None:
    track(catalog)
    with pytest.raises(AirflowFailException, match=r"public\.payments.*public\.customers, public\.orders"):
        pending(source_table="payments").execute({})


def test_deferred_it_notices_changes_within_its_poke_interval(catalog: Catalog) -> None:
    async def scenario() -> None:
        track(catalog)
        trigger = ChangeBufferTrigger(stream_table="totals", postgres_conn_id=CONN_ID, min_rows=2, poll_interval=0.05)
        waiting = asyncio.ensure_future(event_of(trigger.run()))
        catalog.connection.execute("INSERT INTO orders VALUES (1, 1), (2, 2)")
        assert (await waiting).payload["found"]["pending_rows"] == 2

    asyncio.run(scenario())


@pytest.mark.parametrize("min_rows", [0, -1])
def test_waiting_for_no_changes_is_an_import_error(min_rows: int) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        pending(min_rows=min_rows)
