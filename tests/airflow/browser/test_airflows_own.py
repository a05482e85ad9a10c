"""What Airflow's own pages draw of stream tables: a DAG's graph, and an asset with what it is made of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.airflow.browser.browser import Browser
from tests.airflow.browser.serving import Serving


def boxes(browser: Browser) -> set[str]:
    """The first line of each box."""
    return {str(box.text).partition("\n")[0] for box in browser.all(".react-flow__node")} - {""}


@pytest.fixture
def airflow(browser: Browser, serving: Serving) -> Iterator[Browser]:
    """The browser, in which DAGs are shown as graphs with what is outside of them."""
    browser.driver.get(serving.url)
    shown = {"default_dag_view": '"graph"', "dependencies-lineage": '"immediate"'}
    for name, value in shown.items():
        browser.script("localStorage.setItem(arguments[0], arguments[1])", name, value)
    yield browser
    for name in shown:
        browser.script("localStorage.removeItem(arguments[0])", name)


def test_the_graph_of_a_dag_has_the_sources_that_it_follows_and_the_assets_of_its_tables(
    airflow: Browser, serving: Serving
) -> None:
    airflow.driver.get(f"{serving.url}/dags/lineage")
    drawn = {"plan", "lineage_totals", "lineage_best"} | {
        f"shop_pg.{name}" for name in ("orders", "items", "lineage_totals", "lineage_best")
    }
    airflow.wait(lambda: boxes(airflow) == drawn or None, f"the boxes {sorted(drawn)}")
    airflow.picture("airflow-graph")


def test_an_asset_has_its_producer_and_all_that_it_is_made_of(airflow: Browser, serving: Serving) -> None:
    (asset,) = serving.call("assets?name_pattern=shop_pg.lineage_best")["assets"]
    assert [task["task_id"] for task in asset["producing_tasks"]] == ["lineage_best"]
    assert asset["extra"] == {"table": "public.lineage_best", "connection": "shop_pg"}
    airflow.driver.get(f"{serving.url}/assets/{asset['id']}")
    airflow.button("Task Dependencies", within="body").click()
    airflow.wait(lambda: "lineage_totals" in boxes(airflow) or None, "the task of the table that it reads")
    # Only what is in sight is drawn.
    airflow.one(".react-flow__controls-fitview").click()
    tasks = {"lineage_totals", "lineage_best"}
    drawn = tasks | {f"shop_pg.{name}" for name in (*tasks, "orders", "items", "customers")}
    airflow.wait(lambda: boxes(airflow) == drawn or None, f"the boxes {sorted(drawn)}")
    airflow.picture("airflow-asset")
