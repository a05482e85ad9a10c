"""A DAG that follows a stream table: it runs when rows of `country_report` really changed, and only then.

It may live anywhere: beside the graph, `schedule=[country_report.asset]` says the same.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Asset, task

country_report = Asset("postgres://shop_pg:5432/shop_pg/public/country_report")

with DAG("shop_consumer", schedule=[country_report], catchup=False, tags=["example"]) as dag:

    @task
    def tell(triggering_asset_events: Any = None) -> list[dict[str, Any]]:
        """What changed, as the asset's events say it: the action, the rows, the instant."""
        events = (triggering_asset_events or {}).get(country_report, [])
        for event in events:
            print(f"{country_report.uri}: {event.extra}")
        return [event.extra for event in events]

    tell()
