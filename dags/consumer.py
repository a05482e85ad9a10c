"""A DAG that follows a stream table: it runs when rows of `country_report` really changed, and only then.

It may live anywhere: the asset is called by its table, after the connection. Beside the graph,
`schedule=[country_report.asset]` says the same.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Asset, task

with DAG("shop_consumer", schedule=[Asset.ref(name="shop_pg.country_report")], catchup=False, tags=["example"]) as dag:

    @task
    def tell(triggering_asset_events: Any = None) -> list[dict[str, Any]]:
        """What changed, as the asset's events say it: the action, the rows, the instant."""
        found = [event for events in (triggering_asset_events or {}).values() for event in events]
        for event in found:
            print(f"country_report: {event.extra}")
        return [event.extra for event in found]

    tell()
