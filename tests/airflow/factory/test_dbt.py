"""`StreamTableGraph.from_dbt`: a manifest's models are declarations, what else they read is waited for.

That real dbt writes such a manifest is shown in tests/database/test_dbt.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, AssetOrTimeSchedule

from airflow_provider_pgtrickle import StreamTableGraph, StreamTableGroup
from airflow_provider_pgtrickle.engine.errors import SyntaxFault, UsageError
from airflow_provider_pgtrickle.operators.dbt import DbtTestOperator

URI = "postgres://db:5432/shop"


def model(name: str, sql: str | None, *reads: str, materialized: str = "stream_table", **config: Any) -> dict[str, Any]:
    return {
        "resource_type": "model",
        "name": name,
        "alias": f"{name}_v1",
        "schema": "analytics",
        "original_file_path": f"models/{name}.sql",
        "compiled_code": sql,
        "tags": config.get("tags", []),
        "description": f"About {name}.",
        "depends_on": {"nodes": [f"model.shop.{other}" for other in reads]},
        "config": {"materialized": materialized, **config},
    }


TOTALS = model(
    "totals",
    'select customer_id, sum(amount) as total from "shop"."public"."orders" group by 1\n',
    schedule="5m",
    meta={"tier": "warm", "owner": "us", "timezone": "Europe/Oslo"},
    tags=["money"],
)
RICH = model("rich", 'select * from "shop"."analytics"."shown" where total > 9', "shown", "known")
SHOWN = model("shown", "select 1", "totals", materialized="view")
KNOWN = model("known", "select 1", materialized="incremental")


def write(folder: Path, *models: dict[str, Any]) -> Path:
    (folder / "target").mkdir(parents=True)
    nodes = {f"model.shop.{node['name']}": node for node in models}
    (folder / "target" / "manifest.json").write_text(json.dumps({"nodes": nodes}))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write(tmp_path / "project", TOTALS, RICH, SHOWN, KNOWN)


def test_models_are_declarations_with_their_config(project: Path) -> None:
    graph = StreamTableGraph.from_dbt("shop", project)
    totals, rich = sorted(graph.tables, key=lambda table: table.name, reverse=True)
    assert (totals.name, str(totals.qualified)) == ('"analytics"."totals_v1"', "analytics.totals_v1")
    assert (totals.schedule, totals.tier, totals.description) == ("5m", "warm", "About totals.")
    assert totals.options["timezone"] == "Europe/Oslo"
    assert totals.query.endswith("group by 1")
    # Through a view, which its text doesn't show.
    assert rich.depends_on == ('"analytics"."totals_v1"',)
    assert StreamTableGraph.from_dbt("shop", project / "target" / "manifest.json").graph.order() == graph.graph.order()


def test_tables_of_other_models_are_followed_as_cosmos_names_them(airflow_database: None, project: Path) -> None:
    graph = StreamTableGraph.from_dbt("shop", project, database_uri=URI)
    assert graph.follows == (Asset(f"{URI}/analytics/known_v1"),)
    (dag,) = graph.dags()
    assert isinstance(dag.timetable, AssetOrTimeSchedule)
    (alone,) = StreamTableGraph.from_dbt("shop", project, select="totals", database_uri=URI).dags()
    assert not isinstance(alone.timetable, AssetOrTimeSchedule)


def test_selection_is_dbts(project: Path) -> None:
    def names(**terms: Any) -> list[str]:
        return sorted(t.qualified.name for t in StreamTableGraph.from_dbt("shop", project, **terms).tables)

    assert names(select="totals+") == ["rich_v1", "totals_v1"]
    assert names(select="tag:money") == ["totals_v1"]
    assert names(exclude="totals") == ["rich_v1"]
    with pytest.raises(UsageError, match="Did you mean totals"):
        names(select="total")
    with pytest.raises(UsageError, match="No stream table of the dbt project is selected"):
        names(select="totals", exclude="totals")


def test_dbt_tests_run_behind_the_refreshes(airflow_database: None, project: Path) -> None:
    (dag,) = StreamTableGraph.from_dbt("shop", project, tests="/opt/dbt/bin/dbt", env={"A": "b"}).dags()
    task = dag.get_task("dbt-tests")
    assert isinstance(task, DbtTestOperator)
    assert (task.models, task.project_dir, task.env) == (["rich", "totals"], str(project), {"A": "b"})
    assert task.upstream_task_ids == {"analytics.totals_v1", "analytics.rich_v1"}


def test_dbt_tests_of_a_group_are_in_it(project: Path) -> None:
    graph = StreamTableGraph.from_dbt("shop", project, tests="dbt")
    with DAG("nightly", schedule=None) as dag:
        StreamTableGroup(graph) >> EmptyOperator(task_id="report")
        StreamTableGroup(graph, "again", select="analytics.totals_v1")
    tests, again = dag.get_task("shop.dbt-tests"), dag.get_task("again.dbt-tests")
    assert isinstance(tests, DbtTestOperator)
    assert isinstance(again, DbtTestOperator)
    assert (tests.models, again.models) == (["rich", "totals"], ["totals"])
    assert tests.upstream_task_ids == {"shop.analytics.totals_v1", "shop.analytics.rich_v1"}
    # What follows the group waits for them.
    assert dag.get_task("shop.up-to-date").upstream_task_ids == {"shop.dbt-tests"}
    assert dag.get_task("report").upstream_task_ids == {"shop.up-to-date"}
    assert dag.get_task("again.up-to-date").upstream_task_ids == {"again.dbt-tests"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "Run dbt compile in the project"),
        ("{", "is no manifest of dbt"),
        ('{"nodes": {}}', "has no model with materialized: stream_table"),
        ({"nodes": {"model.shop.totals": {**TOTALS, "compiled_code": None}}}, "has no SQL of the model totals"),
    ],
)
def test_a_manifest_that_will_not_do_says_what_to_run(tmp_path: Path, content: Any, sentence: str) -> None:
    if content is not None:
        (tmp_path / "target").mkdir()
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / "target" / "manifest.json").write_text(text)
    with pytest.raises(UsageError, match=sentence):
        StreamTableGraph.from_dbt("shop", tmp_path)


def test_a_mistake_in_a_model_names_its_file(tmp_path: Path) -> None:
    project = write(tmp_path / "project", model("broken", "select ( from x"))
    with pytest.raises(SyntaxFault, match=r"models/broken\.sql, line 1"):
        StreamTableGraph.from_dbt("shop", project)
    project = write(tmp_path / "other", model("wrong", "select 1 as a", tier="tepid"))
    with pytest.raises(UsageError, match=r"tepid.*models/wrong\.sql"):
        StreamTableGraph.from_dbt("shop", project)
