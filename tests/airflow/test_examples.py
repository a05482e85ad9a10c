"""The example DAG files: they load, and what they make is what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag

EXAMPLES = Path(__file__).parent.parent.parent / "dags"


@pytest.fixture(scope="module")
def bag(airflow_database: None) -> DagBag:
    return DagBag(str(EXAMPLES), bundle_path=EXAMPLES, bundle_name="examples")


def test_every_example_loads(bag: DagBag) -> None:
    assert bag.import_errors == {}


def test_they_make_these_dags(bag: DagBag) -> None:
    assert {
        "event_driven",
        "shop",
        "shop_consumer",
        "sql_shop",
        "tpch",
    } <= set(bag.dags)


def test_all_of_tpch_is_one_dag_of_one_task_and_what_it_shows(bag: DagBag) -> None:
    assert set(bag.dags["tpch"].task_dict) == {
        "plan",
        "refresh",
        "outcomes",
        *(f"q{n:02}" for n in range(1, 23)),
        "answers",
    }


def test_the_diamond_of_the_shop_is_one_task(bag: DagBag) -> None:
    assert "country_orders__country_revenue__country_report" in bag.dags["shop"].task_dict


def test_the_consumer_follows_the_asset_that_the_shop_updates(bag: DagBag) -> None:
    shop: Any = bag.dags["shop"].get_task("country_orders__country_revenue__country_report")
    condition: Any = bag.dags["shop_consumer"].timetable.asset_condition
    (wanted,) = condition.objects
    assert shop.assets["public.country_report"].name == wanted.name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('StreamTable("a", "SELECT x\\nFROM WHERE y")', "line 2, column"),
        ('StreamTable("a", "SELECT * FROM b"), StreamTable("b", "SELECT * FROM a")', "public.a → public.b → public.a"),
        ('StreamTable("a", "SELECT 1 AS x", schedule="soon")', "not a schedule"),
    ],
)
def test_a_mistake_is_an_import_error_with_its_place(
    airflow_database: None, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "wrong_dag.py"
    file.write_text(
        "# An Airflow DAG.\n"
        "from airflow_provider_pgtrickle import StreamTable, StreamTableGraph\n"
        f"StreamTableGraph('wrong', [{text}]).register(globals())\n"
    )
    bag = DagBag(str(tmp_path), bundle_path=tmp_path, bundle_name="wrong")
    assert not bag.dags
    (error,) = bag.import_errors.values()
    assert message in error
