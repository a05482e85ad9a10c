"""What happens under a live scheduler: schedules, assets, watchers, wrong connections, runs that meet."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest

from tests.airflow.live.running import RunningAirflow, wait_for
from tests.airflow.live.shop import Case

Filled = Callable[[str], Case]
#: Left to `make live`; `make test` has the two that need a live Airflow most.
slow = pytest.mark.slow


def test_a_schedule_refreshes_and_the_asset_starts_its_consumer(
    airflow: RunningAirflow, case: Callable[[str], Case]
) -> None:
    chain = case("chain")
    (consumed, *_) = wait_for(lambda: airflow.runs("consumer"), "a run of the consumer")
    airflow.pause("chain")
    assert chain.committed == ["FULL"]
    assert chain.differences == []
    first = airflow.runs("chain")[0]
    assert first["run_type"] == "scheduled"
    events = airflow.call("GET", f"dags/consumer/dagRuns/{consumed['dag_run_id']}/upstreamAssetEvents")["asset_events"]
    (event,) = events
    assert event["source_dag_id"] == "chain"
    assert event["extra"]["rows"] == {"inserted": 10, "updated": 0, "deleted": 0}
    # The page leads from a refresh to the task that ran it, and to its log.
    shown = airflow.page("live_pg", "stream-table", name="chain_totals")
    refresh = next(row for row in shown["history"] if row["action"] == "FULL")
    assert shown["dag"]["dag_id"] == "chain"
    assert shown["runs"][str(refresh["refresh_id"])] == (
        f"dags/chain/runs/{quote(first['dag_run_id'], safe='')}/tasks/chain_totals"
    )
    assert airflow.finished("consumer", consumed["dag_run_id"]) == "success"
    # And the task's own page in Airflow says what was done.
    told = f"dags/chain/dagRuns/{quote(first['dag_run_id'], safe='')}/taskInstances/chain_totals/state-store"
    (stored,) = airflow.call("GET", told)["task_state_store"]
    assert stored["key"] == "public.chain_totals"
    assert stored["value"].startswith("FULL (never_populated), +10 ~0 -0 rows")


def test_a_watcher_in_the_triggerer_refreshes_what_changed(airflow: RunningAirflow, filled: Filled) -> None:
    watched = filled("watched")
    watched.change()
    watched.run("NOTIFY pg_trickle_alert")
    wait_for(lambda: watched.committed == ["FULL", "DIFFERENTIAL"], "a refresh that nobody asked for")
    assert watched.differences == []
    assert {run["run_type"] for run in airflow.runs("watched")} == {"asset_triggered"}


@slow
def test_a_cleared_task_runs_again_and_does_nothing_twice(airflow: RunningAirflow, filled: Filled) -> None:
    cleared = filled("cleared")
    cleared.change()
    run = airflow.trigger("cleared")
    assert airflow.finished("cleared", run) == "success"
    airflow.clear("cleared", run, "cleared_totals")
    assert airflow.finished("cleared", run) == "success"
    assert airflow.task("cleared", run, "cleared_totals")["try_number"] == 2
    assert cleared.committed == ["FULL", "DIFFERENTIAL"]
    assert cleared.differences == []


@slow
def test_of_two_runs_at_once_one_refreshes_and_the_other_is_skipped(airflow: RunningAirflow, filled: Filled) -> None:
    twice = filled("twice")
    twice.change()
    with twice.commits_held():
        first = airflow.trigger("twice")
        twice.waiting_session()
        second = airflow.trigger("rival")
        assert airflow.finished("rival", second) == "success"
        assert airflow.task("rival", second, "refresh")["state"] == "skipped"
    assert airflow.finished("twice", first) == "success"
    assert twice.committed == ["FULL", "DIFFERENTIAL"]
    assert twice.differences == []


@slow
def test_a_suspended_table_fails_its_task_until_it_is_resumed(airflow: RunningAirflow, filled: Filled) -> None:
    suspended = filled("suspended")
    suspended.change()
    suspended.run("UPDATE pgtrickle.pgt_stream_tables SET status = 'SUSPENDED' WHERE pgt_name = {name}")
    run = airflow.trigger("suspended")
    assert airflow.finished("suspended", run) == "failed"
    assert airflow.task("suspended", run, "suspended_totals")["state"] == "failed"
    assert "SUSPENDED" in airflow.log("suspended", run, "plan")
    assert len(suspended.differences) > 0

    suspended.run("UPDATE pgtrickle.pgt_stream_tables SET status = 'ACTIVE' WHERE pgt_name = {name}")
    run = airflow.trigger("suspended")
    assert airflow.finished("suspended", run) == "success"
    assert suspended.differences == []


@slow
def test_a_run_that_misses_its_deadline_is_told_while_it_hangs(airflow: RunningAirflow, filled: Filled) -> None:
    late = filled("late")
    late.change()
    with late.alerts() as heard:
        with late.commits_held():
            run = airflow.trigger("late")
            alert = heard("stale_data", "public.late_totals")
        assert alert["text"] == f"late {run} was not done within 0:00:01"
    assert airflow.finished("late", run) == "success"
    assert late.differences == []


@slow
@pytest.mark.parametrize(
    ("dag_id", "task_id", "message"),
    [
        ("no_postgres", "plan", "There is no Airflow connection 'live_missing'"),
        ("wrong_password", "plan", "refused the user name or password"),
        ("no_spark", "no_spark_totals", "There is no Airflow connection 'live_missing'"),
        ("spark_down", "spark_down_totals", "The Spark Connect server of connection 'live_down' can't be reached"),
    ],
)
def test_a_connection_that_is_missing_or_wrong_is_told_in_the_log(
    airflow: RunningAirflow, dag_id: str, task_id: str, message: str
) -> None:
    run = airflow.trigger(dag_id)
    assert airflow.finished(dag_id, run) == "failed"
    assert airflow.task(dag_id, run, task_id)["state"] == "failed"
    told = airflow.log(dag_id, run, task_id)
    assert message in told
    assert "not the password" not in told


@slow
def test_at_granularity_graph_each_table_shows_what_came_of_it(
    airflow: RunningAirflow, case: Callable[[str], Case]
) -> None:
    whole = case("whole")
    tables = ["whole_totals", "whole_ratio", "whole_shares", "whole_groups"]

    def ran() -> tuple[str, list[str], dict[str, str]]:
        """How a run ended, how its tables did, and the outcomes by name."""
        run = airflow.trigger("whole")
        ended = airflow.finished("whole", run)
        path = f"dags/whole/dagRuns/{run}/taskInstances"
        outcomes = airflow.call("GET", f"{path}/outcomes/listMapped")["task_instances"]
        return (
            ended,
            [airflow.task("whole", run, table)["state"] for table in tables],
            {outcome["rendered_map_index"]: outcome["state"] for outcome in outcomes},
        )

    def updates() -> int:
        return int(airflow.call("GET", "assets/events?source_dag_id=whole")["total_entries"])

    assert ran() == ("success", ["success"] * 4, {"4 updated": "success"})
    assert (updates(), whole.differences) == (4, [])

    assert ran() == ("success", ["skipped"] * 4, {})

    whole.run("UPDATE {rows} SET v = 0 WHERE k = 3")
    failed = {"1 updated": "success", "whole_ratio": "failed", "whole_shares": "failed"}
    # The groups were counted, and are as many as before.
    assert ran() == ("failed", ["success", "skipped", "skipped", "success"], failed)
    assert (updates(), whole.differences) == (5, [])
